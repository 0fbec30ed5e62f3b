// Package core has the verbs on sessions. A verb is a method of [Core] that takes a request of package sessions and returns
// rows or results; every surface calls the same ones. The verbs are divided by what they need: [Lifecycle], [Input],
// [Deliveries], [Restarts] and [Queries]. The core never prints and knows no chat service.
package core

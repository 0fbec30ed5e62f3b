// Package outbox posts messages exactly once and keeps them current.
//
// A [Current] is one message that is posted once and then edited until it shows what it should. Its nonce travels with the
// message, so that after a crash or an unknown outcome it is found again before it would be posted a second time. An [Outbox] is
// a queue on disk of such messages, in the order of each thread and within the rate of the chat service.
package outbox

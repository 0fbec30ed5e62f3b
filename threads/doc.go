// Package threads binds chat threads to sessions: a reply in a thread is delivered to its session, and what the agent says is
// posted in the thread.
//
// Slack is the log: what a bound thread holds is the truth, a [binding.Binding] says how far it is settled, and an event is only a
// quick way to hear of a reply. So nothing has to be on disk before an event is acknowledged, and nothing is lost with one:
// a thread is read again from its cursor after every connect.
//
// A [Manager] owns all threads. Each has an actor, in which its parts run one after the other. The packages below hold what can be
// understood without a thread: they know threads by small interfaces.
//
// The package knows no Slack library. Package chat has the ports that a chat service implements.
package threads

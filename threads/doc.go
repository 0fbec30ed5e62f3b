// Package threads carries a reply from a Slack thread to the session that the thread is.
//
// Slack is the log: what a bound thread holds is the truth, a [Binding] says how far it is settled, and an event is only
// a quick way to hear of a reply. So nothing has to be on disk before an event is acknowledged, and nothing is lost with
// one: a thread is read again from its cursor after every connect.
//
// A [Manager] owns the threads, one goroutine each. A thread takes its replies in order through authorization, the intent on
// disk, the core and the receipt. The packages below hold one thing each, and know nothing of their owner.
//
// The package knows no Slack library. What it needs of Slack are the ports of package chat, which bot/slack implements.
package threads

// Package sessions is the core of the-loop: what a session is, and the verbs on it.
//
// A verb is a method of [Core]: it takes a request struct and returns rows and messages. The core never prints, knows
// nothing of Slack, and reaches the outside only through four interfaces: [Terminal] (tmux), [Harness] (an agent
// program), [Store] (records and locks on disk) and [Sink] (the event log). Their implementations are the packages
// below this one, which import it and not the other way round.
//
// The files, bottom-up: ref.go names sessions; text.go cleans what is typed; record.go and definition.go say what is
// known of a session; terminal.go, harness.go and store.go declare the outside; errors.go lists what can go wrong, with
// remedies; core.go, start.go, stop.go, list.go and say.go are the verbs.
package sessions

// Package sessions is the core of the-loop: what a session is, and the verbs on it.
//
// A verb is a method of [Core]: it takes a request struct and returns rows and messages. The core never prints, knows
// no chat service, and reaches the outside only through a few interfaces: [Terminal] (tmux), [Harness] (an agent
// program), [Store] (records and locks on disk), [Sink] (the event log) and [UsesReports] (what agents report). Their
// implementations are the packages below this one, which import it and not the other way round.
//
// The files, bottom-up: ref.go names sessions; text.go cleans what is typed; record.go says what is known of a session and
// row.go what is told of it; terminal.go, harness.go and store.go declare the outside; errors.go lists what can go wrong,
// with remedies, names.go the events; core.go finds sessions and their panes; run.go brings one into its pane and replace.go
// another agent into the pane that there is, with prompt.go,
// event.go and follow.go. The verbs are start.go (and restart), stop.go, create.go (and delete), register.go, all.go, list.go
// (and attach), peek.go, say.go, keys.go, noted.go and attend.go; deliver.go takes an event to a work item's session, with ledger.go and
// settle.go, which keep it from being processed twice; drift.go compares environments with the env file, and roll.go brings sessions
// onto it; and intake.go delivers what a source of events tells.
package sessions

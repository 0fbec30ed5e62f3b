// Package sessions is the vocabulary of the-loop's core: refs, definitions, records, rows, requests, results, events and
// errors, and the ports that the core reaches the outside through: [Terminal] (tmux), [Harness] (an agent program), [Store]
// (records and locks on disk) and [Sink] (the event log). It names no chat service. Package sessions/core has the verbs; the
// other packages below this one implement the ports.
package sessions

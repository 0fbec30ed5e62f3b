package sessions

import (
	"fmt"
	"time"
)

// Outcome says in one word what a verb did to one session.
type Outcome string

// The outcomes of verbs.
const (
	OutcomeStarted        Outcome = "started"         // a new conversation
	OutcomeResumed        Outcome = "resumed"         // the recorded conversation goes on
	OutcomeAlreadyRunning Outcome = "already-running" // nothing was touched
	OutcomeStopped        Outcome = "stopped"
	OutcomeAlreadyStopped Outcome = "already-stopped"
	OutcomeCreated        Outcome = "created" // recorded, and not started
	OutcomeDeleted        Outcome = "deleted"
	OutcomeRegistered     Outcome = "registered" // recorded; the first event starts it
	OutcomeClosed         Outcome = "closed"
	OutcomeDelivered      Outcome = "delivered" // into the agent that ran
	OutcomeRepeated       Outcome = "repeated"  // the delivery was processed before; nothing was touched
	OutcomeFailed         Outcome = "failed"    // of a verb on many sessions; Detail says why
)

// Row is what a verb did to one session, or what there is to know of it.
type Row struct {
	Ref          Ref     `json:"ref"`
	Kind         string  `json:"kind"` // [KindStanding] or [KindWorkItem]
	ID           string  `json:"id,omitempty"`
	Name         string  `json:"name"`
	Description  string  `json:"description,omitempty"`
	Source       Source  `json:"source"`
	Harness      string  `json:"harness"`
	Cwd          string  `json:"cwd"`
	State        State   `json:"state"`
	Running      bool    `json:"running"`
	AutoStart    bool    `json:"autoStart"`
	Expected     bool    `json:"expected"` // the-loop start would start it, so it should be running
	TmuxTarget   string  `json:"tmuxTarget"`
	Pane         string  `json:"pane,omitempty"`
	Conversation string  `json:"conversation,omitempty"`
	Outcome      Outcome `json:"outcome,omitempty"`
	Detail       string  `json:"detail,omitempty"`

	Limitations []string `json:"lacks,omitempty"` // what its harness cannot do, see [Limitations]; in lists alone

	PID     int       `json:"-"`                // of the process in its pane, while it runs; in lists alone
	Changed time.Time `json:"changed,omitzero"` // when it was last started or stopped

	Chat ChatDefinition `json:"chat"`
}

// State is how a session is found to be.
type State string

// The states of a session, as the panes and the record together show it.
const (
	StateRunning State = "running"
	StateEnded   State = "ended"   // the agent has ended on its own; its last screen may still be there, and can be peeked at
	StateStopped State = "stopped" // taken down by us
	StateNew     State = "new"     // declared or registered, never started
	StateUnknown State = "unknown" // tmux did not answer
	StateBroken  State = "broken"  // its record cannot be read
)

// ExitDescription says how the agent in a dead pane ended.
func (p Pane) ExitDescription() string {
	switch {
	case p.ExitSignal != "":
		return "killed by signal " + p.ExitSignal
	case p.ExitStatus < 0:
		return "nobody knows how"
	}
	return fmt.Sprintf("with status %d", p.ExitStatus)
}

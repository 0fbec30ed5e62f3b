package sessions

import (
	"context"
	"fmt"
	"time"
)

// CreateRequest makes a session that the configuration does not declare. What is left out comes from
// [Defaults].
type CreateRequest struct {
	Name        string
	Description string
	Harness     string
	HarnessArgs []string // nil: the default ones; empty: none
	Cwd         string   // absolute
	Prompt      string   // never together with PromptFile
	PromptFile  string   // absolute; read at each start
	NoAutoStart bool     // "the-loop start" does not bring it back
	Chat        ChatDefinition
	NoStart     bool // record it only
}

// DeleteRequest asks for a session to be gone.
type DeleteRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// DeliverRequest asks for one event of a work item to reach its session.
type DeliverRequest struct {
	Ref        Ref
	Text       string        // as written; it is cleaned here
	DeliveryID string        // of the event: it is processed once, however often it comes. Empty: it is like no other
	Wait       time.Duration // how long a dialog, a draft in the box or another verb is waited for
}

// InspectRequest asks how one session is while no verb is at work on it.
type InspectRequest struct{ Ref Ref }

// IntakeRequest asks for the events of a source to be delivered.
type IntakeRequest struct {
	Source EventSource
	Wait   time.Duration // see [DeliverRequest]
	// Done is told what became of each event; an error of its own ends the intake.
	OnResult func(e WorkItemEvent, d DeliveryResult, err error) error
}

// KeysRequest asks for keys to be pressed in a session, past everything that waits. With Interrupt it is the harness's
// own key that stops a running turn.
type KeysRequest struct {
	Ref       Ref
	ID        string
	Keys      []string // names, e.g. "Escape"; see [KeyNames]
	Interrupt bool
	Actor     string // who presses them, as their surface knows them; empty: nobody who may answer the agent
}

// ListRequest asks for some of the sessions.
type ListRequest struct {
	Kind   string  // [KindStanding] or [KindWorkItem]
	States []State // empty: all
}

// AttachRequest asks for the command that shows a session to a person.
type AttachRequest struct {
	Ref        Ref
	ReadOnly   bool
	InsideTmux bool // we run inside tmux
}

// PeekRequest asks for what a session's terminal shows.
type PeekRequest struct{ Ref Ref }

// WaitResolvedRequest waits for the end of an ask.
type WaitResolvedRequest struct {
	Ref           Ref
	ID            string // of the session
	Token         string
	DialogExcerpt string // [PermissionRequest.DialogExcerpt]
	OnOpen        func() // called as soon as the ask is known to be open
}

// AnswerPermissionRequest answers an ask.
type AnswerPermissionRequest struct {
	Ref           Ref
	ID            string // of the session
	DialogExcerpt string // [PermissionRequest.DialogExcerpt]
	PermissionDecision
}

// RegisterRequest makes a work item's session known. What is left out comes from [Defaults].
type RegisterRequest struct {
	Ref          Ref
	Harness      string
	Cwd          string // absolute
	Conversation string // the harness's id of one to go on with; empty: the first event begins one
	Chat         ChatDefinition
}

// RollingRestartRequest asks for running sessions to be restarted in their panes and conversations, so that they hold what the env
// file declares now.
type RollingRestartRequest struct {
	Refs   []Ref
	All    bool // every recorded session
	Stale  bool // leave those alone that hold what is declared
	DryRun bool // say what would be done, and change nothing
	// Done is told of each row as soon as it is known, from several goroutines. May be nil.
	OnRow func(RestartRow)
}

// StartRequest asks for one session to run.
type StartRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// RestartRequest asks for one session to be taken down and brought up again, in its conversation.
type RestartRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// StopRequest asks for one session to be taken down. Its record and its conversation stay.
type StopRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// SubmitRequest asks for one text to be typed into a session and submitted.
type SubmitRequest struct {
	Ref    Ref
	ID     string // the session that is meant; empty: whichever has the ref now
	Text   string // as written; it is cleaned here
	Sender string // goes in front of a text that the agent would take as a command, as a [DisplayName]
	Raw    bool   // the text is a command of the agent's own, sent on purpose: it must begin with "/"
	// RecordIntent is called under the session's lock, after every check and before the first byte is typed. When it fails,
	// nothing is typed. May be nil.
	RecordIntent func(ctx context.Context, i Intent) error
}

// VerifyInputRequest asks what became of a text that may have been typed before a crash.
type VerifyInputRequest struct {
	Ref    Ref
	ID     string
	Intent Intent
}

// FolderRequest asks where a session works.
type FolderRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// ReportsRequest asks what the agent of a session reported.
type ReportsRequest struct {
	Ref    Ref
	ID     string    // the session that is meant; empty: whichever has the ref now
	Offset Offset    // [ReportBatch.Next] of the last time; empty: from Since on
	Since  time.Time // counts without an offset, but not for permission requests: those are open or over
}

// TranscriptRequest asks what the agent of a session said.
type TranscriptRequest struct {
	Ref    Ref
	ID     string    // the session that is meant; empty: whichever has the ref now
	Offset Offset    // [TranscriptBatch.Next] of the last time; empty: from Since on
	Since  time.Time // counts without an offset
}

// ViewRequest asks what a session's screen shows its agent to be doing.
type ViewRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

func (q DeliverRequest) Validate() error {
	if _, err := ParseWorkItem(string(q.Ref)); err != nil {
		return err
	}
	if !deliveryPattern().MatchString(q.DeliveryID) {
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%q cannot be the id of a delivery", q.DeliveryID),
			Remedy: "use one that matches " + deliveryPattern().String()}
	}
	return nil
}

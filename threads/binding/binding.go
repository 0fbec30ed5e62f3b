package binding

import (
	"maps"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/permission"
)

// Binding is what is stored of one thread: whose it is, and how far it is settled. It holds no text of anybody, but for what
// an agent asks as long as that is open.
type Binding struct {
	Version          int          `json:"version"`
	ID               string       `json:"id"` // Record.ID of the session
	Ref              sessions.Ref `json:"ref"`
	Channel          string       `json:"channel"`
	Root             string       `json:"root,omitempty"` // ts of the announcement; empty: not bound yet
	Announcement     Announcement `json:"announcement"`
	Cursor           string       `json:"cursor,omitempty"` // everything up to this ts is settled, or is in Replies
	LastActive       time.Time    `json:"active"`           // when somebody last spoke in it
	LastNotification string       `json:"told,omitempty"`   // the name of what the thread was told last, see [Notification]

	TranscriptOffset sessions.Offset `json:"heard,omitempty"`     // how far the transcript was read, see [sessions.TranscriptBatch]
	TranscriptSince  time.Time       `json:"heardSince,omitzero"` // where there is no offset yet: what was said before is not posted
	ReportOffset     sessions.Offset `json:"noted,omitempty"`     // how far the reports were read, see [sessions.ReportBatch]
	ReportsSince     time.Time       `json:"notedSince,omitzero"` // where there is no offset yet

	TurnRunning bool        `json:"busy,omitempty"` // a turn ran at that place
	TurnMessage TurnMessage `json:"working,omitzero"`

	Replies            map[string]Entry        `json:"replies,omitempty"`   // by ts: what is open, and the newest of what is not
	Traces             map[string]Trace        `json:"done,omitempty"`      // by ts, all after Cursor: nothing is left to do
	ResendPrompts      map[string]ResendPrompt `json:"questions,omitempty"` // by token
	PermissionRequests permission.Requests     `json:"asks,omitempty"`      // by the value of their buttons
	Waiting            *WaitState              `json:"waiting,omitempty"`   // the agent waits for its operator
	LastUser           string                  `json:"speaker,omitempty"`   // member id of who spoke last, and was let in
}

// Announcement is the intent of a thread's root: it is on disk before the message is posted.
type Announcement struct {
	Nonce     string    `json:"nonce"`
	Since     time.Time `json:"since,omitzero"`     // when it was tried, by Slack's clock
	Tried     bool      `json:"tried,omitempty"`    // a message with the nonce may be there
	Shown     string    `json:"shown,omitempty"`    // fingerprint of what the message shows
	Dismissed time.Time `json:"dismissed,omitzero"` // when somebody deleted it: only a later start announces anew
}

// State says how far a reply is.
type State string

// The stored states of a reply. One that waits in the queue for the first time is not stored: Slack has it.
const (
	StateHeld     State = "held"     // the pane would not take it yet
	StateInflight State = "inflight" // it may be in the pane
	StateDoubt    State = "doubt"    // after a crash or a silence: the operator is asked
	StateOffered  State = "offered"  // too old to be typed unasked
	StateApproved State = "approved" // somebody chose to have it typed; it waits again
	StateSettled  State = "settled"
)

// Outcome says how a reply was settled.
type Outcome string

// The outcomes of a reply.
const (
	OutcomeAccepted  Outcome = "accepted"
	OutcomeTyped     Outcome = "typed"
	OutcomeFailed    Outcome = "failed"
	OutcomeDropped   Outcome = "dropped"   // by authorization
	OutcomeWithdrawn Outcome = "withdrawn" // deleted before it was typed
	OutcomeSkipped   Outcome = "skipped"   // by choice
	OutcomeCommand   Outcome = "command"   // it spoke to the bot
)

// Entry is what is stored of one reply.
type Entry struct {
	State   State           `json:"state"`
	Outcome Outcome         `json:"outcome,omitempty"`
	At      time.Time       `json:"at"`
	User    string          `json:"user,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Raw     bool            `json:"raw,omitempty"`
	Intent  sessions.Intent `json:"intent,omitzero"`

	Approved bool   `json:"approved,omitempty"` // somebody chose to have it typed: its age is not asked
	Edited   string `json:"edited,omitempty"`   // edited.ts of the version that was taken to be typed
	Changed  string `json:"changed,omitempty"`  // edited.ts of a later version, which came too late
	Deleted  bool   `json:"deleted,omitempty"`  // its deletion came too late

	Notification string `json:"tell,omitempty"` // what the thread is still to be told of it, in our words

	Wanted Mark   `json:"wanted,omitempty"` // the receipt that should be seen
	Shown  []Mark `json:"shown,omitempty"`  // the receipts that are there
}

// IsComplete reports whether nothing is left to do for the entry.
func (e Entry) IsComplete() bool {
	if e.State != StateSettled {
		return false
	}
	if e.Wanted == "" {
		return len(e.Shown) == 0
	}
	return len(e.Shown) == 1 && e.Shown[0] == e.Wanted
}

// ResendPromptKind says what is asked.
type ResendPromptKind string

// The kinds of questions.
const (
	ResendPromptInDoubt ResendPromptKind = "doubt" // may have been typed
	ResendPromptOffer   ResendPromptKind = "offer" // missed, or held for too long
)

// ResendPrompt is a choice that was put to the operator.
type ResendPrompt struct {
	Kind    ResendPromptKind `json:"kind"`
	Replies []string         `json:"replies"` // ts
	TS      string           `json:"ts,omitempty"`
	Choice  string           `json:"choice,omitempty"` // the action; empty: open
	By      string           `json:"by,omitempty"`     // member id; empty: nobody chose, see the lapsed choices
	At      time.Time        `json:"at,omitzero"`
	Omitted int              `json:"left,omitempty"` // older replies that it was about too, and that are no longer to be had
}

// Clone is a copy that shares nothing that may be changed.
func (b Binding) Clone() Binding {
	b.Replies = maps.Clone(b.Replies)
	b.Traces = maps.Clone(b.Traces)
	b.ResendPrompts = maps.Clone(b.ResendPrompts)
	b.PermissionRequests = maps.Clone(b.PermissionRequests)
	return b
}

// Trace is what is kept of a reply of which nothing is left to do, so that it is not typed again and a late edit is known.
type Trace struct {
	Typed  bool   `json:"t,omitempty"` // the agent has it
	Edited string `json:"e,omitempty"` // edited.ts of the newest version that was heard of
}

// WaitState is a time during which an agent waits for its operator. The thread is told once when it lasts.
type WaitState struct {
	Since    time.Time `json:"since"`
	Notified bool      `json:"told,omitempty"`
}

// TurnMessage is the one message that tells of a turn where the workspace has no statuses. It is stored before it is posted.
type TurnMessage struct {
	Nonce  string    `json:"nonce,omitempty"` // empty: there is none
	TS     string    `json:"ts,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the turn began
	Shown  string    `json:"shown,omitempty"`
	Edited time.Time `json:"edited,omitzero"`
}

// Mark is what a receipt shows: one reaction on the reply.
type Mark string

// The marks. Which emoji each one is, the configuration says.
const (
	MarkReceived Mark = "received" // heard, and not settled within 2 s
	MarkTyped    Mark = "typed"
	MarkAccepted Mark = "accepted"
	MarkHeld     Mark = "held"
	MarkFailed   Mark = "failed"
	MarkInDoubt  Mark = "inDoubt"
)

// IsNewer reports whether version a of a message came after version b. Slack marks a version with the time of its edit, and
// the first one not at all. So an event that comes late, or again, never undoes an edit.
func IsNewer(a, b string) bool { return a != "" && (b == "" || chat.CompareTS(a, b) > 0) }

// WasDelivered reports whether the reply certainly went into the pane.
func (e Entry) WasDelivered() bool { return e.Outcome == OutcomeAccepted || e.Outcome == OutcomeTyped }

// Newer is the later one of two versions.
func Newer(a, b string) string {
	if IsNewer(b, a) {
		return b
	}
	return a
}

// FirstReply is the oldest reply that a prompt is about.
func (q ResendPrompt) FirstReply() string {
	if len(q.Replies) == 0 {
		return ""
	}
	return q.Replies[0]
}

package sessions

// BatchResult is what a verb did to many sessions.
type BatchResult struct {
	Disabled bool  `json:"disabled"` // standingSessions.enabled is false, so none is started
	Rows     []Row `json:"sessions"` // by name; of a failure: [OutcomeFailed], and Detail
}

// Failed counts the sessions for which the verb did not do what it is for.
func (a BatchResult) Failed() (n int) {
	for _, r := range a.Rows {
		if r.Outcome == OutcomeFailed {
			n++
		}
	}
	return n
}

// DeliveryResult is what became of an event.
type DeliveryResult struct {
	Row        Row     `json:"session"` // with [OutcomeDelivered], [OutcomeResumed], [OutcomeStarted] or [OutcomeRepeated]
	DeliveryID string  `json:"delivery"`
	Receipt    Receipt `json:"receipt"`
}

// KeysEffect is what keys did beside moving something on the screen.
type KeysEffect string

// PeekResult is what a session's terminal shows.
type PeekResult struct {
	Row  Row    `json:"session"`
	Text string `json:"text"` // the visible lines, without the empty ones at the end; it may hold anything that the agent shows
}

// RestartRow is what a roll did to one session.
type RestartRow struct {
	Ref        Ref      `json:"ref"`
	ID         string   `json:"id,omitempty"`
	TmuxTarget string   `json:"tmuxTarget"`
	Outcome    Outcome  `json:"outcome"`
	Detail     string   `json:"detail,omitempty"`
	Stale      []string `json:"stale"` // names whose values differ from what the env file declares, in name order
}

// RestartResult is what a roll did.
type RestartResult struct {
	DryRun    bool         `json:"dryRun"`
	Rows      []RestartRow `json:"sessions"`                 // by ref
	Malformed []int        `json:"malformedLines,omitempty"` // numbers of the env file's lines that cannot be used
	Refused   []string     `json:"refused,omitempty"`        // names that it declares and that no pane gets
	Warning   string       `json:"warning,omitempty"`        // of who may read the file
}

// Failed counts the sessions that are not as they should be: failed, or verified and stale.
func (r RestartResult) Failed() (n int) {
	for _, row := range r.Rows {
		if row.Outcome == OutcomeFailed || row.Outcome == OutcomeStale {
			n++
		}
	}
	return n
}

// Intent is what has to be known, after a crash, to find out whether a text arrived. It may be stored: it holds no text.
type Intent struct {
	Sum          Sum    `json:"sum"`
	Conversation string `json:"conversation,omitempty"`
	Offset       Offset `json:"place,omitempty"` // see [InputVerifier]
}

// Receipt is how well a text is known to have arrived.
type Receipt string

// Survey is what status shows of the sessions.
type Survey struct {
	Rows  []Row // of all sessions
	Drift Drift // of the running ones
}

// The receipts of a text that was typed.
const (
	ReceiptTyped    Receipt = "typed"    // it went into the pane with its submit key; the harness gives no proof
	ReceiptAccepted Receipt = "accepted" // the agent's own record shows it
)

// The effects of keys. All but the first are answers: they are recorded with who gave them.
const (
	KeysNone KeysEffect = ""
	KeysDeny KeysEffect = "deny" // the agent's question was turned down, or its menu closed
	KeysMode KeysEffect = "mode" // what the agent may do without asking was switched
)

// The outcomes of a roll beside [OutcomeFailed].
const (
	OutcomeSkipped      Outcome = "skipped"        // nothing was touched; Detail says why
	OutcomeWouldRestart Outcome = "would-restart"  // of a dry run
	OutcomeVerified     Outcome = "verified"       // it was restarted, and holds what the env file declares
	OutcomeStale        Outcome = "verified-stale" // it was restarted, and holds something else
	OutcomeUnverified   Outcome = "unverified"     // it was restarted, and what it holds cannot be read
)

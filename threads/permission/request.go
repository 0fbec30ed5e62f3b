package permission

import (
	"fmt"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// State says how far a permission request is.
type State string

// The states of a [Request].
const (
	New      State = ""         // reported; whether it is still open is not known
	Open     State = "open"     // it was posted
	Deciding State = "deciding" // somebody decided, and the agent may have got the answer
	Decided  State = "decided"  // the agent got the answer
	Ended    State = "over"     // answered in the terminal, or given up by the agent
	InDoubt  State = "unsure"   // somebody decided, and it ended: whether the agent got the answer is not known
)

// Request is what is stored of a permission request, by the value of its buttons.
type Request struct {
	Token         string    `json:"token"` // the agent's, see [sessions.PermissionRequest]
	DialogExcerpt string    `json:"mark,omitempty"`
	Decidable     bool      `json:"permit,omitempty"` // buttons decide it; else it is answered in the terminal
	At            time.Time `json:"at"`
	Text          string    `json:"text,omitempty"` // of the message, until it says what became of the request
	TS            string    `json:"ts,omitempty"`   // of the message

	State     State            `json:"state,omitempty"`
	Verdict   sessions.Verdict `json:"verdict,omitempty"`
	HasReason bool             `json:"reason,omitempty"` // the agent is told one
	DecidedBy string           `json:"by,omitempty"`     // member id
	Ended     time.Time        `json:"ended,omitzero"`

	// Delivering says that this run of the bot is giving the agent the answer. A request that is [Deciding] without it was left so
	// by an earlier run.
	Delivering bool `json:"-"`
}

// FromAsk is the request for what an agent asks. text is how the thread shows it, and whole says that this is all of it:
// what is not shown whole is not decided in the thread.
func FromAsk(a sessions.PermissionRequest, text string, whole bool) Request {
	return Request{Token: a.Token, DialogExcerpt: shownExcerpt(a.DialogExcerpt(), text), Decidable: a.Decidable && whole, At: a.At, Text: text}
}

// shownExcerpt is the mark of a request as far as the thread shows it: what was removed there is not stored either.
func shownExcerpt(mark, text string) string {
	if strings.Contains(strings.Join(strings.Fields(text), ""), chat.Escape(mark)) {
		return mark
	}
	return ""
}

// IsOpen reports whether the agent may still wait for the answer.
func (r Request) IsOpen() bool { return r.State == New || r.State == Open || r.State == Deciding }

// IsShownOpen reports whether the message in the thread shows the request as an open one.
func (r Request) IsShownOpen() bool { return r.State == Open || r.State == Deciding }

// WhyUndecidable says why the request cannot be decided in the thread; empty: it can.
func (r Request) WhyUndecidable() string {
	switch {
	case r.State == Open && !r.Decidable:
		return "This question is answered in the terminal."
	case r.State != Open:
		return "Already decided. " + r.Outcome()
	}
	return ""
}

// Outcome says what became of the request.
func (r Request) Outcome() string {
	at := chat.DateText(chat.TimeTS(r.Ended))
	did := "Denied"
	if r.Verdict == sessions.VerdictAllow {
		did = "Allowed"
	}
	if r.HasReason {
		did += ", with a reason,"
	}
	switch r.State {
	case Decided:
		return fmt.Sprintf("%s by <@%s> at %s.", did, r.DecidedBy, at)
	case InDoubt:
		return fmt.Sprintf("<@%s> decided at %s, and I cannot tell whether the agent heard it: %s. Look at the agent.", r.DecidedBy, at, did)
	case Deciding:
		return fmt.Sprintf("<@%s> is just deciding it.", r.DecidedBy)
	case Ended:
		return fmt.Sprintf("Answered in the terminal, or not asked any more, since %s.", at)
	}
	return "It is open."
}

// Message is the text and the buttons of the message in the thread; name is the value of the buttons.
func (r Request) Message(name string) (text string, buttons []chat.Button) {
	switch {
	case r.State != Open:
		return r.Text + "\n" + r.Outcome(), nil
	case !r.Decidable:
		return r.Text + "\nAnswer it in the terminal.", nil
	}
	return r.Text, []chat.Button{{Label: "Allow", Action: chat.ActionAllow, Value: name, Style: "primary"},
		{Label: "Deny", Action: chat.ActionDeny, Value: name, Style: "danger"}, {Label: "Deny with a reason…", Action: chat.ActionReason, Value: name}}
}

// maxEnded is how many requests that ended are remembered, for true answers to late clicks.
const maxEnded = 50

// Requests are the requests of one session, by the value of their buttons.
type Requests map[string]Request

// Find is the name of the request with the agent's token; empty: there is none.
func (all Requests) Find(token string) string {
	for name, r := range all {
		if r.Token == token {
			return name
		}
	}
	return ""
}

// HasOpen reports whether the thread shows open requests.
func (all Requests) HasOpen() bool {
	for _, r := range all {
		if r.IsShownOpen() {
			return true
		}
	}
	return false
}

// HasDecidable reports whether one of them can be decided in the thread.
func (all Requests) HasDecidable() bool {
	for _, r := range all {
		if r.State == Open && r.Decidable {
			return true
		}
	}
	return false
}

// Prune forgets the oldest of the requests that ended, where there are too many.
func (all Requests) Prune() {
	for {
		oldest, n := "", 0
		for name, r := range all {
			if r.IsOpen() {
				continue
			}
			if n++; oldest == "" || r.Ended.Before(all[oldest].Ended) {
				oldest = name
			}
		}
		if n <= maxEnded {
			return
		}
		delete(all, oldest)
	}
}

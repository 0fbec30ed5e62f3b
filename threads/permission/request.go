package permission

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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
	Token         string `json:"token"` // the agent's, see [sessions.PermissionRequest]
	DialogExcerpt string `json:"mark,omitempty"`
	Decidable     bool   `json:"permit,omitempty"` // buttons decide it; else it is answered in the terminal
	Plan          bool   `json:"plan,omitempty"`   // it is about a plan
	// Questions are answered by a choice each. None: it is asked for permission, or about a plan.
	Questions []sessions.Question `json:"questions,omitempty"`
	At        time.Time           `json:"at"`
	Text      string              `json:"text,omitempty"` // of the message, until it says what became of the request
	HasFile   bool                `json:"file,omitempty"` // all of it is in a file above the message
	TS        string              `json:"ts,omitempty"`   // of the message

	State     State            `json:"state,omitempty"`
	Verdict   sessions.Verdict `json:"verdict,omitempty"`
	HasReason bool             `json:"reason,omitempty"` // the agent is told one
	DecidedBy string           `json:"by,omitempty"`     // member id
	Choice    string           `json:"choice,omitempty"` // what was chosen, as a text for the message
	Ended     time.Time        `json:"ended,omitzero"`

	// Delivering says that this run of the bot is giving the agent the answer. A request that is [Deciding] without it was left so
	// by an earlier run.
	Delivering bool `json:"-"`
}

// FromAsk is the request for what an agent asks. text is how the thread shows it, and whole says that this is all of it:
// what is not shown whole is not decided in the thread.
func FromAsk(a sessions.PermissionRequest, text string, whole bool) Request {
	whole = whole && !slices.ContainsFunc(a.Questions, hasBlankLabel)
	if !whole {
		a.Questions = nil
	}
	return Request{Token: a.Token, DialogExcerpt: shownExcerpt(a.DialogExcerpt(), text), Decidable: a.Decidable && whole, At: a.At, Text: text,
		Plan: a.Plan != "", Questions: a.Questions}
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
	did := r.describeDecision()
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

// describeDecision says what was decided, so that "by somebody" can follow.
func (r Request) describeDecision() string {
	allowed := r.Verdict == sessions.VerdictAllow
	did := "Denied"
	switch {
	case allowed && len(r.Questions) > 0:
		return "Answered " + r.Choice
	case len(r.Questions) > 0:
		did = "Declined"
	case allowed && r.Plan:
		return "Plan approved" + r.Choice
	case r.Plan:
		did = "Plan sent back"
	case allowed:
		did = "Allowed"
	}
	if r.HasReason {
		did += ", with a reason,"
	}
	return did
}

// MaxChoiceButtons is how many options of a question are buttons of their own; more are in the form.
const MaxChoiceButtons = 8

// Message is the text and the buttons of the message in the thread; name is the value of the buttons.
func (r Request) Message(name string) (text string, buttons []chat.Button) {
	switch {
	case r.State != Open:
		return r.Text + "\n" + r.Outcome(), nil
	case !r.Decidable:
		return r.Text + "\nAnswer it in the terminal.", nil
	case len(r.Questions) > 0:
		return r.Text, questionButtons(r.Questions, name)
	case r.Plan:
		return r.Text, []chat.Button{{Label: "Approve", Action: chat.ActionAllow, Value: name, Style: "primary"},
			{Label: "Approve, accept edits", Action: chat.ActionApproveEdits, Value: name}, {Label: "Keep planning…", Action: chat.ActionReason, Value: name}}
	}
	return r.Text, []chat.Button{{Label: "Allow", Action: chat.ActionAllow, Value: name, Style: "primary"},
		{Label: "Deny", Action: chat.ActionDeny, Value: name, Style: "danger"}, {Label: "Deny with a reason…", Action: chat.ActionReason, Value: name}}
}

// questionButtons are the options of a single question that has one answer, else a button that opens a form.
func questionButtons(questions []sessions.Question, name string) []chat.Button {
	decline := chat.Button{Label: "Decline", Action: chat.ActionDeny, Value: name, Style: "danger"}
	if len(questions) > 1 || questions[0].Multiple || len(questions[0].Options) > MaxChoiceButtons {
		return []chat.Button{{Label: "Answer…", Action: chat.ActionAnswer, Value: name, Style: "primary"}, decline}
	}
	var buttons []chat.Button
	for i, o := range questions[0].Options {
		buttons = append(buttons, chat.Button{Label: visible(o.Label), Action: chat.ActionChoose + strconv.Itoa(i+1), Value: name})
	}
	return append(buttons, chat.Button{Label: "Other…", Action: chat.ActionAnswer, Value: name}, decline)
}

// Answer is the answer to one question: options by their index, and a person's own words.
type Answer struct {
	Options []int
	Words   string
}

// NoAnswerError says which question has no answer, or one that it does not offer.
type NoAnswerError struct{ Question int }

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("question %d needs an answer", e.Question+1)
}

// Choose returns the answers as the agent gets them, one for each question, and as the message shows them: a person's own words only
// the agent gets. [*NoAnswerError] when one is missing.
func (r Request) Choose(answers []Answer) (texts []string, shown string, err error) {
	var chosen []string
	for i, q := range r.Questions {
		if i >= len(answers) {
			return nil, "", &NoAnswerError{i}
		}
		labels, names := answerLabels(q, answers[i])
		if len(labels) == 0 {
			return nil, "", &NoAnswerError{i}
		}
		texts = append(texts, strings.Join(labels, ", "))
		chosen = append(chosen, strings.Join(names, ", "))
	}
	return texts, strings.Join(chosen, "; "), nil
}

// Answers returns what the agent is answered beside yes or no, and how the message shows it.
func (r Request) Answers(verdict sessions.Verdict, answers []Answer, acceptEdits bool) (texts []string, shown string, err error) {
	switch {
	case verdict != sessions.VerdictAllow:
		return nil, "", nil
	case len(r.Questions) > 0:
		return r.Choose(answers)
	case r.Plan && acceptEdits:
		return nil, ", with edits accepted unasked,", nil
	case len(answers) > 0 || acceptEdits:
		return nil, "", errNoSuchChoice
	}
	return nil, "", nil
}

var errNoSuchChoice = errors.New("this question does not have that answer")

// answerLabels returns an answer as the agent gets it and as the message shows it; none when it is not one that the question takes.
func answerLabels(q sessions.Question, a Answer) (labels, shown []string) {
	for _, i := range a.Options {
		if i < 0 || i >= len(q.Options) {
			return nil, nil
		}
		labels = append(labels, q.Options[i].Label)
		shown = append(shown, "`"+chat.Escape(strings.ReplaceAll(visible(q.Options[i].Label), "`", "'"))+"`")
	}
	if words := strings.TrimSpace(a.Words); words != "" {
		labels, shown = append(labels, words), append(shown, "in their own words")
	}
	if len(labels) > 1 && !q.Multiple {
		return nil, nil
	}
	return labels, shown
}

// hasBlankLabel reports an option of which nothing can be seen: a button cannot show it.
func hasBlankLabel(q sessions.Question) bool {
	return slices.ContainsFunc(q.Options, func(o sessions.QuestionOption) bool { return visible(o.Label) == "" })
}

// visible is a label on one line, without characters that cannot be seen.
func visible(label string) string {
	return strings.TrimSpace(strings.Join(strings.FieldsFunc(label, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }), " "))
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

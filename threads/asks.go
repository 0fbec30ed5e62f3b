package threads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
)

// AskState says how far a question of the agent's is.
type AskState string

// The states of an [Ask].
const (
	AskNew      AskState = ""         // reported; whether it is still open is not known
	AskOpen     AskState = "open"     // it was posted
	AskDeciding AskState = "deciding" // somebody decided, and the agent may have heard
	AskDecided  AskState = "decided"  // the agent was given the answer
	AskOver     AskState = "over"     // answered in the terminal, or given up
	AskUnsure   AskState = "unsure"   // somebody decided, and it is over: whether the agent heard him is not known
)

// Ask is what is stored of a question of the agent's, by the token of its buttons.
type Ask struct {
	Token  string    `json:"token"` // the agent's end of it, see [sessions.Ask]
	Mark   string    `json:"mark,omitempty"`
	Permit bool      `json:"permit,omitempty"`
	At     time.Time `json:"at"`
	Text   string    `json:"text,omitempty"` // of the message, until it says what became of the question
	TS     string    `json:"ts,omitempty"`   // of the message

	State   AskState         `json:"state,omitempty"`
	Verdict sessions.Verdict `json:"verdict,omitempty"`
	Reason  bool             `json:"reason,omitempty"` // the agent was told one
	By      string           `json:"by,omitempty"`     // member id
	Ended   time.Time        `json:"ended,omitzero"`
}

// open reports whether the agent may still wait for the answer.
func (a Ask) open() bool { return a.State == AskNew || a.State == AskOpen || a.State == AskDeciding }

// The actions of the buttons under a question of the agent's.
const (
	ActionAllow  = "ask_allow"
	ActionDeny   = "ask_deny"
	ActionReason = "ask_reason" // deny, with a reason that is asked for first
)

// Names of the events about questions of agents. They name a question by a sum of its token.
const (
	EventAsked   = "channel.asked"
	EventDecided = "channel.ask_decided"
	EventAskOver = "channel.ask_over"
)

// asksKept is how many questions that are over are remembered, for true answers to late clicks.
const asksKept = 50

// takeAsks remembers what the agent asks. It is saved by the caller, with the place up to which the reports were read.
func (t *thread) takeAsks(noted sessions.Noted) (fresh []string) {
	for _, a := range noted.Asks {
		if t.askOf(a.Token) != "" {
			continue
		}
		name := token(t.id)
		text, whole := t.m.askText(t.ref, a)
		t.b.Asks[name] = Ask{Token: a.Token, Mark: shownMark(a.Mark(), text), Permit: a.Permit && whole, At: a.At, Text: text}
		fresh = append(fresh, name)
	}
	return fresh
}

// shownMark is the mark of a question as far as the thread shows it: what was taken out there is not stored either.
func shownMark(mark, text string) string {
	if strings.Contains(strings.Join(strings.Fields(text), ""), escape(mark)) {
		return mark
	}
	return ""
}

// askOf is the name of the question with that token of the agent's; empty: there is none.
func (t *thread) askOf(token string) string {
	for name, a := range t.b.Asks {
		if a.Token == token {
			return name
		}
	}
	return ""
}

func (m *Manager) askText(ref sessions.Ref, a sessions.Ask) (text string, whole bool) {
	if m.o.AskText == nil {
		return "The agent asks: " + escape(a.Tool+" "+a.Command+a.File), true
	}
	return m.o.AskText(ref, a)
}

// attendRetry is how long a question that cannot be reached is left alone.
const attendRetry = 5 * time.Second

// attend waits beside the thread for the end of a question. One of an earlier run may have been posted already.
func (t *thread) attend(name string, earlier bool) {
	a := t.b.Asks[name]
	q := sessions.AttendRequest{Ref: t.ref, ID: t.id, Token: a.Token, Mark: a.Mark,
		Open: func() { t.do(func(ctx context.Context) { t.askOpen(ctx, name, earlier) }) }}
	t.m.start(func(context.Context) {
		for fails := 0; ; fails++ {
			err := t.m.o.Noter.Attend(t.m.watch, q)
			if err == nil {
				t.do(func(ctx context.Context) { t.askEnded(ctx, name) })
				return
			}
			if fails == 0 && t.m.watch.Err() == nil {
				t.m.o.Log.Warn("a question of an agent's cannot be reached; it is tried again", "ref", t.ref, "err", err)
			}
			if !t.m.rest(attendRetry) {
				return
			}
		}
	})
}

// askOpen posts a question that waits for an answer, with its buttons. One that somebody decided, and that is open all the
// same after a restart, was not answered.
func (t *thread) askOpen(ctx context.Context, name string, earlier bool) {
	a, ok := t.b.Asks[name]
	switch {
	case !ok || t.gone || !a.open():
		return
	case a.State == AskDeciding && !t.deciding[name]:
		a = a.reopened()
	case a.State == AskNew:
		a.State = AskOpen
		_ = t.m.outbox.put(&letter{Post: t.askPost(name, a), Since: a.At, Tried: earlier}) // it was logged; the terminal asks too
		t.askEvent(ctx, EventAsked, name, nil)
	}
	t.b.Asks[name] = a
	t.waits(a.At, nil)
	t.keep()
	t.showAsks()
}

// showAsks has the thread's status say that the agent waits, or not any more.
func (t *thread) showAsks() {
	t.work.waits = t.openAsks()
	t.m.working.want(t)
}

// reopened is a question that nobody decided after all.
func (a Ask) reopened() Ask {
	a.State, a.Verdict, a.By, a.Reason, a.Ended = AskOpen, "", "", false, time.Time{}
	return a
}

// askEnded takes that nobody waits for the answer any more.
func (t *thread) askEnded(ctx context.Context, name string) {
	a, ok := t.b.Asks[name]
	if !ok || t.gone || t.deciding[name] { // who decides hears it too
		return
	}
	switch a.State {
	case AskNew:
		delete(t.b.Asks, name) // nobody saw it
		t.keep()
	case AskOpen:
		t.endAsk(ctx, name, AskOver, EventAskOver)
	case AskDeciding:
		t.endAsk(ctx, name, AskUnsure, EventAskOver)
	}
}

// endAsk has the message say what became of a question, without buttons.
func (t *thread) endAsk(ctx context.Context, name string, s AskState, event string) {
	a := t.b.Asks[name]
	if a.Ended.IsZero() {
		a.Ended = t.m.now()
	}
	a.State = s
	t.m.outbox.update(t.askPost(name, a), a.TS)
	if s != AskUnsure {
		a.Text = ""
	}
	t.b.Asks[name] = a
	t.askEvent(ctx, event, name, map[string]any{"verdict": a.Verdict, "user": a.By})
	t.forgetAsks()
	t.rests()
	t.keep()
	t.showAsks()
}

// answered settles what was left in doubt: the agent's hook reports that it handed over an answer.
func (t *thread) answered(ctx context.Context, answers []sessions.Answered) {
	for _, got := range answers {
		name := t.askOf(got.Token)
		if a := t.b.Asks[name]; a.State == AskUnsure || a.State == AskDeciding && !t.deciding[name] {
			t.endAsk(ctx, name, AskDecided, EventDecided)
		}
	}
}

// forgetAsks keeps the number of remembered questions small.
func (t *thread) forgetAsks() {
	for {
		oldest, n := "", 0
		for name, a := range t.b.Asks {
			if a.open() {
				continue
			}
			if n++; oldest == "" || a.Ended.Before(t.b.Asks[oldest].Ended) {
				oldest = name
			}
		}
		if n <= asksKept {
			return
		}
		delete(t.b.Asks, oldest)
	}
}

func (t *thread) askEvent(ctx context.Context, event, name string, more map[string]any) {
	sum := sha256.Sum256([]byte(name))
	fields := map[string]any{"channel": t.b.Channel, "thread": t.b.Root, "ask": hex.EncodeToString(sum[:6])}
	for key, value := range more {
		if value != "" && value != sessions.Verdict("") {
			fields[key] = value
		}
	}
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: event, Level: slog.LevelInfo, ID: t.id, Ref: t.ref, Fields: fields})
}

// askPost is the message that shows what is asked, with its buttons, or what became of it.
func (t *thread) askPost(name string, a Ask) Post {
	p := t.message(a.Text, name)
	switch {
	case a.State != AskOpen:
		p.Text += "\n" + askFate(a)
	case !a.Permit:
		p.Text += "\nAnswer it in the terminal."
	default:
		p.Buttons = []Button{{Label: "Allow", Action: ActionAllow, Value: name, Style: "primary"},
			{Label: "Deny", Action: ActionDeny, Value: name, Style: "danger"}, {Label: "Deny with a reason…", Action: ActionReason, Value: name}}
	}
	return p
}

// askFate is what became of a question.
func askFate(a Ask) string {
	at := moment(TimeTS(a.Ended))
	did := "Denied"
	if a.Verdict == sessions.VerdictAllow {
		did = "Allowed"
	}
	if a.Reason {
		did += ", with a reason,"
	}
	switch a.State {
	case AskDecided:
		return fmt.Sprintf("%s by <@%s> at %s.", did, a.By, at)
	case AskUnsure:
		return fmt.Sprintf("<@%s> decided at %s, and I cannot tell whether the agent heard it: %s. Look at the agent.", a.By, at, did)
	case AskDeciding:
		return fmt.Sprintf("<@%s> is just deciding it.", a.By)
	case AskOver:
		return fmt.Sprintf("Answered in the terminal, or not asked any more, since %s.", at)
	}
	return "It is open."
}

// Ruling is what somebody decided about a question of an agent's.
type Ruling struct {
	Token   string // the button's value
	Verdict sessions.Verdict
	Reason  string // for the agent
	Actor   authz.Actor
	TS      string // of the message with the button; may be empty
}

// Asked says whether a question of an agent's can be decided now; else why not, in words for the one who would.
func (m *Manager) Asked(ctx context.Context, token string) (why string, ok bool) {
	t := m.asking(token)
	if t == nil {
		return askGone, false
	}
	why, there := ask(ctx, t, func(context.Context) string { return t.mayRule(token) })
	return why, there && why == ""
}

const askGone = "This session is gone, and the question with it."

func (m *Manager) asking(token string) *thread {
	id, _, _ := cutToken(token)
	return m.of(id)
}

// Rule decides a question of an agent's, once. The answer is for the one who decided, and true also for a second click,
// after a restart, and when somebody was faster in the terminal.
func (m *Manager) Rule(ctx context.Context, r Ruling) (string, error) {
	switch verdict, _ := m.o.Policy().Judge(r.Actor); verdict {
	case authz.Denied, authz.Silent:
		return "", ErrDenied
	case authz.Waiting:
		return suspendedText, nil
	}
	t := m.asking(r.Token)
	if t == nil {
		return askGone, nil
	}
	answer := make(chan string, 1)
	t.do(func(ctx context.Context) { t.rule(ctx, r, answer) })
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("decide: %w", ctx.Err())
	}
}

// mayRule is why a question cannot be decided; empty: it can.
func (t *thread) mayRule(name string) string {
	a, ok := t.b.Asks[name]
	switch {
	case t.gone || !ok:
		return "This question is no longer open."
	case a.State == AskOpen && !a.Permit:
		return "This question is answered in the terminal."
	case a.State != AskOpen:
		return "Already decided. " + askFate(a)
	}
	return ""
}

// rule writes down who decides what, and hands it to the agent beside the thread.
func (t *thread) rule(_ context.Context, r Ruling, answer chan<- string) {
	if why := t.mayRule(r.Token); why != "" {
		answer <- why
		return
	}
	a := t.b.Asks[r.Token]
	before := a
	a.State, a.Verdict, a.By, a.Reason, a.Ended = AskDeciding, r.Verdict, r.Actor.User, r.Reason != "", t.m.now()
	if r.TS != "" {
		a.TS = r.TS
	}
	t.b.Asks[r.Token] = a
	if err := t.save(); err != nil {
		t.b.Asks[r.Token] = before
		answer <- "I could not store this decision, so nothing was decided: " + escape(err.Error())
		return
	}
	t.deciding[r.Token] = true
	q := sessions.AnswerRequest{Ref: t.ref, ID: t.id, Mark: a.Mark, Answer: sessions.Answer{Token: a.Token, Verdict: r.Verdict, Reason: r.Reason}}
	if !t.m.start(func(ctx context.Context) {
		err := t.m.o.Noter.Answer(ctx, q)
		t.do(func(ctx context.Context) { answer <- t.ruled(ctx, r.Token, err) })
	}) {
		answer <- "I am just stopping. Try again when I am back."
	}
}

// ruled takes whether the agent took the answer.
func (t *thread) ruled(ctx context.Context, name string, err error) string {
	delete(t.deciding, name)
	a := t.b.Asks[name]
	switch {
	case err == nil:
		t.endAsk(ctx, name, AskDecided, EventDecided)
	case errors.Is(err, sessions.ErrAskOver):
		t.b.Asks[name] = a.reopened()
		t.endAsk(ctx, name, AskOver, EventAskOver)
		return "Too late. " + askFate(t.b.Asks[name])
	case errors.Is(err, sessions.ErrInDoubt):
		t.endAsk(ctx, name, AskUnsure, EventAskOver)
	case t.m.work.Err() != nil: // the next start finds out
	default:
		t.m.o.Log.Warn("an answer could not be given to an agent", "ref", t.ref, "err", err)
		t.b.Asks[name] = a.reopened()
		t.keep()
		t.attend(name, true) // it may have ended meanwhile
		return "The agent could not be reached, so nothing was decided. Try again: " + escape(err.Error())
	}
	return askFate(t.b.Asks[name])
}

// openAsks reports whether questions of the agent's stand in the thread with their buttons.
func (t *thread) openAsks() bool {
	for _, a := range t.b.Asks {
		if a.State == AskOpen || a.State == AskDeciding {
			return true
		}
	}
	return false
}

// hasButtons reports whether one of them can be decided here.
func (t *thread) hasButtons() bool {
	for _, a := range t.b.Asks {
		if a.State == AskOpen && a.Permit {
			return true
		}
	}
	return false
}

// attendAll takes up the questions that were open when the bot ended.
func (t *thread) attendAll() {
	for name, a := range t.b.Asks {
		if a.open() {
			t.attend(name, true)
		}
	}
}

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
	"the-loop/threads/chat"
)

// PermissionState says how far a question of the agent's is.
type PermissionState string

// The states of an [PermissionRequest].
const (
	PermissionNew      PermissionState = ""         // reported; whether it is still open is not known
	PermissionOpen     PermissionState = "open"     // it was posted
	PermissionDeciding PermissionState = "deciding" // somebody decided, and the agent may have heard
	PermissionDecided  PermissionState = "decided"  // the agent was given the answer
	PermissionEnded    PermissionState = "over"     // reconcilePermissions in the terminal, or given up
	PermissionInDoubt  PermissionState = "unsure"   // somebody decided, and it is over: whether the agent heard him is not known
)

// PermissionRequest is what is stored of a question of the agent's, by the token of its buttons.
type PermissionRequest struct {
	Token         string    `json:"token"` // the agent's end of it, see [sessions.PermissionRequest]
	DialogExcerpt string    `json:"mark,omitempty"`
	Decidable     bool      `json:"permit,omitempty"`
	At            time.Time `json:"at"`
	Text          string    `json:"text,omitempty"` // of the message, until it says what became of the question
	TS            string    `json:"ts,omitempty"`   // of the message

	State     PermissionState  `json:"state,omitempty"`
	Verdict   sessions.Verdict `json:"verdict,omitempty"`
	HasReason bool             `json:"reason,omitempty"` // the agent was told one
	DecidedBy string           `json:"by,omitempty"`     // member id
	Ended     time.Time        `json:"ended,omitzero"`
}

// open reports whether the agent may still wait for the answer.
func (a PermissionRequest) isOpen() bool {
	return a.State == PermissionNew || a.State == PermissionOpen || a.State == PermissionDeciding
}

// The actions of the buttons under a question of the agent's.
const (
	ActionAllow  = "ask_allow"
	ActionDeny   = "ask_deny"
	ActionReason = "ask_reason" // deny, with a reason that is asked for first
)

// Names of the events about questions of agents. They name a question by a sum of its token.
const (
	EventPermissionRequested = "channel.asked"
	EventPermissionDecided   = "channel.ask_decided"
	EventPermissionEnded     = "channel.ask_over"
)

// maxEndedPermissions is how many questions that are over are remembered, for true answers to late clicks.
const maxEndedPermissions = 50

// addPermissions remembers what the agent asks. It is saved by the caller, with the place up to which the reports were read.
func (t *thread) addPermissions(noted sessions.ReportBatch) (fresh []string) {
	for _, a := range noted.PermissionRequests {
		if t.findPermission(a.Token) != "" {
			continue
		}
		name := token(t.sessionID)
		text, whole := t.m.permissionText(t.ref, a)
		t.b.PermissionRequests[name] = PermissionRequest{Token: a.Token, DialogExcerpt: shownExcerpt(a.DialogExcerpt(), text), Decidable: a.Decidable && whole, At: a.At, Text: text}
		fresh = append(fresh, name)
	}
	return fresh
}

// shownExcerpt is the mark of a question as far as the thread shows it: what was taken out there is not stored either.
func shownExcerpt(mark, text string) string {
	if strings.Contains(strings.Join(strings.Fields(text), ""), escape(mark)) {
		return mark
	}
	return ""
}

// findPermission is the name of the question with that token of the agent's; empty: there is none.
func (t *thread) findPermission(token string) string {
	for name, a := range t.b.PermissionRequests {
		if a.Token == token {
			return name
		}
	}
	return ""
}

func (m *Manager) permissionText(ref sessions.Ref, a sessions.PermissionRequest) (text string, whole bool) {
	if m.o.PermissionText == nil {
		return "The agent asks: " + escape(a.Tool+" "+a.Command+a.File), true
	}
	return m.o.PermissionText(ref, a)
}

// permissionRetry is how long a question that cannot be reached is left alone.
const permissionRetry = 5 * time.Second

// watchPermission waits beside the thread for the end of a question. One of an earlier run may have been posted already.
func (t *thread) watchPermission(name string, earlier bool) {
	a := t.b.PermissionRequests[name]
	q := sessions.WaitResolvedRequest{Ref: t.ref, ID: t.sessionID, Token: a.Token, DialogExcerpt: a.DialogExcerpt,
		OnOpen: func() { t.do(func(ctx context.Context) { t.onPermissionOpen(ctx, name, earlier) }) }}
	t.m.start(func(context.Context) {
		for fails := 0; ; fails++ {
			err := t.m.o.Reports.WaitResolved(t.m.watchCtx, q)
			if err == nil {
				t.do(func(ctx context.Context) { t.onPermissionEnded(ctx, name) })
				return
			}
			if fails == 0 && t.m.watchCtx.Err() == nil {
				t.m.o.Log.Warn("a question of an agent's cannot be reached; it is tried again", "ref", t.ref, "err", err)
			}
			if !t.m.sleep(permissionRetry) {
				return
			}
		}
	})
}

// onPermissionOpen posts a question that waits for an answer, with its buttons. One that somebody decided, and that is open all the
// same after a restart, was not answered.
func (t *thread) onPermissionOpen(ctx context.Context, name string, earlier bool) {
	a, ok := t.b.PermissionRequests[name]
	switch {
	case !ok || t.unbound || !a.isOpen():
		return
	case a.State == PermissionDeciding && !t.decidingPermissions[name]:
		a = a.reopened()
	case a.State == PermissionNew:
		a.State = PermissionOpen
		_ = t.m.outbox.put(&OutboxMessage{Post: t.permissionPost(name, a), Since: a.At, MaybePosted: earlier}) // it was logged; the terminal asks too
		t.emitPermissionEvent(ctx, EventPermissionRequested, name, nil)
	}
	t.b.PermissionRequests[name] = a
	t.setWaiting(a.At, nil)
	t.saveBestEffort()
	t.updateDialogStatus()
}

// updateDialogStatus has the thread's status say that the agent waits, or not any more.
func (t *thread) updateDialogStatus() {
	t.turn.dialogOpen = t.hasOpenPermissions()
	t.m.statusLoop.requestCheck(t)
}

// reopened is a question that nobody decided after all.
func (a PermissionRequest) reopened() PermissionRequest {
	a.State, a.Verdict, a.DecidedBy, a.HasReason, a.Ended = PermissionOpen, "", "", false, time.Time{}
	return a
}

// onPermissionEnded takes that nobody waits for the answer any more.
func (t *thread) onPermissionEnded(ctx context.Context, name string) {
	a, ok := t.b.PermissionRequests[name]
	if !ok || t.unbound || t.decidingPermissions[name] { // who decides hears it too
		return
	}
	switch a.State {
	case PermissionNew:
		delete(t.b.PermissionRequests, name) // nobody saw it
		t.saveBestEffort()
	case PermissionOpen:
		t.endPermission(ctx, name, PermissionEnded, EventPermissionEnded)
	case PermissionDeciding:
		t.endPermission(ctx, name, PermissionInDoubt, EventPermissionEnded)
	}
}

// endPermission has the message say what became of a question, without buttons.
func (t *thread) endPermission(ctx context.Context, name string, s PermissionState, event string) {
	a := t.b.PermissionRequests[name]
	if a.Ended.IsZero() {
		a.Ended = t.m.now()
	}
	a.State = s
	t.m.outbox.update(t.permissionPost(name, a), a.TS)
	if s != PermissionInDoubt {
		a.Text = ""
	}
	t.b.PermissionRequests[name] = a
	t.emitPermissionEvent(ctx, event, name, map[string]any{"verdict": a.Verdict, "user": a.DecidedBy})
	t.prunePermissions()
	t.clearWaiting()
	t.saveBestEffort()
	t.updateDialogStatus()
}

// reconcilePermissions settles what was left in doubt: the agent's hook reports that it handed over an answer.
func (t *thread) reconcilePermissions(ctx context.Context, answers []sessions.AnsweredPermission) {
	for _, got := range answers {
		name := t.findPermission(got.Token)
		if a := t.b.PermissionRequests[name]; a.State == PermissionInDoubt || a.State == PermissionDeciding && !t.decidingPermissions[name] {
			t.endPermission(ctx, name, PermissionDecided, EventPermissionDecided)
		}
	}
}

// prunePermissions keeps the number of remembered questions small.
func (t *thread) prunePermissions() {
	for {
		oldest, n := "", 0
		for name, a := range t.b.PermissionRequests {
			if a.isOpen() {
				continue
			}
			if n++; oldest == "" || a.Ended.Before(t.b.PermissionRequests[oldest].Ended) {
				oldest = name
			}
		}
		if n <= maxEndedPermissions {
			return
		}
		delete(t.b.PermissionRequests, oldest)
	}
}

func (t *thread) emitPermissionEvent(ctx context.Context, event, name string, more map[string]any) {
	sum := sha256.Sum256([]byte(name))
	fields := map[string]any{"channel": t.b.Channel, "thread": t.b.Root, "ask": hex.EncodeToString(sum[:6])}
	for key, value := range more {
		if value != "" && value != sessions.Verdict("") {
			fields[key] = value
		}
	}
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: event, Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref, Fields: fields})
}

// permissionPost is the message that shows what is asked, with its buttons, or what became of it.
func (t *thread) permissionPost(name string, a PermissionRequest) chat.Post {
	p := t.newPost(a.Text, name)
	switch {
	case a.State != PermissionOpen:
		p.Text += "\n" + permissionOutcomeText(a)
	case !a.Decidable:
		p.Text += "\nAnswer it in the terminal."
	default:
		p.Buttons = []chat.Button{{Label: "Allow", Action: ActionAllow, Value: name, Style: "primary"},
			{Label: "Deny", Action: ActionDeny, Value: name, Style: "danger"}, {Label: "Deny with a reason…", Action: ActionReason, Value: name}}
	}
	return p
}

// permissionOutcomeText is what became of a question.
func permissionOutcomeText(a PermissionRequest) string {
	at := dateText(chat.TimeTS(a.Ended))
	did := "Denied"
	if a.Verdict == sessions.VerdictAllow {
		did = "Allowed"
	}
	if a.HasReason {
		did += ", with a reason,"
	}
	switch a.State {
	case PermissionDecided:
		return fmt.Sprintf("%s by <@%s> at %s.", did, a.DecidedBy, at)
	case PermissionInDoubt:
		return fmt.Sprintf("<@%s> decided at %s, and I cannot tell whether the agent heard it: %s. Look at the agent.", a.DecidedBy, at, did)
	case PermissionDeciding:
		return fmt.Sprintf("<@%s> is just deciding it.", a.DecidedBy)
	case PermissionEnded:
		return fmt.Sprintf("Answered in the terminal, or not asked any more, since %s.", at)
	}
	return "It is open."
}

// PermissionDecision is what somebody decided about a question of an agent's.
type PermissionDecision struct {
	Token   string // the button's value
	Verdict sessions.Verdict
	Reason  string // for the agent
	Actor   authz.Actor
	TS      string // of the message with the button; may be empty
}

// CanDecide says whether a question of an agent's can be decided now; else why not, in words for the one who would.
func (m *Manager) CanDecide(ctx context.Context, token string) (why string, ok bool) {
	t := m.threadByToken(token)
	if t == nil {
		return sessionGoneText, false
	}
	why, there := call(ctx, t, func(context.Context) string { return t.whyUndecidable(token) })
	return why, there && why == ""
}

const sessionGoneText = "This session is gone, and the question with it."

func (m *Manager) threadByToken(token string) *thread {
	id, _, _ := cutToken(token)
	return m.threadOf(id)
}

// DecidePermission decides a question of an agent's, once. The answer is for the one who decided, and true also for a second click,
// after a restart, and when somebody was faster in the terminal.
func (m *Manager) DecidePermission(ctx context.Context, r PermissionDecision) (string, error) {
	switch verdict, _ := m.o.Policy().Authorize(r.Actor); verdict {
	case authz.Denied, authz.SuspendedUnlisted:
		return "", ErrDenied
	case authz.Suspended:
		return suspendedText, nil
	}
	t := m.threadByToken(r.Token)
	if t == nil {
		return sessionGoneText, nil
	}
	answer := make(chan string, 1)
	t.do(func(ctx context.Context) { t.decidePermission(ctx, r, answer) })
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("decide: %w", ctx.Err())
	}
}

// whyUndecidable is why a question cannot be decided; empty: it can.
func (t *thread) whyUndecidable(name string) string {
	a, ok := t.b.PermissionRequests[name]
	switch {
	case t.unbound || !ok:
		return "This question is no longer open."
	case a.State == PermissionOpen && !a.Decidable:
		return "This question is answered in the terminal."
	case a.State != PermissionOpen:
		return "Already decided. " + permissionOutcomeText(a)
	}
	return ""
}

// decidePermission writes down who decides what, and hands it to the agent beside the thread.
func (t *thread) decidePermission(_ context.Context, r PermissionDecision, answer chan<- string) {
	if why := t.whyUndecidable(r.Token); why != "" {
		answer <- why
		return
	}
	a := t.b.PermissionRequests[r.Token]
	before := a
	a.State, a.Verdict, a.DecidedBy, a.HasReason, a.Ended = PermissionDeciding, r.Verdict, r.Actor.User, r.Reason != "", t.m.now()
	if r.TS != "" {
		a.TS = r.TS
	}
	t.b.PermissionRequests[r.Token] = a
	if err := t.save(); err != nil {
		t.b.PermissionRequests[r.Token] = before
		answer <- "I could not store this decision, so nothing was decided: " + escape(err.Error())
		return
	}
	t.decidingPermissions[r.Token] = true
	q := sessions.AnswerPermissionRequest{Ref: t.ref, ID: t.sessionID, DialogExcerpt: a.DialogExcerpt, PermissionDecision: sessions.PermissionDecision{Token: a.Token, Verdict: r.Verdict, Reason: r.Reason}}
	if !t.m.start(func(ctx context.Context) {
		err := t.m.o.Reports.AnswerPermission(ctx, q)
		t.do(func(ctx context.Context) { answer <- t.onPermissionAnswered(ctx, r.Token, err) })
	}) {
		answer <- "I am just stopping. Try again when I am back."
	}
}

// onPermissionAnswered takes whether the agent took the answer.
func (t *thread) onPermissionAnswered(ctx context.Context, name string, err error) string {
	delete(t.decidingPermissions, name)
	a := t.b.PermissionRequests[name]
	switch {
	case err == nil:
		t.endPermission(ctx, name, PermissionDecided, EventPermissionDecided)
	case errors.Is(err, sessions.ErrPermissionEnded):
		t.b.PermissionRequests[name] = a.reopened()
		t.endPermission(ctx, name, PermissionEnded, EventPermissionEnded)
		return "Too late. " + permissionOutcomeText(t.b.PermissionRequests[name])
	case errors.Is(err, sessions.ErrInDoubt):
		t.endPermission(ctx, name, PermissionInDoubt, EventPermissionEnded)
	case t.m.workCtx.Err() != nil: // the next start finds out
	default:
		t.m.o.Log.Warn("an answer could not be given to an agent", "ref", t.ref, "err", err)
		t.b.PermissionRequests[name] = a.reopened()
		t.saveBestEffort()
		t.watchPermission(name, true) // it may have ended meanwhile
		return "The agent could not be reached, so nothing was decided. Try again: " + escape(err.Error())
	}
	return permissionOutcomeText(t.b.PermissionRequests[name])
}

// hasOpenPermissions reports whether questions of the agent's stand in the thread with their buttons.
func (t *thread) hasOpenPermissions() bool {
	for _, a := range t.b.PermissionRequests {
		if a.State == PermissionOpen || a.State == PermissionDeciding {
			return true
		}
	}
	return false
}

// hasDecidablePermission reports whether one of them can be decided here.
func (t *thread) hasDecidablePermission() bool {
	for _, a := range t.b.PermissionRequests {
		if a.State == PermissionOpen && a.Decidable {
			return true
		}
	}
	return false
}

// watchOpenPermissions takes up the questions that were open when the bot ended.
func (t *thread) watchOpenPermissions() {
	for name, a := range t.b.PermissionRequests {
		if a.isOpen() {
			t.watchPermission(name, true)
		}
	}
}

package threads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/permission"
)

// Names of the events about permission requests of agents. They name a request by a sum of its button's value.
const (
	EventPermissionRequested = permission.EventRequested
	EventPermissionDecided   = permission.EventDecided
	EventPermissionEnded     = permission.EventEnded
)

// addPermissions remembers what the agent asks, and returns the new names. The caller saves it, with the place up to which the
// reports were read.
func (t *thread) addPermissions(reports sessions.ReportBatch) (fresh []string) {
	for _, a := range reports.PermissionRequests {
		if t.b.PermissionRequests.Find(a.Token) != "" {
			continue
		}
		name := token(t.sessionID)
		text, whole := t.m.permissionText(t.ref, a)
		t.b.PermissionRequests[name] = permission.FromAsk(a, text, whole)
		fresh = append(fresh, name)
	}
	return fresh
}

func (m *Manager) permissionText(ref sessions.Ref, a sessions.PermissionRequest) (text string, whole bool) {
	if m.o.PermissionText == nil {
		return "The agent asks: " + chat.Escape(a.Tool+" "+a.Command+a.File), true
	}
	return m.o.PermissionText(ref, a)
}

// permissionRetry is the pause before an agent that cannot be reached is tried again.
const permissionRetry = 5 * time.Second

// watchPermission waits beside the thread for the end of a request. earlier says that an earlier run may have posted it.
func (t *thread) watchPermission(name string, earlier bool) {
	r := t.b.PermissionRequests[name]
	q := sessions.WaitResolvedRequest{Ref: t.ref, ID: t.sessionID, Token: r.Token, DialogExcerpt: r.DialogExcerpt, OnOpen: func() {
		t.do(func(ctx context.Context) {
			t.applyPermission(ctx, name, permission.Event{Kind: permission.Opened}, earlier)
		})
	}}
	t.m.start(func(context.Context) {
		for fails := 0; ; fails++ {
			err := t.m.o.Reports.WaitResolved(t.m.watchCtx, q)
			if err == nil {
				t.do(func(ctx context.Context) {
					t.applyPermission(ctx, name, permission.Event{Kind: permission.Resolved}, earlier)
				})
				return
			}
			if fails == 0 && t.m.watchCtx.Err() == nil {
				t.m.o.Log.Warn("an agent that asks for permission cannot be reached; it is tried again", "ref", t.ref, "err", err)
			}
			if !t.m.sleep(permissionRetry) {
				return
			}
		}
	})
}

// applyPermission has an event change a request, and does what follows from it. earlier says that an earlier run may have
// posted the request.
func (t *thread) applyPermission(ctx context.Context, name string, e permission.Event, earlier bool) {
	r, ok := t.b.PermissionRequests[name]
	if !ok || t.unbound {
		return
	}
	e.At = t.m.now()
	next, fx := r.Next(e)
	t.b.PermissionRequests[name] = next
	if fx.Post != nil { // a failure was logged; the terminal asks too
		_ = t.m.outbox.Put(&outbox.Message{Post: t.permissionPost(name, *fx.Post), Since: r.At, MaybePosted: earlier})
	}
	if fx.Edit != nil {
		t.m.outbox.Update(t.permissionPost(name, *fx.Edit), r.TS)
	}
	if fx.Emit != "" {
		t.emitPermissionEvent(ctx, fx.Emit, name, next)
	}
	if fx.Waiting {
		t.setWaiting(r.At, nil)
	}
	if fx.Forget {
		delete(t.b.PermissionRequests, name)
	}
	if fx.Edit != nil {
		t.b.PermissionRequests.Prune()
		t.clearWaiting()
	}
	if fx.Store || fx.Forget {
		t.saveBestEffort()
	}
	if fx.Watch {
		t.watchPermission(name, true)
	}
	if fx.Waiting || fx.Edit != nil {
		t.turn.dialogOpen = t.b.PermissionRequests.HasOpen()
		t.m.statusLoop.requestCheck(t)
	}
}

// reconcilePermissions handles reports of the agent's hook that it handed over an answer.
func (t *thread) reconcilePermissions(ctx context.Context, answers []sessions.AnsweredPermission) {
	for _, a := range answers {
		t.applyPermission(ctx, t.b.PermissionRequests.Find(a.Token), permission.Event{Kind: permission.AnswerReported}, true)
	}
}

func (t *thread) emitPermissionEvent(ctx context.Context, event, name string, r permission.Request) {
	sum := sha256.Sum256([]byte(name))
	fields := map[string]any{"channel": t.b.Channel, "thread": t.b.Root, "ask": hex.EncodeToString(sum[:6])}
	if r.Verdict != "" {
		fields["verdict"] = r.Verdict
	}
	if r.DecidedBy != "" {
		fields["user"] = r.DecidedBy
	}
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: event, Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref, Fields: fields})
}

// permissionPost is the message of a request.
func (t *thread) permissionPost(name string, r permission.Request) chat.Post {
	p := t.newPost("", name)
	p.Text, p.Buttons = r.Message(name)
	return p
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
	t.do(func(context.Context) { t.decidePermission(r, answer) })
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("decide: %w", ctx.Err())
	}
}

// notOpenText answers a click on the buttons of a request that is not known any more.
const notOpenText = "This question is no longer open."

// whyUndecidable says why a request cannot be decided; empty: it can.
func (t *thread) whyUndecidable(name string) string {
	r, ok := t.b.PermissionRequests[name]
	if t.unbound || !ok {
		return notOpenText
	}
	return r.WhyUndecidable()
}

// decidePermission stores who decides what, and gives it to the agent beside the thread.
func (t *thread) decidePermission(d PermissionDecision, answer chan<- string) {
	if why := t.whyUndecidable(d.Token); why != "" {
		answer <- why
		return
	}
	r := t.b.PermissionRequests[d.Token]
	next, _ := r.Next(permission.Event{Kind: permission.Decide, At: t.m.now(), TS: d.TS, Verdict: d.Verdict, By: d.Actor.User, HasReason: d.Reason != ""})
	t.b.PermissionRequests[d.Token] = next
	if err := t.save(); err != nil {
		t.b.PermissionRequests[d.Token] = r
		answer <- "I could not store this decision, so nothing was decided: " + chat.Escape(err.Error())
		return
	}
	q := sessions.AnswerPermissionRequest{Ref: t.ref, ID: t.sessionID, DialogExcerpt: r.DialogExcerpt, PermissionDecision: sessions.PermissionDecision{Token: r.Token, Verdict: d.Verdict, Reason: d.Reason}}
	if !t.m.start(func(ctx context.Context) {
		err := t.m.o.Reports.AnswerPermission(ctx, q)
		t.do(func(ctx context.Context) { answer <- t.onPermissionAnswered(ctx, d.Token, err) })
	}) {
		answer <- "I am just stopping. Try again when I am back."
	}
}

// onPermissionAnswered handles what became of giving the agent a decision, and returns what is true for who decided.
func (t *thread) onPermissionAnswered(ctx context.Context, name string, err error) string {
	e, text := permission.Event{Kind: permission.Delivered}, ""
	switch {
	case err == nil:
	case errors.Is(err, sessions.ErrPermissionEnded):
		e.Kind, text = permission.TooLate, "Too late. "
	case errors.Is(err, sessions.ErrInDoubt):
		e.Kind = permission.Unconfirmed
	case t.m.workCtx.Err() != nil:
		e.Kind = permission.Interrupted
	default:
		e.Kind = permission.Undelivered
		t.m.o.Log.Warn("an agent could not be given an answer", "ref", t.ref, "err", err)
	}
	t.applyPermission(ctx, name, e, true)
	r, ok := t.b.PermissionRequests[name]
	switch {
	case !ok:
		return notOpenText
	case e.Kind == permission.Undelivered:
		return "The agent could not be reached, so nothing was decided. Try again: " + chat.Escape(err.Error())
	}
	return text + r.Outcome()
}

// watchOpenPermissions watches the requests that were open when the bot ended.
func (t *thread) watchOpenPermissions() {
	for name, a := range t.b.PermissionRequests {
		if a.IsOpen() {
			t.watchPermission(name, true)
		}
	}
}

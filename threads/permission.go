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
	"the-loop/threads/actor"
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

// ReportReader is what threads need of the core about what agents report.
type ReportReader interface {
	ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error)
	WaitResolved(ctx context.Context, q sessions.WaitResolvedRequest) error
	AnswerPermission(ctx context.Context, q sessions.AnswerPermissionRequest) error
}

// PermissionRendering is a permission request as a message.
type PermissionRendering struct {
	Text  string
	Whole bool // everything that matters is in the text; else nobody decides by it
	// File has all of the request, where something is cut in the text; nil: nothing is, or it cannot be posted. TextWithFile is the text
	// of a message below the file.
	File         *outbox.TextFile
	TextWithFile string
}

// dialogStatus shows whether a dialog of the agent waits for an answer.
type dialogStatus interface{ SetDialogOpen(open bool) }

// permissions drives the permission requests of one thread: package permission says what becomes of each.
type permissions struct {
	*threadState
	waiting *waitNotice
	dialog  dialogStatus
	files   map[string]*outbox.Message // with all of what is cut in a request that was not posted yet, by its name
}

// Add remembers what the agent asks, and returns the new names. The caller saves it, with the place up to which the
// reports were read.
func (ps *permissions) Add(reports sessions.ReportBatch) (fresh []string) {
	for _, a := range reports.PermissionRequests {
		if ps.B.PermissionRequests.Find(a.Token) != "" {
			continue
		}
		name := token(ps.SessionID)
		r := ps.svc.permissionText(ps.Ref, a)
		if ps.attachFile(name, a, r) {
			r.Text, r.Whole = r.TextWithFile, true
		}
		request := permission.FromAsk(a, r.Text, r.Whole)
		_, request.HasFile = ps.files[name]
		ps.B.PermissionRequests[name] = request
		fresh = append(fresh, name)
	}
	return fresh
}

// attachFile makes the message with all of a request, which is posted before the request is. It reports false when there is none.
func (ps *permissions) attachFile(name string, a sessions.PermissionRequest, r PermissionRendering) bool {
	if r.File == nil {
		return false
	}
	msg := &outbox.Message{Post: ps.NewPost("", name+".file"), Since: a.At}
	if err := ps.svc.outbox.AttachText(msg, *r.File, ps.svc.Settings().MaxFile); err != nil || msg.File == nil {
		return false
	}
	ps.files[name] = msg
	return true
}

// permissionRetry is the pause before an agent that cannot be reached is tried again.
const permissionRetry = 5 * time.Second

// Watch waits beside the thread for the end of a request. earlier says that an earlier run may have posted it.
func (ps *permissions) Watch(name string, earlier bool) {
	r := ps.B.PermissionRequests[name]
	q := sessions.WaitResolvedRequest{Ref: ps.Ref, ID: ps.SessionID, Token: r.Token, DialogExcerpt: r.DialogExcerpt, OnOpen: func() {
		ps.Do(func(ctx context.Context) {
			ps.apply(ctx, name, permission.Event{Kind: permission.Opened, HasFile: ps.files[name] != nil}, earlier)
		})
	}}
	ps.svc.Start(func(context.Context) {
		for fails := 0; ; fails++ {
			err := ps.svc.Reports.WaitResolved(ps.svc.WatchCtx, q)
			if err == nil {
				ps.Do(func(ctx context.Context) {
					ps.apply(ctx, name, permission.Event{Kind: permission.Resolved}, earlier)
				})
				return
			}
			if fails == 0 && ps.svc.WatchCtx.Err() == nil {
				ps.svc.Log.Warn("an agent that asks for permission cannot be reached; it is tried again", "ref", ps.Ref, "err", err)
			}
			if !ps.svc.Sleep(permissionRetry) {
				return
			}
		}
	})
}

// apply has an event change a request, and does what follows from it. earlier says that an earlier run may have
// posted the request.
func (ps *permissions) apply(ctx context.Context, name string, e permission.Event, earlier bool) {
	r, ok := ps.B.PermissionRequests[name]
	if !ok || ps.Unbound {
		return
	}
	e.At = ps.svc.now()
	next, fx := r.Next(e)
	ps.B.PermissionRequests[name] = next
	if fx.Post != nil { // a failure was logged; the terminal asks too
		if file := ps.files[name]; file != nil {
			_ = ps.svc.outbox.Put(file)
		}
		_ = ps.svc.outbox.Put(&outbox.Message{Post: ps.message(name, *fx.Post), Since: r.At, MaybePosted: earlier})
	}
	if fx.Edit != nil {
		ps.svc.outbox.Update(ps.message(name, *fx.Edit), r.TS)
	}
	if fx.Emit != "" {
		ps.emit(ctx, fx.Emit, name, next)
	}
	if fx.Waiting {
		ps.waiting.set(r.At, nil)
	}
	if fx.Post != nil || fx.Forget {
		delete(ps.files, name) // what was not posted is swept at the next start
	}
	if fx.Forget {
		delete(ps.B.PermissionRequests, name)
	}
	if fx.Edit != nil {
		ps.B.PermissionRequests.Prune()
		ps.waiting.clear()
	}
	if fx.Store || fx.Forget {
		ps.SaveBestEffort()
	}
	if fx.Watch {
		ps.Watch(name, true)
	}
	if fx.Waiting || fx.Edit != nil {
		ps.dialog.SetDialogOpen(ps.B.PermissionRequests.HasOpen())
	}
}

// Reconcile handles reports of the agent's hook that it handed over an answer.
func (ps *permissions) Reconcile(ctx context.Context, answers []sessions.AnsweredPermission) {
	for _, a := range answers {
		ps.apply(ctx, ps.B.PermissionRequests.Find(a.Token), permission.Event{Kind: permission.AnswerReported}, true)
	}
}

func (ps *permissions) emit(ctx context.Context, event, name string, r permission.Request) {
	sum := sha256.Sum256([]byte(name))
	fields := map[string]any{"channel": ps.B.Channel, "thread": ps.B.Root, "ask": hex.EncodeToString(sum[:6])}
	if r.Verdict != "" {
		fields["verdict"] = r.Verdict
	}
	if r.DecidedBy != "" {
		fields["user"] = r.DecidedBy
	}
	ps.svc.Sink.Emit(ctx, sessions.Event{Name: event, Level: slog.LevelInfo, ID: ps.SessionID, Ref: ps.Ref, Fields: fields})
}

// message is the message of a request.
func (ps *permissions) message(name string, r permission.Request) chat.Post {
	p := ps.NewPost("", name)
	p.Text, p.Buttons = r.Message(name)
	return p
}

// PermissionDecision is what somebody decided about a permission request.
type PermissionDecision struct {
	Token   string // the button's value
	Verdict sessions.Verdict
	Reason  string              // for the agent
	Answers []permission.Answer // to the questions of the request
	// AcceptEdits says with a plan that is allowed that the agent may edit files without asking.
	AcceptEdits bool
	Actor       authz.Actor
	TS          string // of the message with the button; may be empty
}

// Decidable returns an agent's permission request if it can be decided now, and else why not, as a text for the person.
func (m *Manager) Decidable(ctx context.Context, token string) (r permission.Request, why string, ok bool) {
	t := m.threadByToken(token)
	if t == nil {
		return r, sessionGoneText, false
	}
	why, there := actor.Call(ctx, t.Actor, func(context.Context) string {
		r = t.permissions.B.PermissionRequests[token]
		return t.permissions.whyUndecidable(token)
	})
	return r, why, there && why == ""
}

const sessionGoneText = "This session is gone, and the question with it."

func (m *Manager) threadByToken(token string) *thread {
	id, _, _ := cutToken(token)
	return m.index.of(id)
}

// DecidePermission decides an agent's permission request, once. It returns a text for the person who decided, which is true also for
// a second click, after a restart, and when somebody was faster in the terminal.
func (m *Manager) DecidePermission(ctx context.Context, r PermissionDecision) (string, error) {
	switch verdict, _ := m.Policy().Authorize(r.Actor); verdict {
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
	t.Do(func(context.Context) { t.permissions.decide(r, answer) })
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
func (ps *permissions) whyUndecidable(name string) string {
	r, ok := ps.B.PermissionRequests[name]
	if ps.Unbound || !ok {
		return notOpenText
	}
	return r.WhyUndecidable()
}

// decide stores who decides what, and gives it to the agent beside the thread.
func (ps *permissions) decide(d PermissionDecision, answer chan<- string) {
	if why := ps.whyUndecidable(d.Token); why != "" {
		answer <- why
		return
	}
	r := ps.B.PermissionRequests[d.Token]
	answers, choice, err := r.Answers(d.Verdict, d.Answers, d.AcceptEdits)
	if err != nil {
		answer <- "Nothing was decided: " + err.Error() + "."
		return
	}
	next, _ := r.Next(permission.Event{Kind: permission.Decide, At: ps.svc.now(), TS: d.TS, Verdict: d.Verdict, By: d.Actor.User, HasReason: d.Reason != "", Choice: choice})
	ps.B.PermissionRequests[d.Token] = next
	if err := ps.Save(); err != nil {
		ps.B.PermissionRequests[d.Token] = r
		answer <- "I could not store this decision, so nothing was decided: " + chat.Escape(err.Error())
		return
	}
	q := sessions.AnswerPermissionRequest{Ref: ps.Ref, ID: ps.SessionID, DialogExcerpt: r.DialogExcerpt, PermissionDecision: sessions.PermissionDecision{Token: r.Token, Verdict: d.Verdict, Reason: d.Reason,
		Answers: answers, AcceptEdits: d.AcceptEdits}}
	if !ps.svc.Start(func(ctx context.Context) {
		err := ps.svc.Reports.AnswerPermission(ctx, q)
		ps.Do(func(ctx context.Context) { answer <- ps.onAnswered(ctx, d.Token, err) })
	}) {
		answer <- "I am just stopping. Try again when I am back."
	}
}

// onAnswered handles what became of giving the agent a decision, and returns what is true for who decided.
func (ps *permissions) onAnswered(ctx context.Context, name string, err error) string {
	e, text := permission.Event{Kind: permission.Delivered}, ""
	switch {
	case err == nil:
	case errors.Is(err, sessions.ErrPermissionEnded):
		e.Kind, text = permission.TooLate, "Too late. "
	case errors.Is(err, sessions.ErrInDoubt):
		e.Kind = permission.Unconfirmed
	case ps.svc.WorkCtx.Err() != nil:
		e.Kind = permission.Interrupted
	default:
		e.Kind = permission.Undelivered
		ps.svc.Log.Warn("an agent could not be given an answer", "ref", ps.Ref, "err", err)
	}
	ps.apply(ctx, name, e, true)
	r, ok := ps.B.PermissionRequests[name]
	switch {
	case !ok:
		return notOpenText
	case e.Kind == permission.Undelivered:
		return "The agent could not be reached, so nothing was decided. Try again: " + chat.Escape(err.Error())
	}
	return text + r.Outcome()
}

// watchOpen watches the requests that were open when the bot ended.
func (ps *permissions) watchOpen() {
	for name, a := range ps.B.PermissionRequests {
		if a.IsOpen() {
			ps.Watch(name, true)
		}
	}
}

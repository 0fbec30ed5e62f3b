package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// openPermissions are the asks that are attended, by token.
type openPermissions struct {
	mu      sync.Mutex // guards the field that follows
	byToken map[string]*openPermission
}

type openPermission struct {
	sessionID string
	openedAt  time.Time
	shown     bool // it was seen on its agent's screen: only then that can tell that it is over
}

// dialogDrawTimeout is how long an agent may take to show what its hook reports: until then nothing is typed, since the dialog would
// take the submit key for an answer.
const dialogDrawTimeout = 10 * time.Second

func (o *openPermissions) add(token, session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byToken[token] = &openPermission{sessionID: session, openedAt: time.Now()}
}

func (o *openPermissions) remove(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byToken, token)
}

func (o *openPermissions) markShown(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.byToken[token]; a != nil {
		a.shown = true
	}
}

func (o *openPermissions) isShown(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.byToken[token]
	return a != nil && a.shown
}

// hasPendingDialog reports whether the session's agent asks something that its screen may be just about to show.
func (o *openPermissions) hasPendingDialog(session string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.byToken {
		if a.sessionID == session && !a.shown && time.Since(a.openedAt) < dialogDrawTimeout {
			return true
		}
	}
	return false
}

// WaitResolved waits until the ask is over: answered here or in the terminal, given up by the agent, or ended with it. When
// Open was not called, it was over before. The error is ctx's, or says why the ask cannot be reached.
func (in *Input) WaitResolved(ctx context.Context, q sessions.WaitResolvedRequest) error {
	if in.reports == nil {
		return fmt.Errorf("attend an ask: %w", errors.ErrUnsupported)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	attending, stop := context.WithCancel(ctx)
	defer stop()
	defer in.permissions.remove(q.Token)
	return in.reports.WaitResolved(ctx, q.ID, q.Token, func() {
		in.permissions.add(q.Token, q.ID)
		q.OnOpen()
		looking.Go(func() { in.watchDialog(attending, q) })
	})
}

// How often the screen is looked at while an ask is open: by how long it has been.
const (
	permissionPollFirst = 250 * time.Millisecond // in the first seconds
	permissionPollSoon  = time.Second            // in the first minutes
	permissionPollLater = 3 * time.Second
)

func permissionPollInterval(open time.Duration) time.Duration {
	switch {
	case open < 5*time.Second:
		return permissionPollFirst
	case open < 5*time.Minute:
		return permissionPollSoon
	}
	return permissionPollLater
}

// watchDialog sees on the screen when an ask was answered there, and lets its hook go then. An agent need not do that itself:
// Claude Code goes on with a yes and leaves the hook waiting (2.1.197).
func (in *Input) watchDialog(ctx context.Context, q sessions.WaitResolvedRequest) {
	began, gone := time.Now(), 0
	for {
		if !loop.Sleep(ctx, permissionPollInterval(time.Since(began))) {
			return
		}
		switch in.readDialogState(ctx, q) {
		case dialogOpen:
			gone = 0
			in.permissions.markShown(q.Token)
		case dialogGone:
			if gone++; gone > 1 && in.permissions.isShown(q.Token) { // one look may fall between two pictures
				_ = in.reports.AnswerPermission(ctx, q.ID, sessions.PermissionDecision{Token: q.Token, Verdict: sessions.VerdictUndecided}) // or it ended by itself
				return
			}
		}
	}
}

// seen is what the screen says of an ask.
type dialogState int

const (
	dialogUnknown dialogState = iota
	dialogOpen                // the dialog of this ask is open
	dialogGone                // it is not
)

// readDialogState looks at the screen. One that cannot be read says nothing, and neither does one on which something lies over the
// dialog.
func (in *Input) readDialogState(ctx context.Context, q sessions.WaitResolvedRequest) dialogState {
	rec, err := in.records.require(ctx, q.Ref)
	if err != nil || rec.ID != q.ID {
		return dialogUnknown
	}
	h, err := in.agents.harness(rec.Definition.Harness)
	if err != nil {
		return dialogUnknown
	}
	view, err := in.agents.readScreen(ctx, h, rec)
	switch {
	case err != nil:
		return dialogUnknown
	case view.State == sessions.ViewReady, view.State == sessions.ViewWorking:
		return dialogGone
	case view.State != sessions.ViewDialog:
		return dialogUnknown
	case strings.Contains(sessions.StripSpace(strings.Join(view.Lines, "")), q.DialogExcerpt):
		return dialogOpen
	}
	return dialogGone // another dialog is open: they are shown one after the other
}

// dialogRecheckDelay lies between two looks at a screen that does not ask any more.
const dialogRecheckDelay = 150 * time.Millisecond

// AnswerPermission gives an ask its one answer, through the hook that waits for it: no key is pressed. [ErrPermissionEnded] when it was not
// taken: somebody answered before, here or in the terminal, or the agent asks no more. [ErrInDoubt] when it may have been.
// An answer that somebody gives in the terminal within the same moment, some milliseconds, is the one that counts, and
// nothing tells of it.
func (in *Input) AnswerPermission(ctx context.Context, q sessions.AnswerPermissionRequest) error {
	if in.reports == nil {
		return fmt.Errorf("answer an ask: %w", errors.ErrUnsupported)
	}
	look := sessions.WaitResolvedRequest{Ref: q.Ref, ID: q.ID, Token: q.Token, DialogExcerpt: q.DialogExcerpt}
	for looks := 0; in.permissions.isShown(q.Token) && in.readDialogState(ctx, look) == dialogGone; looks++ {
		if looks > 0 {
			_ = in.reports.AnswerPermission(ctx, q.ID, sessions.PermissionDecision{Token: q.Token, Verdict: sessions.VerdictUndecided}) // or it ended by itself
			return sessions.ErrPermissionEnded
		}
		if !loop.Sleep(ctx, dialogRecheckDelay) {
			return ctx.Err()
		}
	}
	return in.reports.AnswerPermission(ctx, q.ID, q.PermissionDecision)
}

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

// openPermissions are the permission requests that are waited for, by token.
type openPermissions struct {
	mu      sync.Mutex // guards the field that follows
	byToken map[string]*openPermission
}

type openPermission struct {
	sessionID string
	openedAt  time.Time
	shown     bool // its dialog was seen on the screen
}

// dialogDrawTimeout is how long an agent may take to show the dialog that its hook reported. Until then nothing is typed, since
// the submit key would answer the dialog.
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

// isOver reports whether a screen in that state means that the request is over; pending that it is too early to say: its dialog may
// not be drawn yet.
func (o *openPermissions) isOver(token string, state dialogState) (over, pending bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.byToken[token]
	switch {
	case a == nil || state == dialogUnknown || state == dialogOpen:
		return false, false
	case a.shown:
		return true, false
	case state == dialogOther: // dialogs are shown one after the other
		return false, false
	}
	drawn := time.Since(a.openedAt) >= dialogDrawTimeout // it was answered before anybody looked
	return drawn, !drawn
}

// hasPendingDialog reports whether the session's agent has a permission request whose dialog its screen may not show yet.
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

// WaitResolved waits until the permission request is over: answered here or in the terminal, withdrawn by the agent, or ended
// with it. If q.OnOpen was not called it was over before. The error is ctx's, or says why the request cannot be reached.
func (in *Input) WaitResolved(ctx context.Context, q sessions.WaitResolvedRequest) error {
	if in.reports == nil {
		return fmt.Errorf("wait for a permission request: %w", errors.ErrUnsupported)
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watchCtx, stop := context.WithCancel(ctx)
	defer stop()
	defer in.permissions.remove(q.Token)
	return in.reports.WaitResolved(ctx, q.ID, q.Token, func() {
		in.permissions.add(q.Token, q.ID)
		q.OnOpen()
		watching.Go(func() { in.watchDialog(watchCtx, q) })
	})
}

// How often the screen is read while a permission request is open, by its age.
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

// watchDialog watches the screen for a permission request that was answered in the terminal, and then ends the hook that waits
// for it. An agent need not do that itself: Claude Code goes on after a yes and leaves the hook waiting (2.1.197).
func (in *Input) watchDialog(ctx context.Context, q sessions.WaitResolvedRequest) {
	began, gone := time.Now(), 0
	for {
		if !loop.Sleep(ctx, permissionPollInterval(time.Since(began))) {
			return
		}
		state := in.readDialogState(ctx, q)
		if state == dialogOpen {
			gone = 0
			in.permissions.markShown(q.Token)
		}
		if over, _ := in.permissions.isOver(q.Token, state); over {
			if gone++; gone > 1 { // one read may fall between two frames
				_ = in.reports.AnswerPermission(ctx, q.ID, sessions.PermissionDecision{Token: q.Token, Verdict: sessions.VerdictUndecided}) // or it ended by itself
				return
			}
		}
	}
}

// dialogState is what the screen shows of a permission request.
type dialogState int

const (
	dialogUnknown dialogState = iota
	dialogOpen                // the dialog of this request is open
	dialogOther               // the dialog of another request is open
	dialogNone                // none is
)

// readDialogState reads the screen. One that cannot be read, or on which something covers the dialog, is dialogUnknown.
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
		return dialogNone
	case view.State != sessions.ViewDialog:
		return dialogUnknown
	case strings.Contains(sessions.StripSpace(strings.Join(view.Lines, "")), q.DialogExcerpt):
		return dialogOpen
	}
	return dialogOther
}

// dialogRecheckDelay is the pause before a screen that does not show the dialog is read again.
const dialogRecheckDelay = 150 * time.Millisecond

// AnswerPermission decides a permission request, through the hook that waits for it: no key is pressed.
// [sessions.ErrPermissionEnded] when it was over before; [sessions.ErrInDoubt] when the decision may have arrived. An answer
// given in the terminal within the same few milliseconds wins, and nothing reports that.
func (in *Input) AnswerPermission(ctx context.Context, q sessions.AnswerPermissionRequest) error {
	if in.reports == nil {
		return fmt.Errorf("decide a permission request: %w", errors.ErrUnsupported)
	}
	waiting := sessions.WaitResolvedRequest{Ref: q.Ref, ID: q.ID, Token: q.Token, DialogExcerpt: q.DialogExcerpt}
	for gone := 0; ; {
		over, pending := in.permissions.isOver(q.Token, in.readDialogState(ctx, waiting))
		if !over && !pending {
			break
		}
		if over {
			gone++
		}
		if gone > 1 { // one read may fall between two frames
			_ = in.reports.AnswerPermission(ctx, q.ID, sessions.PermissionDecision{Token: q.Token, Verdict: sessions.VerdictUndecided}) // or it ended by itself
			return sessions.ErrPermissionEnded
		}
		if !loop.Sleep(ctx, dialogRecheckDelay) {
			return ctx.Err()
		}
	}
	return in.reports.AnswerPermission(ctx, q.ID, q.PermissionDecision)
}

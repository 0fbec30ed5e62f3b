package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
)

// waitingReports is an agent's hook that waits until it is let go.
type waitingReports struct{}

func (waitingReports) ReadReports(context.Context, string, sessions.Offset, time.Time) (sessions.ReportBatch, error) {
	return sessions.ReportBatch{}, nil
}
func (waitingReports) Remove(context.Context, string) error { return nil }
func (waitingReports) AnswerPermission(context.Context, string, sessions.PermissionDecision) error {
	return nil
}

func (waitingReports) WaitResolved(ctx context.Context, _, _ string, open func()) error {
	open()
	<-ctx.Done()
	return nil
}

// An agent's hook reports a question before the dialog is drawn: a text that is typed in between would answer it.
func TestNothingIsTypedWhileAPermissionDialogIsAboutToBeShown(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(_ *env, o *core.Options) { o.Reports = waitingReports{} }, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"})
	w.start("a")
	w.start("b")
	w.awaitUserTexts("a", 1)
	w.awaitUserTexts("b", 1)
	ctx, cancel := context.WithCancel(t.Context())
	open, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- w.WaitResolved(ctx, sessions.WaitResolvedRequest{Ref: ref("a"), ID: w.record("a").ID, Token: "t", OnOpen: func() { close(open) }})
	}()
	<-open
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "yes"})
	if held := (*sessions.HeldError)(nil); !errors.As(err, &held) || held.State != sessions.ViewDialog {
		t.Errorf("a text meanwhile: %v", err)
	}
	_, err = w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), Actor: "U1", Keys: []string{"BackTab"}})
	w.wantRefusal(err, sessions.ErrRefused, "backtab might answer it")
	w.submit("b", "another session's")
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	w.submit("a", "afterwards")
}

// leftReports is an agent's hook that waits until it is answered, and keeps the answers.
type leftReports struct {
	waitingReports
	answers chan sessions.Verdict
	over    chan struct{}
	end     func() // closes over, once
}

func (r leftReports) WaitResolved(ctx context.Context, _, _ string, open func()) error {
	open()
	select {
	case <-r.over:
	case <-ctx.Done():
	}
	return nil
}

func (r leftReports) AnswerPermission(_ context.Context, _ string, d sessions.PermissionDecision) error {
	r.answers <- d.Verdict
	r.end()
	return nil
}

// Somebody answers in the terminal before anybody looked at the screen, and the agent leaves its hook waiting.
func TestAPermissionRequestWhoseDialogWasNeverSeenEnds(t *testing.T) {
	t.Parallel()
	for _, clicked := range []bool{false, true} {
		t.Run(fmt.Sprintf("clicked=%t", clicked), func(t *testing.T) {
			t.Parallel()
			hook := leftReports{answers: make(chan sessions.Verdict, 2), over: make(chan struct{})}
			hook.end = sync.OnceFunc(func() { close(hook.over) })
			e := newEnv(t, func(_ *env, o *core.Options) { o.Reports = hook }, sessions.Definition{Name: "a"})
			e.start("a")
			e.awaitUserTexts("a", 1)
			open, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- e.WaitResolved(t.Context(), sessions.WaitResolvedRequest{Ref: ref("a"), ID: e.record("a").ID, Token: "t", OnOpen: func() { close(open) }})
			}()
			<-open
			if clicked {
				err := e.AnswerPermission(t.Context(), sessions.AnswerPermissionRequest{Ref: ref("a"), ID: e.record("a").ID,
					PermissionDecision: sessions.PermissionDecision{Token: "t", Verdict: sessions.VerdictAllow}})
				if !errors.Is(err, sessions.ErrPermissionEnded) && err != nil {
					t.Errorf("the click: %v", err)
				}
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := <-hook.answers; got != sessions.VerdictUndecided {
				t.Errorf("the hook was told %q", got)
			}
		})
	}
}

// fileRequestReports is an agent whose hook asked for a file.
type fileRequestReports struct {
	waitingReports
	file string
}

func (a fileRequestReports) ReadReports(context.Context, string, sessions.Offset, time.Time) (sessions.ReportBatch, error) {
	return sessions.ReportBatch{PermissionRequests: []sessions.PermissionRequest{{Token: "t", Tool: "Write", File: a.file}}}, nil
}

func TestAPermissionRequestSaysWhereItsFileLeads(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "notes.txt")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	w := newEnv(t, func(_ *env, o *core.Options) { o.Reports = fileRequestReports{file: link} }, sessions.Definition{Name: "a"})
	w.start("a")
	noted, err := w.ReadReports(t.Context(), sessions.ReportsRequest{Ref: ref("a")})
	if err != nil || len(noted.PermissionRequests) != 1 || !slices.Equal(noted.PermissionRequests[0].FileTargets, []string{"/etc/passwd"}) {
		t.Errorf("%+v, %v", noted, err)
	}
}

// removalReports is reports whose removal is noted.
type removalReports struct {
	waitingReports
	removed *[]string
}

func (r removalReports) Remove(_ context.Context, session string) error {
	*r.removed = append(*r.removed, session)
	return errors.New("the disk is read-only") // which keeps nobody from deleting
}

func TestReportsGoWhenTheirSessionIsDeleted(t *testing.T) {
	t.Parallel()
	var removed []string
	w := newEnv(t, func(_ *env, o *core.Options) { o.Reports = removalReports{removed: &removed} })
	w.create(w.createRequest("a"))
	w.awaitReady("a")
	id := w.record("a").ID
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	if len(removed) != 1 || removed[0] != id {
		t.Errorf("removed are the reports of %v, not of %s", removed, id)
	}
}

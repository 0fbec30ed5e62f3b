package sessions_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
)

// oneAsk is an agent's hook that waits until it is let go.
type oneAsk struct{}

func (oneAsk) Noted(context.Context, string, string, time.Time) (sessions.Noted, error) {
	return sessions.Noted{}, nil
}
func (oneAsk) Remove(context.Context, string) error                  { return nil }
func (oneAsk) Answer(context.Context, string, sessions.Answer) error { return nil }

func (oneAsk) Attend(ctx context.Context, _, _ string, open func()) error {
	open()
	<-ctx.Done()
	return nil
}

// An agent's hook reports a question before the dialog is drawn: a text that is typed in between would answer it.
func TestNothingIsTypedWhileAQuestionIsAboutToBeShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *sessions.Options) { o.Reports = oneAsk{} }, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"})
	w.start("a")
	w.start("b")
	w.awaitSaid("a", 1)
	w.awaitSaid("b", 1)
	ctx, cancel := context.WithCancel(t.Context())
	open, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- w.WaitResolved(ctx, sessions.AttendRequest{Ref: ref("a"), ID: w.record("a").ID, Token: "t", Open: func() { close(open) }})
	}()
	<-open
	_, err := w.Submit(t.Context(), sessions.SayRequest{Ref: ref("a"), Text: "yes"})
	if held := (*sessions.HeldError)(nil); !errors.As(err, &held) || held.State != sessions.ViewDialog {
		t.Errorf("a text meanwhile: %v", err)
	}
	_, err = w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), Actor: "U1", Keys: []string{"BackTab"}})
	w.refused(err, sessions.ErrRefused, "backtab might answer it")
	w.say("b", "another session's")
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	w.say("a", "afterwards")
}

// askedOf is an agent whose hook asked for a file.
type askedOf struct {
	oneAsk
	file string
}

func (a askedOf) Noted(context.Context, string, string, time.Time) (sessions.Noted, error) {
	return sessions.Noted{Asks: []sessions.Ask{{Token: "t", Tool: "Write", File: a.file}}}, nil
}

func TestAQuestionSaysWhereItsFileIs(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "notes.txt")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *world, o *sessions.Options) { o.Reports = askedOf{file: link} }, sessions.Definition{Name: "a"})
	w.start("a")
	noted, err := w.ReadReports(t.Context(), sessions.NotedRequest{Ref: ref("a")})
	if err != nil || len(noted.Asks) != 1 || !slices.Equal(noted.Asks[0].FileAt, []string{"/etc/passwd"}) {
		t.Errorf("%+v, %v", noted, err)
	}
}

// removing is reports whose removal is noted.
type removing struct {
	oneAsk
	removed *[]string
}

func (r removing) Remove(_ context.Context, session string) error {
	*r.removed = append(*r.removed, session)
	return errors.New("the disk is read-only") // which keeps nobody from deleting
}

func TestReportsGoWhenTheirSessionIsDeleted(t *testing.T) {
	t.Parallel()
	var removed []string
	w := newWorld(t, func(_ *world, o *sessions.Options) { o.Reports = removing{removed: &removed} })
	w.create(w.request("a"))
	w.ready("a")
	id := w.record("a").ID
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	if len(removed) != 1 || removed[0] != id {
		t.Errorf("removed are the reports of %v, not of %s", removed, id)
	}
}

package core_test

import (
	"errors"
	"strings"
	"testing"

	"the-loop/sessions"
)

// A session that another verb is taking down has not ended on its own: it is looked at when that verb is done.
func TestASessionIsInspectedBetweenVerbs(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	row := w.start("a")
	release, err := w.registry.Lock(t.Context(), row.ID, "stop")
	if err != nil {
		t.Fatal(err)
	}
	w.killAgent("a")
	got := make(chan sessions.Row, 1)
	go func() {
		r, _ := w.InspectLocked(t.Context(), sessions.InspectRequest{Ref: row.Ref})
		got <- r
	}()
	select {
	case r := <-got:
		t.Errorf("looked at while a verb was at work: %+v", r)
	default:
	}
	release()
	if r := <-got; r.State != sessions.StateEnded || r.ID != row.ID || !strings.Contains(r.Detail, "signal") {
		t.Errorf("settled as %+v", r)
	}
	w.stop("a")
	if r, err := w.InspectLocked(t.Context(), sessions.InspectRequest{Ref: row.Ref}); err != nil || r.State != sessions.StateStopped {
		t.Errorf("settled as %+v, %v", r, err)
	}
	_, err = w.InspectLocked(t.Context(), sessions.InspectRequest{Ref: sessions.StandingRef("none")})
	w.wantRefusal(err, sessions.ErrNotRecorded, "standing:none")
}

func TestAScreenIsCapturedWithItsColours(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	row := w.start("a")
	w.awaitReady("a")
	plain, err := w.Peek(t.Context(), sessions.PeekRequest{Ref: row.Ref})
	if err != nil {
		t.Fatal(err)
	}
	if ansi, err := w.PeekANSI(t.Context(), sessions.PeekRequest{Ref: row.Ref}); err != nil || ansi == "" || plain.Text == "" {
		t.Errorf("the screen is %q, %v; without colours %q", ansi, err, plain.Text)
	}
	if _, err := w.PeekANSI(t.Context(), sessions.PeekRequest{Ref: sessions.StandingRef("none")}); !errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("of no session: %v", err)
	}
}

package core_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/tmux/tmuxtest"
)

func TestR2_7_AStoppedSessionKeepsItsRecordAndConversation(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	row := w.start("a")
	pane := w.pane("a")
	stopped := w.stop("a")
	rec := w.record("a")
	if stopped.Outcome != sessions.OutcomeStopped || stopped.State != sessions.StateStopped || rec.Status != sessions.StatusStopped ||
		rec.Conversation != row.Conversation || rec.ID != row.ID || rec.Pane != "" {
		t.Errorf("row %+v, record %+v", stopped, rec)
	}
	if tmuxtest.IsAlive(pane.PID) || len(w.panes()) != 0 {
		t.Error("something of the session is left")
	}
	if again := w.stop("a"); again.Outcome != sessions.OutcomeAlreadyStopped {
		t.Errorf("%+v", again)
	}
	w.wantEvents(sessions.EventStarted, sessions.EventStopped)
}

func TestAStopOfASessionThatNeverRanIsNoError(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	if row := w.stop("a"); row.Outcome != sessions.OutcomeAlreadyStopped || row.State != sessions.StateNew {
		t.Errorf("%+v", row)
	}
	w.wantNoRecord("a")
}

func TestAStopOfAnEndedSessionClearsItsPane(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.killAgent("a")
	if row := w.stop("a"); row.Outcome != sessions.OutcomeAlreadyStopped || row.State != sessions.StateStopped {
		t.Errorf("%+v", row)
	}
	if len(w.panes()) != 0 || w.record("a").Status != sessions.StatusStopped {
		t.Errorf("panes %+v, record %+v", w.panes(), w.record("a"))
	}
}

// Agents that ignore HUP or TERM and their children: anthropics/claude-code#43944.
func TestAStopEndsTheWholeProcessTreeAfterTheGrace(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", HarnessArgs: []string{"--fork", "--ignore-hup", "--ignore-term"}})
	w.reconfigure(func(c *core.Config) { c.KillGrace = 200 * time.Millisecond })
	w.start("a")
	pane := w.pane("a")
	begin := time.Now()
	w.stop("a")
	if took := time.Since(begin); took < 200*time.Millisecond || tmuxtest.IsAlive(pane.PID) {
		t.Errorf("after %s the agent lives: %t", took, tmuxtest.IsAlive(pane.PID))
	}
}

func TestTheListShowsDeclaredAndRecordedSessionsWithOneLookAtTmux(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newEnv(t, func(_ *env, o *core.Options) { spy.Terminal = o.Terminal; o.Terminal = spy },
		sessions.Definition{Name: "a", AutoStart: true, Description: "does a"}, sessions.Definition{Name: "b"}, sessions.Definition{Name: "c"})
	w.start("a")
	w.start("c")
	w.stop("c")
	spy.calls.Store(0)
	rows, err := w.List(t.Context())
	if err != nil || spy.calls.Load() != 1 {
		t.Fatalf("%v, %d calls", err, spy.calls.Load())
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Name+" "+string(r.State)+" "+r.Harness+" "+r.TmuxTarget)
	}
	want := []string{"a running small-agent loop-standing-a", "b new small-agent loop-standing-b", "c stopped small-agent loop-standing-c"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !rows[0].Running || rows[0].Conversation == "" || rows[1].Running || rows[0].Description != "does a" {
		t.Errorf("%+v", rows)
	}
}

func TestAttachShowsTheSessionByItsID(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	_, err := w.Attach(t.Context(), sessions.AttachRequest{Ref: ref("a")})
	w.wantRefusal(err, sessions.ErrNotRunning, "the-loop standing start a")
	_, err = w.Attach(t.Context(), sessions.AttachRequest{Ref: ref("nope")})
	w.wantRefusal(err, sessions.ErrNotRecorded, "standing:nope")
	w.start("a")
	argv, err := w.Attach(t.Context(), sessions.AttachRequest{Ref: ref("a"), ReadOnly: true})
	if err != nil || !slices.Contains(argv, w.pane("a").SessionID) || !slices.Contains(argv, "-r") {
		t.Errorf("%q, %v", argv, err)
	}
	w.killAgent("a")
	if _, err := w.Attach(t.Context(), sessions.AttachRequest{Ref: ref("a")}); err != nil {
		t.Errorf("a dead pane that is kept cannot be looked at: %v", err)
	}
}

func TestR3_1_ASessionIsAddressedByNameAndAWorkItemIsNone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"owner/repo#15", "standing:", "standing:Upper", "standing:a/b", "standing:../a", "loop-standing-a", "a",
		"standing:" + strings.Repeat("a", 41), "standing:-a"} {
		var bad *sessions.RefError
		if got, err := sessions.ParseRef(s); !errors.As(err, &bad) {
			t.Errorf("ParseRef(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"github:owner/repo#15", "github:standing/a#1"} {
		if item, err := sessions.ParseRef(s); err != nil || item.Kind() == sessions.KindStanding || strings.HasPrefix(item.TmuxName(), "loop-standing-") {
			t.Errorf("ParseRef(%q) = %q, %v", s, item, err)
		}
	}
	got, err := sessions.ParseRef("standing:a-1")
	if err != nil || got.Name() != "a-1" || got.Kind() != sessions.KindStanding || got.TmuxName() != "loop-standing-a-1" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestR1_2_NamesThatCouldLeaveAFolderOrATargetAreNone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a": true, "0-a": true, strings.Repeat("a", 40): true, "": false, "-a": false, "A": false,
		"a.b": false, "a:b": false, "a/b": false, "a\n": false, "é": false, strings.Repeat("a", 41): false} {
		if sessions.ValidName(name) != want {
			t.Errorf("ValidName(%q) = %t", name, !want)
		}
	}
}

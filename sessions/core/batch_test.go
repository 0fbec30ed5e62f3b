package core_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
)

func TestR2_1_StartAllStartsEveryEntryThatStartsByItself(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", AutoStart: true}, sessions.Definition{Name: "manual"},
		sessions.Definition{Name: "b", AutoStart: true}, sessions.Definition{Name: "live", AutoStart: true})
	w.start("live")
	all, err := w.StartAll(t.Context())
	if err != nil || all.Disabled || all.Failed() != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := outcomes(all.Rows); !slices.Equal(got, []string{"a started", "b started", "live already-running"}) {
		t.Errorf("%q", got)
	}
	w.wantNoRecord("manual")
}

func TestR2_1_OneThatFailsDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", AutoStart: true}, sessions.Definition{Name: "bad", AutoStart: true, PromptFile: "/nowhere/b.md"},
		sessions.Definition{Name: "broken", AutoStart: true}, sessions.Definition{Name: "c", AutoStart: true})
	dir := filepath.Join(w.dir, "state", "local", "standing")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"broken", "Odd Name"} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.StartAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomes(all.Rows); !slices.Equal(got, []string{" failed", "a started", "bad failed", "broken failed", "c started"}) || all.Failed() != 3 {
		t.Errorf("%q", got)
	}
	for i, says := range map[int]string{0: "Odd Name.json", 2: "/nowhere/b.md", 3: "broken.json"} {
		if !strings.Contains(all.Rows[i].Detail, says) {
			t.Errorf("%q does not say %q", all.Rows[i].Detail, says)
		}
	}
}

func TestR2_2_ADisabledBlockStartsNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", AutoStart: true})
	w.reconfigure(func(c *core.Config) { c.Enabled = false })
	all, err := w.StartAll(t.Context())
	if err != nil || !all.Disabled || len(all.Rows) != 0 || len(w.panes()) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	w.start("a") // by hand it starts all the same
}

func TestR2_6_StopAllStopsEveryRecordedSessionWhateverTheConfigurationSays(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", AutoStart: true}, sessions.Definition{Name: "manual"}, sessions.Definition{Name: "new"},
		sessions.Definition{Name: "ended"}, sessions.Definition{Name: "down"})
	for _, name := range []string{"a", "manual", "ended", "down"} {
		w.start(name)
	}
	w.create(w.createRequest("made"))
	w.killAgent("ended")
	w.stop("down")
	w.reconfigure(func(c *core.Config) { c.Enabled, c.Declared = false, c.Declared[2:3] })
	all, err := w.StopAll(t.Context())
	if err != nil || all.Failed() != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := []string{"a stopped", "down already-stopped", "ended already-stopped", "made stopped", "manual stopped"}
	if got := outcomes(all.Rows); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(w.panes()) != 0 {
		t.Errorf("%+v", w.panes())
	}
	if again, err := w.StopAll(t.Context()); err != nil || again.Failed() != 0 || !slices.ContainsFunc(again.Rows, func(r sessions.Row) bool { return r.Name == "a" && r.Outcome == sessions.OutcomeAlreadyStopped }) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestR2_8_ARowSaysWhetherTheSessionShouldRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "auto", AutoStart: true}, sessions.Definition{Name: "manual"},
		sessions.Definition{Name: "left", AutoStart: true}, sessions.Definition{Name: "broken", AutoStart: true})
	w.start("left")
	w.create(w.createRequest("made"))
	q := w.createRequest("made-manual")
	q.NoAutoStart = true
	w.create(q)
	w.reconfigure(func(c *core.Config) { c.Declared = slices.Delete(c.Declared, 2, 3) })
	path := filepath.Join(w.dir, "state", "local", "standing", "broken.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, expected := range map[string]bool{"auto": true, "manual": false, "left": false, "made": true, "made-manual": false, "broken": true} {
		if row := w.row(name); row.Expected != expected {
			t.Errorf("%+v", row)
		}
	}
	if row := w.row("left"); !row.Running || row.Detail != "not declared any more" {
		t.Errorf("%+v", row)
	}
	w.reconfigure(func(c *core.Config) { c.Enabled = false })
	for _, name := range []string{"auto", "made"} {
		if w.row(name).Expected {
			t.Errorf("with the block disabled %s is expected", name)
		}
	}
}

func TestStartAllAndStopAllChangeNothingWhenTmuxDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withShortTimeout, sessions.Definition{Name: "a", AutoStart: true}, sessions.Definition{Name: "b", AutoStart: true})
	w.start("a")
	w.freezeServer(w.pane("a").Server.PID)
	begin := time.Now()
	_, started := w.StartAll(t.Context())
	_, stopped := w.StopAll(t.Context())
	for verb, err := range map[string]error{"start": started, "stop": stopped} {
		if !errors.Is(err, sessions.ErrTerminalTimeout) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %s to notice", took)
	}
	w.wantEvents(sessions.EventStarted)
}

func TestManyStartSideBySideWithoutWaitingForEachOthersProbe(t *testing.T) {
	t.Parallel()
	var all []sessions.Definition
	const n = 12
	for i := range n {
		all = append(all, sessions.Definition{Name: "s" + string(rune('a'+i)), AutoStart: true})
	}
	w := newEnv(t, nil, all...)
	if rows, err := w.StartAll(t.Context()); err != nil || rows.Failed() != 0 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, d := range all {
		w.awaitReady(d.Name)
	}
	if rows, err := w.StopAll(t.Context()); err != nil || rows.Failed() != 0 {
		t.Fatalf("%+v, %v", rows, err)
	}
	w.reconfigure(func(c *core.Config) { c.Probe = 2 * time.Second })
	begin := time.Now()
	rows, err := w.StartAll(t.Context())
	if err != nil || rows.Failed() != 0 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, r := range rows.Rows {
		if r.Outcome != sessions.OutcomeResumed {
			t.Errorf("%+v", r)
		}
	}
	if took := time.Since(begin); took > n*time.Second {
		t.Errorf("%d probes of 2 s took %s", n, took)
	}
}

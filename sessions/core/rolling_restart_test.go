package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/envstate"
	"the-loop/sessions/harness"
	"the-loop/sessions/tmux/tmuxtest"
)

// writeEnvFile is an env file on disk that the configuration names.
func (w *env) writeEnvFile(lines ...string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, "env")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.reconfigure(func(c *core.Config) { c.Env = envFileAt(path) })
	return path
}

// envFileAt is the env file at path.
func envFileAt(path string) func() (sessions.EnvFile, error) {
	return func() (sessions.EnvFile, error) {
		file, err := envstate.ReadFile(path)
		if errors.Is(err, envstate.ErrNotConfigured) {
			return sessions.EnvFile{}, nil
		}
		pass, refused := envstate.Split(file.Values(), "OUR_TOKEN")
		return sessions.EnvFile{Configured: true, Values: pass, Refused: refused, Malformed: file.Malformed, Warning: file.Warning}, err
	}
}

// roll rolls, and returns the one row.
func (w *env) restartOne(q sessions.RollingRestartRequest) sessions.RestartRow {
	w.t.Helper()
	rolled, err := w.RollingRestart(w.t.Context(), q)
	if err != nil || len(rolled.Rows) != 1 {
		w.t.Fatalf("%+v, %v", rolled, err)
	}
	return rolled.Rows[0]
}

func restartOnly(name string) sessions.RollingRestartRequest {
	return sessions.RollingRestartRequest{Refs: []sessions.Ref{ref(name)}}
}

// agentEnviron is what the session's agent was started with.
func (w *env) agentEnviron(name string) map[string]string {
	w.t.Helper()
	values, ok := envstate.ProcessEnviron(w.t.Context(), w.pane(name).PID)
	if !ok {
		w.t.Fatal("the agent's environment cannot be read")
	}
	return values
}

func TestR1_ARollingRestartBringsASessionOntoTheNewEnvironmentInItsPaneAndConversation(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.reconfigure(func(c *core.Config) {
		c.RemainOnExit = false
		c.OwnEnv = map[string]string{"THE_LOOP_INSTANCE": "ours"}
	})
	w.writeEnvFile("TOKEN=old", "GONE=x", "THE_LOOP_INSTANCE=forged")
	first := w.start("a")
	w.awaitUserTexts("a", 1)
	pane := w.pane("a")
	if d := w.Drift(t.Context()); d.Stale != 0 || d.Running != 1 || d.StatusLine() != "" || d.Rows[0].State != sessions.DriftCurrent {
		t.Errorf("before: %+v", d)
	}
	w.writeEnvFile("TOKEN=new", "MORE=y", "PATH=/usr/bin:/bin:/own", "SHELL=/bin/own", "THE_LOOP_INSTANCE=forged", "THE_LOOP_SESSION=forged")
	d := w.Drift(t.Context())
	if d.Stale != 1 || !slices.Equal(d.Rows[0].Stale, []string{"GONE", "MORE", "PATH", "SHELL", "TOKEN"}) ||
		d.StatusLine() != "sessions 1 of 1 running with a stale environment — `the-loop sessions restart --all`" {
		t.Errorf("%+v %q", d, d.StatusLine())
	}
	row := w.restartOne(sessions.RollingRestartRequest{All: true})
	if row.Outcome != sessions.OutcomeVerified || row.Ref != ref("a") || row.TmuxTarget != "loop-standing-a" || len(row.Stale) != 0 {
		t.Errorf("%+v", row)
	}
	now, holds := w.pane("a"), w.agentEnviron("a")
	if now.ID != pane.ID || now.SessionID != pane.SessionID || now.PID == pane.PID || tmuxtest.IsAlive(pane.PID) {
		t.Errorf("%+v, was %+v", now, pane)
	}
	for name, want := range map[string]string{"TOKEN": "new", "MORE": "y", "PATH": "/usr/bin:/bin:/own", "SHELL": "/bin/own",
		"THE_LOOP_INSTANCE": "ours", "THE_LOOP_SESSION": first.ID} {
		if holds[name] != want {
			t.Errorf("%s=%s, want %s", name, holds[name], want)
		}
	}
	if _, there := holds["GONE"]; there {
		t.Error("a name that left the env file is still there")
	}
	if rec := w.record("a"); rec.Conversation != first.Conversation || rec.Status != sessions.StatusRunning || rec.ReplacesPID != 0 {
		t.Errorf("%+v", rec)
	}
	w.awaitReady("a")
	if receipt := w.submit("a", "still there?"); receipt != sessions.ReceiptAccepted {
		t.Error(receipt)
	}
	if said := w.transcriptTexts("a", "user"); len(said) != 2 || said[1] != "still there?" {
		t.Errorf("the conversation is %q", said)
	}
	if d := w.Drift(t.Context()); d.Stale != 0 || d.Running != 1 {
		t.Errorf("after: %+v", d)
	}
}

// R1.7: no env.file, and one that is gone, are refused; a file that declares nothing is not.
func TestR1_7_ARollingRestartNeedsAnEnvFile(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	pane := w.pane("a")
	for _, tc := range []struct {
		says   string
		change func(*core.Config)
	}{
		{"env.file is not set", func(c *core.Config) { c.Env = nil }},
		{"env.file: gone", func(c *core.Config) {
			c.Env = func() (sessions.EnvFile, error) { return sessions.EnvFile{}, errors.New("env.file: gone") }
		}},
	} {
		w.reconfigure(tc.change)
		for _, dry := range []bool{true, false} {
			_, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true, DryRun: dry})
			w.wantRefusal(err, sessions.ErrEnvFile, tc.says, "env.file")
		}
	}
	if d := w.Drift(t.Context()); d.Problem == "" || d.Stale != 0 || len(d.Rows) != 0 {
		t.Errorf("%+v", d)
	}
	w.reconfigure(func(c *core.Config) { c.Env = nil })
	if d := w.Drift(t.Context()); d.Configured || d.Running != 0 || d.Problem != "" {
		t.Errorf("%+v", d)
	}
	if w.pane("a") != pane {
		t.Error("the pane was touched")
	}
	w.writeEnvFile()
	if row := w.restartOne(restartOnly("a")); row.Outcome != sessions.OutcomeVerified {
		t.Errorf("%+v", row)
	}
}

func TestR1_MalformedLinesAreNamedByNumberAndTheOthersAreUsed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	path := w.writeEnvFile("TOKEN=old")
	w.start("a")
	w.writeEnvFile("TOKEN=new", "this is a secret", "OUR_TOKEN=xoxb-1", "TERM=x")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true})
	if err != nil || rolled.Rows[0].Outcome != sessions.OutcomeVerified || !slices.Equal(rolled.Malformed, []int{2}) ||
		!slices.Equal(rolled.Refused, []string{"OUR_TOKEN", "TERM"}) || !strings.Contains(rolled.Warning, "chmod 600") {
		t.Errorf("%+v, %v", rolled, err)
	}
	if notes := strings.Join(rolled.Notes(), "\n"); strings.Contains(notes, "secret") || strings.Contains(notes, "xoxb") || !strings.Contains(notes, "line 2") {
		t.Errorf("%s", notes)
	}
	holds := w.agentEnviron("a")
	if _, there := holds["OUR_TOKEN"]; there || holds["TERM"] == "x" || holds["TOKEN"] != "new" {
		t.Errorf("TERM=%s, TOKEN=%s", holds["TERM"], holds["TOKEN"])
	}
}

// R1.5, R1.6: what does not run is not started, and an agent that could not come back in its conversation is left alone.
func TestR1_5_R1_6_WhatCannotBeRestartedIsSkippedAndNotTouched(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		a := newSmallAgent(w.dir)
		o.Harnesses = harness.NewSet(a, harness.Template{Title: "tool", Binary: "/usr/bin/env",
			Args: []string{runAsAgent + "=1", a.Argv[0], "--dir", a.Dir, "--session-id", "{sessionId}", "{harnessArgs}", "{prompt}"}}).Get
	}, sessions.Definition{Name: "stopped"}, sessions.Definition{Name: "ended"}, sessions.Definition{Name: "no-conversation"},
		sessions.Definition{Name: "flag"}, sessions.Definition{Name: "cannot", Harness: "tool"}, sessions.Definition{Name: "new"})
	w.writeEnvFile("TOKEN=old")
	for _, name := range []string{"stopped", "ended", "no-conversation", "flag", "cannot"} {
		w.start(name)
	}
	w.stop("stopped")
	w.killAgent("ended")
	w.editRecord("no-conversation", func(r *sessions.Record) { r.Conversation = "" })
	w.editRecord("flag", func(r *sessions.Record) { r.Conversation = "--help" })
	w.writeEnvFile("TOKEN=new")
	before := w.panes()
	for name, says := range map[string]string{"stopped": "not running", "ended": "not running", "no-conversation": "none is recorded",
		"flag": "shape", "cannot": "no way to resume", "new": "no session is registered as standing:new", "nobody": "no session is registered"} {
		for _, dry := range []bool{true, false} {
			q := restartOnly(name)
			q.DryRun = dry
			if row := w.restartOne(q); row.Outcome != sessions.OutcomeSkipped || !strings.Contains(row.Detail, says) || row.Ref != ref(name) {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
	if after := w.panes(); !slices.Equal(before, after) {
		t.Errorf("panes %+v, were %+v", after, before)
	}
	w.reconfigure(func(c *core.Config) { c.Resume = false })
	if row := w.restartOne(restartOnly("flag")); row.Outcome != sessions.OutcomeSkipped || !strings.Contains(row.Detail, "resumeOnRespawn") {
		t.Errorf("%+v", row)
	}
	if rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true}); err != nil || len(rolled.Rows) != 5 || rolled.Failed() != 0 {
		t.Errorf("%+v, %v", rolled, err)
	}
}

func TestR1_WhatARestartNeedsIsCheckedBeforeTheAgentIsEnded(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.writeEnvFile("TOKEN=old")
	w.start("a")
	pane := w.pane("a")
	for says, change := range map[string]func(){
		"/nowhere": func() { w.reconfigure(func(c *core.Config) { c.Declared[0].Cwd = "/nowhere" }) },
		"TMUX_BIG": func() { w.writeEnvFile("TMUX_BIG=" + strings.Repeat("x", 200_000)) },
	} {
		change()
		if row := w.restartOne(restartOnly("a")); row.Outcome != sessions.OutcomeFailed || !strings.Contains(row.Detail, says) {
			t.Errorf("%.300s", fmt.Sprintf("%+v", row))
		}
		w.reconfigure(func(c *core.Config) { c.Declared[0].Cwd = w.dir })
	}
	if rec := w.record("a"); w.pane("a") != pane || rec.Status != sessions.StatusRunning || rec.ReplacesPID != 0 {
		t.Errorf("%+v, %+v", w.pane("a"), rec)
	}
}

// The pane loses its mark while the agent ends, so tmux refuses to run anything in it.
func TestR1_ARespawnThatTmuxRefusesIsFailedAndSaysTmuxsWords(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		o.Harnesses = harness.NewSet(harness.Template{Title: "trap", Binary: "/bin/sh", Args: []string{"-c",
			`trap 'until tmux set-option -p -u -t $TMUX_PANE @the-loop-id; do :; done; exit 0' TERM; echo ready; while :; do sleep 1000 & wait $!; done`},
			ResumeArgs: []string{"-c", "sleep 1000"}}).Get
	}, sessions.Definition{Name: "a", Harness: "trap"})
	w.writeEnvFile("TOKEN=old")
	if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the trap", func() bool { return strings.Contains(w.screen("a"), "ready") })
	pane := w.pane("a")
	if row := w.restartOne(restartOnly("a")); row.Outcome != sessions.OutcomeFailed || !strings.Contains(row.Detail, sessions.ErrPaneGone.Error()) {
		t.Errorf("%+v", row)
	}
	if out, err := exec.Command("tmux", "-S", tmuxtest.Socket(w.dir), "kill-pane", "-t", pane.ID).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A corpse is not a session.
func TestR1_AnAgentThatDiesInsideTheProbeWindowIsFailed(t *testing.T) {
	t.Parallel()
	for _, remain := range []bool{true, false} {
		w := newEnv(t, func(w *env, o *core.Options) {
			o.Harnesses = harness.NewSet(harness.Template{Title: "mortal", Binary: "/bin/sh", Args: []string{"-c", "sleep 1000; :"},
				ResumeArgs: []string{"-c", "exit 3"}}).Get
		}, sessions.Definition{Name: "a", Harness: "mortal"})
		w.reconfigure(func(c *core.Config) { c.RemainOnExit, c.Probe = remain, 500*time.Millisecond })
		w.writeEnvFile("TOKEN=old")
		if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
			t.Fatal(err)
		}
		if row := w.restartOne(restartOnly("a")); row.Outcome != sessions.OutcomeFailed || !strings.Contains(row.Detail, "with status 3") {
			t.Errorf("remain %t: %+v", remain, row)
		}
		if row := w.row("a"); row.State != sessions.StateEnded {
			t.Errorf("remain %t: %+v", remain, row)
		}
		if p := w.pane("a"); !p.Dead {
			t.Errorf("remain %t: %+v", remain, p)
		}
	}
}

func TestR2_AnEnvironmentThatIsNotWhatWasGivenIsVerifiedStale(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		keep := []string{"-c", "exec env TOKEN=other sleep 1000"}
		o.Harnesses = harness.NewSet(harness.Template{Title: "wrapped", Binary: "/bin/sh", Args: keep, ResumeArgs: keep}).Get
	}, sessions.Definition{Name: "a", Harness: "wrapped"})
	w.writeEnvFile("TOKEN=new", "FINE=y")
	if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true})
	if err != nil || rolled.Rows[0].Outcome != sessions.OutcomeStale || !slices.Equal(rolled.Rows[0].Stale, []string{"TOKEN"}) || rolled.Failed() != 1 {
		t.Errorf("%+v, %v", rolled, err)
	}
}

// R2.3: an environment that cannot be read fails nothing.
func TestR2_3_WhatCannotBeReadIsUnverifiedAndFailsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		// A program that writes over its environment, as some do to change their title.
		hide := []string{"-e", `use POSIX; require "syscall.ph" if 0; open(my $f, "<", "/proc/self/stat"); my $s = <$f>; $s =~ s/.*\) //; my @f = split / /, $s; open(my $m, "+<", "/proc/self/mem"); binmode $m; sysseek($m, $f[47], 0); syswrite($m, "x" x ($f[48] - $f[47])); $SIG{TERM} = sub { exit 0 }; print "hidden\n"; sleep 1000`}
		o.Harnesses = harness.NewSet(harness.Template{Title: "hidden", Binary: "perl", Args: hide, ResumeArgs: hide}).Get
	}, sessions.Definition{Name: "a", Harness: "hidden"})
	w.writeEnvFile("TOKEN=new")
	if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the program", func() bool { return strings.Contains(w.screen("a"), "hidden") })
	if d := w.Drift(t.Context()); d.Unknown != 1 || d.Stale != 0 || d.Running != 1 || d.Rows[0].State != sessions.DriftUnknown {
		t.Errorf("%+v", d)
	}
	w.reconfigure(func(c *core.Config) { c.Probe = time.Second })
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true})
	if err != nil || rolled.Rows[0].Outcome != sessions.OutcomeUnverified || rolled.Failed() != 0 {
		t.Errorf("%+v, %v", rolled, err)
	}
}

// R2.4: a dry run shows what would be replaced, and replaces nothing.
func TestR2_4_ADryRunTellsAndTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"}, sessions.Definition{Name: "c"})
	w.writeEnvFile("TOKEN=old", "SAME=1")
	w.start("a")
	w.start("b")
	w.start("c")
	w.stop("c")
	w.writeEnvFile("TOKEN=new", "SAME=1")
	before, events := w.panes(), w.events.Names()
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true, DryRun: true})
	if err != nil || !rolled.DryRun || len(rolled.Rows) != 3 || rolled.Failed() != 0 {
		t.Fatalf("%+v, %v", rolled, err)
	}
	for i, want := range []sessions.Outcome{sessions.OutcomeWouldRestart, sessions.OutcomeWouldRestart, sessions.OutcomeSkipped} {
		row := rolled.Rows[i]
		if row.Outcome != want || want == sessions.OutcomeWouldRestart && !slices.Equal(row.Stale, []string{"TOKEN"}) {
			t.Errorf("%+v", row)
		}
	}
	if after := w.panes(); !slices.Equal(before, after) {
		t.Errorf("panes %+v, were %+v", after, before)
	}
	w.wantEvents(events...)
}

func TestRepliesWaitWhileASessionIsRestarted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.writeEnvFile("TOKEN=old")
	w.start("a")
	w.awaitUserTexts("a", 1)
	w.writeEnvFile("TOKEN=new")
	done := make(chan error)
	go func() {
		rolled, err := w.RollingRestart(context.WithoutCancel(t.Context()), restartOnly("a"))
		if err == nil && rolled.Failed() > 0 {
			err = fmt.Errorf("%+v", rolled)
		}
		done <- err
	}()
	for going := true; going; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			going = false
		default:
			_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "while it is rolled"})
			var refusal *sessions.Refusal
			if errors.As(err, &refusal) || errors.Is(err, sessions.ErrInDoubt) {
				t.Errorf("%v", err)
			}
		}
	}
}

// A roll that died at any point is finished by the next start or roll, in the same conversation.
func TestAnInterruptedRollingRestartIsFinished(t *testing.T) {
	t.Parallel()
	finish := map[string]func(*env) error{
		"start": func(w *env) error {
			_, err := w.Start(w.t.Context(), sessions.StartRequest{Ref: ref("a")})
			return err
		},
		"roll": func(w *env) error {
			if row := w.restartOne(restartOnly("a")); row.Outcome != sessions.OutcomeVerified {
				return fmt.Errorf("%+v", row)
			}
			return nil
		},
		"restart": func(w *env) error {
			_, err := w.Restart(w.t.Context(), sessions.RestartRequest{Ref: ref("a")})
			return err
		},
	}
	for by, do := range finish {
		for _, dead := range []bool{false, true} {
			t.Run(fmt.Sprint(by, ", the agent had ended: ", dead), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, nil, sessions.Definition{Name: "a"})
				w.writeEnvFile("TOKEN=old")
				first := w.start("a")
				w.awaitUserTexts("a", 1)
				pane := w.pane("a")
				w.editRecord("a", func(r *sessions.Record) { r.Status, r.ReplacesPID = sessions.StatusStarting, pane.PID })
				w.writeEnvFile("TOKEN=new")
				if dead {
					w.killAgent("a")
				}
				if err := do(w); err != nil {
					t.Fatal(err)
				}
				rec, now := w.record("a"), w.pane("a")
				if rec.Status != sessions.StatusRunning || rec.ReplacesPID != 0 || rec.Conversation != first.Conversation || now.ID != pane.ID || now.PID == pane.PID {
					t.Errorf("record %+v, pane %+v", rec, now)
				}
				if token := w.agentEnviron("a")["TOKEN"]; token != "new" {
					t.Errorf("TOKEN=%s", token)
				}
			})
		}
	}
}

func TestAnAgentOfARollingRestartThatDiedBeforeRecordingItIsAdopted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	pane := w.pane("a")
	w.editRecord("a", func(r *sessions.Record) { r.Status, r.ReplacesPID = sessions.StatusStarting, pane.PID+1 })
	row, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")})
	if rec := w.record("a"); err != nil || row.Outcome != sessions.OutcomeAlreadyRunning || rec.ReplacesPID != 0 || rec.Status != sessions.StatusRunning || w.pane("a") != pane {
		t.Errorf("%+v, %v, %+v", row, err, rec)
	}
}

func TestDriftListsPanesOnce(t *testing.T) {
	t.Parallel()
	var c *countingTerminal
	w := newEnv(t, func(_ *env, o *core.Options) {
		c = &countingTerminal{Terminal: o.Terminal}
		o.Terminal = c
	}, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"}, sessions.Definition{Name: "c"})
	w.writeEnvFile("TOKEN=old")
	w.start("a")
	w.start("b")
	w.start("c")
	w.writeEnvFile("TOKEN=new")
	before := c.calls.Load()
	if d := w.Drift(t.Context()); d.Stale != 3 {
		t.Errorf("%+v", d)
	}
	if n := c.calls.Load() - before; n != 1 {
		t.Errorf("tmux was called %d times", n)
	}
}

// Whoever rolls is killed at any moment, and the next start finishes: in the same pane and conversation, whether or not dead
// panes are kept. An operator who is attached stays.
func TestAKilledRollingRestartIsFinishedByTheNextStart(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.reconfigure(func(c *core.Config) { c.RemainOnExit = false })
	path := w.writeEnvFile("TOKEN=v0")
	first := w.start("a")
	w.awaitUserTexts("a", 1)
	pane := w.pane("a")
	client := w.attachClient(pane)
	order, err := json.Marshal(secondArgs{Dir: w.dir, Definition: w.config().Declared[0], Env: path})
	if err != nil {
		t.Fatal(err)
	}
	moments := map[string]int{}
	for i := 1; i <= 20; i++ {
		w.writeEnvFile(fmt.Sprint("TOKEN=v", i))
		was := w.pane("a").PID
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), runAsSecond+"="+string(order))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killed := time.AfterFunc(time.Duration(rand.Int64N(int64(150*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // it is killed, or was done before
		killed.Stop()
		rec := w.record("a")
		moments[fmt.Sprint(rec.Status, rec.ReplacesPID != 0)]++
		begun := rec.ReplacesPID != 0 || w.pane("a").PID != was
		if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
			t.Fatal(err)
		}
		now, rec := w.pane("a"), w.record("a")
		if now.ID != pane.ID || now.SessionID != pane.SessionID || now.Dead || rec.Status != sessions.StatusRunning || rec.ReplacesPID != 0 || rec.Conversation != first.Conversation {
			t.Fatalf("try %d: pane %+v, record %+v", i, now, rec)
		}
		if token := w.agentEnviron("a")["TOKEN"]; begun != (token == fmt.Sprint("v", i)) {
			t.Errorf("try %d: begun %t, TOKEN=%s", i, begun, token)
		}
		w.awaitReady("a")
		if !tmuxtest.IsAlive(client) {
			t.Fatalf("try %d: who was attached is gone", i)
		}
	}
	t.Logf("killed at %v", moments)
	if receipt := w.submit("a", "still there?"); receipt != sessions.ReceiptAccepted {
		t.Error(receipt)
	}
	if said := w.transcriptTexts("a", "user"); len(said) != 2 {
		t.Errorf("the conversation is %q", said)
	}
}

// attachClient attaches to the session in a terminal of another tmux server, and returns the client's pid.
func (w *env) attachClient(p sessions.Pane) int {
	w.t.Helper()
	other := tmuxtest.Start(w.t)
	person, err := other.Spawn(w.t.Context(), sessions.Spawn{Name: "person", Mark: "person", Cwd: w.dir, RemainOnExit: true, Width: 80, Height: 24,
		Argv: w.tmux.AttachCommand(p, false, false)})
	if err != nil {
		w.t.Fatal(err)
	}
	tmuxtest.Await(w.t, "the client", func() bool {
		out, err := exec.Command("tmux", "-S", tmuxtest.Socket(w.dir), "list-clients", "-F", "#{client_pid}").Output()
		return err == nil && len(out) > 0
	})
	return person.PID
}

// No value of the env file shows in any process's arguments, in an event, in the state or in what a verb returns.
func TestNoValueShowsAnywhereDuringARollingRestart(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"})
	values := []string{"canary-old-1f0c", "canary-new-2e9d", "canary-text-77aa"}
	w.writeEnvFile("TOKEN=" + values[0])
	w.start("a")
	w.start("b")
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, path := range lines {
				if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte("canary-")) {
					t.Errorf("%s: %q", path, line)
				}
			}
		}
	})
	var told []any
	for i := range 4 {
		w.writeEnvFile("TOKEN="+values[(i+1)%2], values[2]+" is no assignment")
		rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true, DryRun: i == 1})
		told = append(told, w.Drift(t.Context()), rolled, err)
	}
	w.writeEnvFile("TOKEN=" + strings.Repeat(values[1], 20_000)) // more than a pane can be given
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true})
	if rolled.Failed() != 2 {
		t.Errorf("%+v", rolled)
	}
	rows, listed := w.List(t.Context())
	told = append(told, rolled, err, rows, listed, w.events.Events())
	close(stop)
	sampling.Wait()
	everything := map[string]string{"what was told": fmt.Sprintf("%+v", told)}
	for _, what := range told {
		raw, _ := json.Marshal(what)
		everything["what was told"] += string(raw)
	}
	walked := filepath.WalkDir(filepath.Join(w.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			everything[path] = string(data)
			return err
		}
		return err
	})
	if walked != nil {
		t.Fatal(walked)
	}
	for where, text := range everything {
		if i := strings.Index(text, "canary-"); i >= 0 {
			t.Errorf("%s holds a value: %.200q", where, text[i:])
		}
	}
}

// Sessions of work items are rolled like standing ones, and keep the names that the product gives them.
func TestSessionsOfBothKindsAreRestarted(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.writeEnvFile("TOKEN=new", "THE_LOOP_WORK_ITEM=forged")
	pane := w.pane(item)
	if d := w.Drift(t.Context()); d.Running != 1 || d.Stale != 1 || d.Rows[0].Ref != item || !slices.Equal(d.Rows[0].Stale, []string{"TOKEN"}) {
		t.Errorf("%+v", d)
	}
	row := w.restartOne(sessions.RollingRestartRequest{All: true})
	holds, now := w.agentEnviron(item), w.pane(item)
	if row.Outcome != sessions.OutcomeVerified || row.Ref != item || now.ID != pane.ID || now.PID == pane.PID {
		t.Errorf("%+v, pane %+v was %+v", row, now, pane)
	}
	if holds["TOKEN"] != "new" || holds["THE_LOOP_WORK_ITEM"] != string(ref(item)) {
		t.Errorf("TOKEN=%s, THE_LOOP_WORK_ITEM=%s", holds["TOKEN"], holds["THE_LOOP_WORK_ITEM"])
	}
	if d := w.Drift(t.Context()); d.Stale != 0 || d.Running != 1 {
		t.Errorf("%+v", d)
	}
}

package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// environDumper is a program that writes its environment to a file and stays.
func (f *tmuxEnv) environDumper(out string) []string {
	return []string{"/bin/sh", "-c", `cat /proc/$$/environ > "$0~"; mv "$0~" "$0"; while :; do read wait || sleep 1; done`, out}
}

// respawn runs the dumper in the pane and returns what environment it got.
func (f *tmuxEnv) respawn(p sessions.Pane, env map[string]string, change func(*sessions.Respawn)) (sessions.Pane, []string) {
	f.t.Helper()
	out := filepath.Join(f.dir, fmt.Sprint("env", time.Now().UnixNano()))
	r := sessions.Respawn{Pane: p.ID, Grace: 5 * time.Second, Spawn: sessions.Spawn{Name: p.SessionName, Mark: p.Mark, Cwd: f.dir,
		Argv: f.environDumper(out), Env: env, Declared: slices.Sorted(maps.Keys(env)), RemainOnExit: true}}
	if change != nil {
		change(&r)
	}
	got, err := f.Respawn(f.t.Context(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	text := tmuxtest.AwaitFile(f.t, out, func(s string) bool { return s != "" })
	return got, strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
}

func (f *tmuxEnv) spawnDumper(env map[string]string, remain bool) sessions.Pane {
	f.t.Helper()
	out := filepath.Join(f.dir, "first")
	p, err := f.Spawn(f.t.Context(), sessions.Spawn{Name: "a", Mark: "id-a", Cwd: f.dir, Argv: f.environDumper(out), Env: env,
		Declared: slices.Sorted(maps.Keys(env)), RemainOnExit: remain, Width: 123, Height: 45})
	if err != nil {
		f.t.Fatal(err)
	}
	tmuxtest.AwaitFile(f.t, out, func(s string) bool { return s != "" })
	return p
}

func TestARespawnKeepsThePaneAndThoseWhoLookAtIt(t *testing.T) {
	t.Parallel()
	for _, remain := range []bool{true, false} {
		t.Run(fmt.Sprint("remain-on-exit ", remain), func(t *testing.T) {
			t.Parallel()
			f := newEnv(t)
			p := f.spawnDumper(map[string]string{"TOKEN": "old"}, remain)
			client := attachObserver(t, f, p, false)
			pid := f.tmux("list-clients", "-F", "#{client_pid}")
			got, environ := f.respawn(p, map[string]string{"TOKEN": "new"}, func(r *sessions.Respawn) { r.RemainOnExit = remain })
			if got.ID != p.ID || got.SessionID != p.SessionID || got.Mark != p.Mark || got.Server != p.Server || got.PID == p.PID || got.Dead {
				t.Errorf("%+v of %+v", got, p)
			}
			if environValue(environ, "TOKEN") != "new" || tmuxtest.IsAlive(p.PID) {
				t.Errorf("TOKEN is %q, the old process lives: %t", environValue(environ, "TOKEN"), tmuxtest.IsAlive(p.PID))
			}
			if now := f.tmux("list-clients", "-F", "#{client_name} #{client_pid} #{session_id}"); now != client+" "+pid+" "+p.SessionID {
				t.Errorf("clients %q, want %s %s in %s", now, client, pid, p.SessionID)
			}
			want := "123x45 on"
			if !remain {
				want = "123x45 off"
			}
			if is := f.tmux("display-message", "-p", "-t", p.ID, "#{window_width}x#{window_height} #{remain-on-exit}"); is != want {
				t.Errorf("the pane is %s, want %s", is, want)
			}
		})
	}
}

// A session's environment in tmux outlives a respawn: what left the env file has to be taken out of it.
func TestARespawnedProcessHasWhatIsDeclaredNowAndNothingElse(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	p := f.spawnDumper(map[string]string{"GONE": "x", "HOME": "/elsewhere", "KEPT": "old"}, true)
	if p.Declared != "GONE HOME KEPT" {
		t.Errorf("declared %q", p.Declared)
	}
	env := map[string]string{"KEPT": "new", "LONG": strings.Repeat("\xff\"\\$#", 20_000), "PATH": "/usr/bin:/bin:/x", "SHELL": "/bin/own"}
	for i, v := range hostileValues {
		env[fmt.Sprint("V", i)] = v
	}
	p, environ := f.respawn(p, env, nil)
	for name, want := range env {
		if got := environValue(environ, name); got != want {
			t.Errorf("%s is %.80q, want %.80q", name, got, want)
		}
	}
	if slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "GONE=") }) || environValue(environ, "HOME") != os.Getenv("HOME") {
		t.Errorf("GONE is %q, HOME is %q", environValue(environ, "GONE"), environValue(environ, "HOME"))
	}
	if got := strings.Fields(p.Declared); !slices.Equal(got, slices.Sorted(maps.Keys(env))) {
		t.Errorf("declared %q", got)
	}
	_, environ = f.respawn(p, nil, nil)
	for name := range env {
		if slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, name+"=") }) && name != "PATH" && name != "SHELL" {
			t.Errorf("%s is still there", name)
		}
	}
	if now := f.tmux("show-environment", "-t", p.SessionID); strings.Contains(now, "KEPT") || strings.Contains(now, "GONE") {
		t.Errorf("later panes of the session begin with %s", now)
	}
}

func TestARespawnThatIsRefusedEndsNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	p := f.spawnDumper(nil, true)
	for name, c := range map[string]struct {
		change func(*sessions.Respawn)
		is     func(error) bool
	}{
		"no program":   {func(r *sessions.Respawn) { r.Argv = []string{"no-such-program"} }, func(err error) bool { return hasErrorType[*tmux.BinaryNotFoundError](err) }},
		"tmux's name":  {func(r *sessions.Respawn) { r.Env = map[string]string{"TMUX": "x"} }, func(err error) bool { return hasErrorType[*tmux.ReservedError](err) }},
		"no folder":    {func(r *sessions.Respawn) { r.Cwd = "/nowhere/at/all" }, func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
		"another mark": {func(r *sessions.Respawn) { r.Mark = "other" }, func(err error) bool { return errors.Is(err, sessions.ErrPaneGone) }},
		"too long":     {func(r *sessions.Respawn) { r.Env = map[string]string{"A": strings.Repeat("x", 200_000)} }, func(err error) bool { return errors.Is(err, tmux.ErrTooLong) }},
	} {
		r := sessions.Respawn{Pane: p.ID, Spawn: sessions.Spawn{Name: "a", Mark: p.Mark, Cwd: f.dir, Argv: []string{"sleep", "1000"}}}
		c.change(&r)
		if _, err := f.Respawn(t.Context(), r); !c.is(err) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := tmuxtest.FindPane(t, f.Tmux, p.Mark); now != p {
		t.Errorf("%+v, was %+v", now, p)
	}
}

func hasErrorType[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// A pane that somebody took the mark from while the old agent ended is not ours any more.
func TestRespawnChecksTheMarkAgain(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	ready := filepath.Join(f.dir, "trapped")
	p, err := f.Spawn(t.Context(), sessions.Spawn{Name: "a", Mark: "id-a", Cwd: f.dir, RemainOnExit: true, Argv: []string{"/bin/sh", "-c",
		`trap 'until tmux set-option -p -u -t $TMUX_PANE @the-loop-id; do :; done; exit 0' TERM; touch "$0"; while :; do sleep 1000 & wait $!; done`, ready}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.AwaitFile(t, ready, func(string) bool { return true })
	_, err = f.Respawn(t.Context(), sessions.Respawn{Pane: p.ID, Grace: 10 * time.Second,
		Spawn: sessions.Spawn{Mark: p.Mark, Cwd: f.dir, Argv: []string{"sleep", "1000"}}})
	if !errors.Is(err, sessions.ErrPaneGone) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	f.tmux("kill-pane", "-t", p.ID)
}

func TestAHoldKeepsThePaneOfAProcessThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	p := f.spawnDumper(nil, false)
	r := sessions.Respawn{Pane: p.ID, Grace: 5 * time.Second, RemainFor: 200 * time.Millisecond,
		Spawn: sessions.Spawn{Mark: p.Mark, Cwd: f.dir, Argv: []string{"sleep", "1000"}}}
	if _, err := f.Respawn(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.RemainFor, r.Argv = time.Hour, []string{"/bin/sh", "-c", "sleep 0.5; exit 3"}
	if _, err := f.Respawn(t.Context(), r); err != nil { // the first one's hold ends meanwhile and must not count
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the end", func() bool { return tmuxtest.FindPane(t, f.Tmux, p.Mark).Dead })
	if p := tmuxtest.FindPane(t, f.Tmux, p.Mark); p.ExitStatus != 3 {
		t.Errorf("%+v", p)
	}
	r.RemainFor, r.Argv = 100*time.Millisecond, []string{"sleep", "1000"}
	if _, err := f.Respawn(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the hold's end", func() bool { return f.tmux("display-message", "-p", "-t", p.ID, "#{remain-on-exit}") == "off" })
}

// The end of whoever asked for it does not leave a pane without its agent.
func TestStartedRespawnIsNotCancelled(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	ready := filepath.Join(f.dir, "trapped")
	p, err := f.Spawn(t.Context(), sessions.Spawn{Name: "a", Mark: "id-a", Cwd: f.dir, Argv: []string{"/bin/sh", "-c",
		`trap ': > "$0.term"; sleep 0.3; exit 0' TERM; touch "$0"; while :; do sleep 1000 & wait $!; done`, ready}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.AwaitFile(t, ready, func(string) bool { return true })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Respawn(ctx, sessions.Respawn{Pane: p.ID, Grace: 10 * time.Second,
			Spawn: sessions.Spawn{Mark: p.Mark, Cwd: f.dir, Argv: []string{"sleep", "1000"}}})
		done <- err
	}()
	tmuxtest.AwaitFile(t, ready+".term", func(string) bool { return true })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if now := tmuxtest.FindPane(t, f.Tmux, p.Mark); now.Dead || now.PID == p.PID {
		t.Errorf("%+v", now)
	}
}

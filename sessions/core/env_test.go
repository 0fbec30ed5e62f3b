package core_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// env is a core over a real tmux, records on disk and the small agent.
type env struct {
	*core.Core
	t        testing.TB
	dir      string
	tmux     *tmux.Tmux
	registry *registry.Registry
	events   *eventlogtest.Recorder

	mu  sync.Mutex // guards cfg
	cfg core.Config
}

// newEnv makes an environment in which the definitions are declared. change may change how the core is made.
func newEnv(t testing.TB, change func(*env, *core.Options), declared ...sessions.Definition) *env {
	t.Helper()
	w := &env{t: t, dir: tmuxtest.Dir(t), events: &eventlogtest.Recorder{}}
	w.tmux = tmuxtest.StartIn(t, w.dir, tmux.Options{})
	w.registry = registry.New(filepath.Join(w.dir, "state"))
	w.cfg = core.Config{Enabled: true, RemainOnExit: true, Resume: true, Probe: 100 * time.Millisecond, KillGrace: 2 * time.Second}
	if err := os.MkdirAll(filepath.Join(w.dir, "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range declared {
		w.cfg.Declared = append(w.cfg.Declared, w.definition(d))
	}
	o := core.Options{Terminal: w.tmux, Store: w.registry, Sink: w.events, Config: w.config,
		Harnesses: harness.NewSet(newSmallAgent(w.dir)).Get}
	if change != nil {
		change(w, &o)
	}
	w.Core = core.New(o)
	return w
}

// definition fills in what a test does not care for.
func (w *env) definition(d sessions.Definition) sessions.Definition {
	if d.Source == "" {
		d.Source = sessions.SourceDeclared
	}
	if d.Harness == "" {
		d.Harness = smallagent.Name
	}
	if d.Cwd == "" {
		d.Cwd = w.dir
	}
	d.HarnessArgs = append([]string{"--reply-delay", "0s"}, d.HarnessArgs...)
	return d
}

func (w *env) config() core.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.cfg
	c.Declared = slices.Clone(c.Declared)
	return c
}

// reconfigure changes the configuration.
func (w *env) reconfigure(change func(*core.Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.cfg)
}

// ref is that of a standing session, or the work item's that is named in full.
func ref(name string) sessions.Ref {
	if strings.Contains(name, ":") {
		return sessions.Ref(name)
	}
	return sessions.StandingRef(name)
}

// start starts a session and waits until its agent can be talked to.
func (w *env) start(name string) sessions.Row {
	w.t.Helper()
	row, err := w.Start(w.t.Context(), sessions.StartRequest{Ref: ref(name)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.awaitReady(name)
	return row
}

func (w *env) stop(name string) sessions.Row {
	w.t.Helper()
	row, err := w.Stop(w.t.Context(), sessions.StopRequest{Ref: ref(name)})
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// record is the record on disk.
func (w *env) record(name string) sessions.Record {
	w.t.Helper()
	rec, err := w.registry.Load(w.t.Context(), ref(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// wantNoRecord fails when there is one.
func (w *env) wantNoRecord(name string) {
	w.t.Helper()
	if rec, err := w.registry.Load(w.t.Context(), ref(name)); !errors.Is(err, sessions.ErrNotRecorded) {
		w.t.Errorf("the record is %+v, %v; want none", rec, err)
	}
}

// editRecord changes the record on disk.
func (w *env) editRecord(name string, change func(*sessions.Record)) {
	w.t.Helper()
	rec := w.record(name)
	change(&rec)
	if err := w.registry.Save(w.t.Context(), rec); err != nil {
		w.t.Fatal(err)
	}
}

// row is the session's row in the list.
func (w *env) row(name string) sessions.Row {
	w.t.Helper()
	rows, err := w.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(r sessions.Row) bool { return r.Ref == ref(name) })
	if i < 0 {
		w.t.Fatalf("no row of %s in %+v", name, rows)
	}
	return rows[i]
}

// screen is what the session's pane shows.
func (w *env) screen(name string) string {
	w.t.Helper()
	screen, err := w.tmux.Capture(w.t.Context(), w.record(name).Target())
	if err != nil {
		w.t.Fatal(err)
	}
	return screen.Text
}

// awaitScreen waits for a screen of the small agent.
func (w *env) awaitScreen(name, what string, ok func(smallagent.Screen) bool) {
	w.t.Helper()
	tmuxtest.Await(w.t, what, func() bool {
		s, whole := smallagent.ParseScreen(w.screen(name))
		return whole && ok(s)
	})
}

func (w *env) awaitReady(name string) {
	w.t.Helper()
	w.awaitScreen(name, name+" ready", func(s smallagent.Screen) bool { return s.State == smallagent.StateReady })
}

// transcriptTexts are the entries of one type in the conversation that the record names.
func (w *env) transcriptTexts(name, kind string) (texts []string) {
	w.t.Helper()
	entries, _, err := smallagent.ReadTranscript(smallagent.TranscriptPath(filepath.Join(w.dir, "agent"), w.record(name).Conversation), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// prompts are what the agent was told at its start and since.
func (w *env) awaitUserTexts(name string, n int) []string {
	w.t.Helper()
	var texts []string
	tmuxtest.Await(w.t, "the agent's record", func() bool {
		texts = w.transcriptTexts(name, smallagent.TypeUser)
		return len(texts) >= n
	})
	return texts
}

// wantRefusal fails unless err is a refusal for that cause whose words hold all of the parts.
func (w *env) wantRefusal(err, cause error, parts ...string) {
	w.t.Helper()
	var refusal *sessions.Refusal
	if !errors.As(err, &refusal) || !errors.Is(err, cause) {
		w.t.Errorf("the error is %v; want a refusal: %v", err, cause)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			w.t.Errorf("%q does not say %q", err, p)
		}
	}
}

// wantEvents fails unless these are the events so far, in order.
func (w *env) wantEvents(names ...string) {
	w.t.Helper()
	if got := w.events.Names(); !slices.Equal(got, names) {
		w.t.Errorf("events %v, want %v", got, names)
	}
}

// lastEvent is the last event of a name.
func (w *env) lastEvent(name string) sessions.Event {
	w.t.Helper()
	for _, e := range slices.Backward(w.events.Events()) {
		if e.Name == name {
			return e
		}
	}
	w.t.Fatalf("no event %s in %v", name, w.events.Names())
	return sessions.Event{}
}

// pane is the session's pane.
func (w *env) pane(name string) sessions.Pane {
	w.t.Helper()
	return tmuxtest.FindPane(w.t, w.tmux, w.record(name).ID)
}

// killAgent ends the session's agent from outside, as an operator or a fault would, and waits until tmux knows.
func (w *env) killAgent(name string) {
	w.t.Helper()
	p := w.pane(name)
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	tmuxtest.Await(w.t, "the agent's death", func() bool {
		panes, err := w.tmux.Panes(context.WithoutCancel(w.t.Context()))
		if err != nil {
			w.t.Fatal(err)
		}
		i := slices.IndexFunc(panes, func(q sessions.Pane) bool { return q.Mark == p.Mark })
		return i < 0 || panes[i].Dead
	})
}

// occupyName occupies the session's place in tmux with something that is not ours.
func (w *env) occupyName(name string) sessions.Pane {
	w.t.Helper()
	p, err := w.tmux.Spawn(w.t.Context(), sessions.Spawn{Name: ref(name).TmuxName(), Mark: "squatter", Cwd: w.dir,
		Argv: []string{"sleep", "1000"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// freezeServer stops the tmux server, and has it go on at the end of the test.
func (w *env) freezeServer(pid int) (thaw func()) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(thaw)
	return thaw
}

// withShortTimeout has the core ask tmux with a short time-out.
func withShortTimeout(w *env, o *core.Options) {
	tm, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(w.dir), Dir: filepath.Join(w.dir, "c"), Timeout: 300 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	o.Terminal = tm
}

// declaringEnv is an env file with these values.
func declaringEnv(values map[string]string) func() (sessions.EnvFile, error) {
	return func() (sessions.EnvFile, error) { return sessions.EnvFile{Configured: true, Values: values}, nil }
}

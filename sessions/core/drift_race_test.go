package core_test

import (
	"context"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
)

// restartingTerminal lists no pane, as between the end of an agent and the start of the next, and calls between before it lists: the
// records have been read by then.
type restartingTerminal struct {
	sessions.Terminal
	between func()
}

func (t *restartingTerminal) Panes(ctx context.Context) ([]sessions.Pane, error) {
	if t.between == nil {
		return t.Terminal.Panes(ctx)
	}
	t.between()
	return nil, nil
}

// Records and panes are read one after the other: a restart that begins or ends in between is not the end of a session.
func TestASessionThatIsRestartedWhileDriftIsReadIsOnItsWayUp(t *testing.T) {
	t.Parallel()
	terminal := &restartingTerminal{}
	e := newEnv(t, func(e *env, o *core.Options) { terminal.Terminal = o.Terminal; o.Terminal = terminal }, sessions.Definition{Name: "a"})
	e.reconfigure(func(c *core.Config) {
		c.Env = func() (sessions.EnvFile, error) { return sessions.EnvFile{Configured: true}, nil }
	})
	e.start("a")
	before := e.record("a")
	for name, c := range map[string]struct {
		status sessions.Status
		later  time.Duration
		want   int
	}{
		"its agent ended":         {sessions.StatusRunning, 0, 0},
		"a restart has begun":     {sessions.StatusStarting, time.Second, 1},
		"a restart has been done": {sessions.StatusRunning, time.Second, 1},
		"it was stopped":          {sessions.StatusStopped, time.Second, 0},
	} {
		if err := e.registry.Save(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		terminal.between = func() {
			now := before
			now.Status, now.Changed = c.status, before.Changed.Add(c.later)
			if err := e.registry.Save(t.Context(), now); err != nil {
				t.Error(err)
			}
		}
		if d := e.Drift(t.Context()); d.Starting != c.want || d.Running != 0 || d.Problem != "" {
			t.Errorf("%s: %d starting, %d running, %q", name, d.Starting, d.Running, d.Problem)
		}
	}
	terminal.between = nil
	if err := e.registry.Save(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if d := e.Drift(t.Context()); d.Starting != 0 || d.Running != 1 {
		t.Errorf("afterwards: %+v", d)
	}
}

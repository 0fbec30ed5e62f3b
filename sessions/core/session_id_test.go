package core_test

import (
	"testing"

	"the-loop/sessions"
)

// What was meant for a session is never done to one that was made under its name later.
func TestAVerbIsDoneOnlyToTheSessionWithTheID(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	create := sessions.CreateRequest{Name: "a", Harness: "small-agent", HarnessArgs: []string{"--reply-delay", "0s"}, Cwd: w.dir}
	old, err := w.Create(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: old.Ref, ID: old.ID}); err != nil {
		t.Fatal(err)
	}
	now, err := w.Create(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	pane := w.pane("a")
	for verb, do := range map[string]func() (sessions.Row, error){
		"start": func() (sessions.Row, error) {
			return w.Start(t.Context(), sessions.StartRequest{Ref: old.Ref, ID: old.ID})
		},
		"stop": func() (sessions.Row, error) {
			return w.Stop(t.Context(), sessions.StopRequest{Ref: old.Ref, ID: old.ID})
		},
		"restart": func() (sessions.Row, error) {
			return w.Restart(t.Context(), sessions.RestartRequest{Ref: old.Ref, ID: old.ID})
		},
		"delete": func() (sessions.Row, error) {
			return w.Delete(t.Context(), sessions.DeleteRequest{Ref: old.Ref, ID: old.ID})
		},
	} {
		_, err := do()
		if err == nil {
			t.Errorf("%s was done to another session", verb)
			continue
		}
		w.wantRefusal(err, sessions.ErrReplaced, "standing:a", "another session has its name")
	}
	if got := w.pane("a"); got.PID != pane.PID || w.row("a").ID != now.ID {
		t.Errorf("the new session was touched: %+v", got)
	}
}

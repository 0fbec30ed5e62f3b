package tmux_test

import (
	"testing"
	"time"

	"the-loop/sessions"
)

func TestActivityChangesWithOutputAndWithTheEnd(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	if signs, err := f.ReadActivity(t.Context()); err != nil || len(signs) > 0 {
		t.Errorf("no server: %v, %v", signs, err)
	}
	b := f.spawn("b")
	a, err := f.Spawn(t.Context(), sessions.Spawn{Name: "a", Mark: "id-a", Argv: []string{"cat", "-"}, Cwd: t.TempDir()}) // it echoes
	if err != nil {
		t.Fatal(err)
	}
	signs, err := f.ReadActivity(t.Context())
	if err != nil || len(signs) != 2 || signs[a.Mark].PID != a.PID || signs[b.Mark].PID != b.PID || signs[a.Mark].LastOutput == 0 {
		t.Fatalf("%+v, %v", signs, err)
	}
	before := signs[a.Mark]
	wait := time.NewTicker(50 * time.Millisecond) // tmux counts seconds
	defer wait.Stop()
	for {
		if err := f.deliver(a, "x"); err != nil {
			t.Fatal(err)
		}
		if signs, err = f.ReadActivity(t.Context()); err != nil || signs[a.Mark].LastOutput > before.LastOutput {
			break
		}
		<-wait.C
	}
	if err := f.End(t.Context(), a.Target(), time.Second); err != nil {
		t.Fatal(err)
	}
	signs, err = f.ReadActivity(t.Context())
	if want := (sessions.PaneActivity{LastOutput: signs[b.Mark].LastOutput, PID: b.PID}); err != nil || len(signs) != 1 || signs[b.Mark] != want {
		t.Errorf("%+v, %v", signs, err)
	}
}

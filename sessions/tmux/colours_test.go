package tmux_test

import (
	"errors"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/tmux/tmuxtest"
)

func TestAScreenIsReadWithItsColours(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane, err := f.Spawn(t.Context(), sessions.Spawn{Name: "a", Mark: "id-a", Cwd: f.dir,
		Argv: []string{"/bin/sh", "-c", `printf '\033[1;31mred\033[0m \033[38;2;1;2;3mtrue\033[0m\n'; read wait`}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the colours", func() bool {
		got, err := f.CaptureANSI(t.Context(), pane.Target())
		return err == nil && strings.Contains(got, "\x1b[1;31mred") || strings.Contains(got, "\x1b[1m\x1b[31mred")
	})
	if _, err := f.CaptureANSI(t.Context(), sessions.Target{Pane: pane.ID, Mark: "another"}); !errors.Is(err, sessions.ErrPaneGone) {
		t.Errorf("of another's pane: %v, want ErrPaneGone", err)
	}
}

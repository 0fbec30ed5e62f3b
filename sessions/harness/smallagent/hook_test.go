package smallagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hookCommand is a hook that keeps what it read and answers so.
func hookCommand(dir, decision string) string {
	return `cat > ` + dir + `/asked; printf '%s' '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":` + decision + `}}'`
}

func TestAHookAnswersAQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ decision, want, why string }{
		"allow": {`{"behavior":"allow"}`, DecisionApproved, ""},
		"deny":  {`{"behavior":"deny","message":"not now"}`, DecisionDenied, "not now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := start(t, "--hook", hookCommand(dir, c.decision))
			l.waitState(StateReady)
			l.send("ask: it's this\r")
			if e := l.waitEntry(1, TypeDialog); e.Decision != c.want || e.How != HowHook || e.Reason != c.why {
				t.Errorf("recorded %+v", e)
			}
			l.waitEntry(1, TypeAgent)
			asked, err := os.ReadFile(filepath.Join(dir, "asked"))
			want := `{"hook_event_name":"PermissionRequest","session_id":"c1","cwd":"`
			if err != nil || !strings.HasPrefix(string(asked), want) || !strings.HasSuffix(string(asked), `,"tool_name":"Shell","tool_input":{"command":"it's this"}}`) {
				t.Errorf("the hook read %s, %v", asked, err)
			}
		})
	}
}

// TestAHookThatSaysNothingLeavesTheDialog has three of these: one that ends, one that prints something else, and one that is
// not there.
func TestAHookThatSaysNothingLeavesTheDialog(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"cat >/dev/null; exit 3", "echo hello", "/nonexistent"} {
		l := start(t, "--hook", line)
		l.waitState(StateReady)
		l.send("ask: this\r")
		l.waitState(StateAsking)
		l.send("2")
		if e := l.waitEntry(1, TypeDialog); e.Decision != DecisionDenied || e.How != "" {
			t.Errorf("%s: recorded %+v", line, e)
		}
	}
}

func TestAHookIsEndedWhenTheTerminalAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := start(t, "--hook", `trap 'touch `+dir+`/ended; exit' TERM; touch `+dir+`/began; while :; do sleep 0.05; done`)
	l.waitState(StateReady)
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	}
	l.send("choose: left or right?\r")
	eventually(t, nil, there("began"), func() string { return "the hook" })
	l.send("1")
	eventually(t, nil, there("ended"), func() string { return "the hook's end" })
	if e := l.waitEntry(1, TypeDialog); e.Decision != DecisionChosen || e.Text != "left or right?" {
		t.Errorf("recorded %+v", e)
	}
	l.waitEntry(1, TypeAgent)
}

func TestAMenuIsNoQuestionForAHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := start(t, "--hook", hookCommand(dir, `{"behavior":"allow"}`))
	l.waitState(StateReady)
	l.send("menu\r")
	l.waitState(StateAsking)
	l.send("\x1b")
	l.waitEntry(1, TypeDialog)
	if _, err := os.Stat(filepath.Join(dir, "asked")); err == nil {
		t.Error("the hook was asked")
	}
}

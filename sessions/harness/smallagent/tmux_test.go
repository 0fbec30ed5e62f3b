package smallagent

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"the-loop/sessions/tmux/tmuxtest"
)

// agentPane is an agent in a pane of a tmux server of its own.
type agentPane struct {
	*agentProcess
	socket string
}

func newAgentPane(t *testing.T, args ...string) *agentPane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("these tests need tmux")
	}
	p := &agentPane{&agentProcess{t: t, dir: t.TempDir(), id: "c1", display: newDisplay()}, tmuxtest.Socket(tmuxtest.Dir(t))}
	t.Cleanup(func() { tmuxtest.EndServer(t, p.socket) })
	cmd := agentCommand(t)
	argv := []string{"-f", "/dev/null", "new-session", "-d", "-s", "a", "-x", "80", "-y", "24", "-e", runAsAgent + "=1",
		cmd.Path, "--dir", p.dir, "--session-id", "c1", "--reply-delay", "0s"}
	p.tmux("", append(append(argv, args...), ";", "set-option", "-g", "remain-on-exit", "on")...)
	return p
}

func (p *agentPane) tmux(input string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Errorf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// pasteAndSubmit pastes and submits in one invocation, as the product does.
func (p *agentPane) pasteAndSubmit(text string) {
	p.t.Helper()
	p.tmux(text, "load-buffer", "-b", "u", "-", ";", "set-buffer", "-b", "us", "\r", ";",
		"paste-buffer", "-p", "-r", "-d", "-b", "u", "-t", "a", ";", "paste-buffer", "-r", "-d", "-b", "us", "-t", "a")
}

func (p *agentPane) capture() string { return p.tmux("", "capture-pane", "-p", "-t", "a") }

func (p *agentPane) waitPaneScreen(what string, ok func(Screen) bool) Screen {
	p.t.Helper()
	var s Screen
	var text string
	eventually(p.t, nil, func() bool {
		var whole bool
		text = p.capture()
		s, whole = ParseScreen(text)
		return whole && ok(s)
	}, func() string { return what + "; the pane:\n" + text })
	return s
}

func TestInTmuxAPasteArrivesWhole(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t)
	p.waitPaneScreen("ready", hasState(StateReady))
	for i, text := range []string{
		"short",
		"日本語 👩‍👩‍👧 naïve",
		"!not a command;\n\tsecond; line;",
		strings.Repeat("40 kB of 日本語 in one piece\n", 1200),
		strings.Repeat("400 kB without a line feed ", 15_000),
	} {
		p.pasteAndSubmit("x" + text)
		if e := p.waitEntry(i+1, TypeUser); e.Text != "x"+text || e.How != HowPaste {
			t.Errorf("%d bytes recorded, want %d", len(e.Text), len(text)+1)
		}
	}
	p.waitEntry(5, TypeAgent)
}

func TestInTmuxADraftIsParsed(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t)
	p.waitPaneScreen("ready", hasState(StateReady))
	p.tmux("", "send-keys", "-t", "a", "-l", "a human's 日本語 draft")
	p.waitPaneScreen("the draft", boxHolds("a human's 日本語 draft"))
	p.tmux("", "send-keys", "-t", "a", "C-u")
	p.waitPaneScreen("an empty box", boxHolds(""))
	for _, text := range []string{"日本語 wide " + strings.Repeat("字", 60), "one\ntwo\nthree", strings.Repeat("x", 300)} {
		p.tmux(text, "load-buffer", "-b", "u", "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", "u", "-t", "a")
		p.waitPaneScreen(RenderPaste(text, 80), boxHolds(RenderPaste(text, 80)))
		p.tmux("", "send-keys", "-t", "a", "C-u")
		p.waitPaneScreen("an empty box", boxHolds(""))
	}
	p.tmux("", "resize-window", "-t", "a", "-x", "120", "-y", "40")
	p.tmux("", "send-keys", "-t", "a", "-l", strings.Repeat("y", 100))
	p.waitPaneScreen("one row of a wider pane", boxHolds(strings.Repeat("y", 100)))
}

// The danger that the product guards against: the paste is dropped, and its Enter answers the dialog.
func TestInTmuxAnUnguardedPasteApprovesADialog(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t, "ask: rm -rf /")
	s := p.waitPaneScreen("the dialog", hasState(StateAsking))
	if s.Dialog[0] != "Allow rm -rf /?" || s.Dialog[1] != SelectionPrefix+"1. Yes" {
		t.Errorf("the dialog reads %q", s.Dialog)
	}
	p.pasteAndSubmit("a reply")
	if e := p.waitEntry(1, TypeDialog); e.Decision != DecisionApproved {
		t.Errorf("recorded %+v", e)
	}
	p.waitPaneScreen("an empty box", boxHolds(""))
	p.waitEntry(1, TypeUser)
}

func TestInTmuxALostEnterLeavesTheTextInTheBox(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t, "--lose-enters", "1")
	p.waitPaneScreen("ready", hasState(StateReady))
	p.pasteAndSubmit("one\ntwo")
	p.waitPaneScreen("the text", boxHolds(RenderPaste("one\ntwo", 80)))
	p.tmux("", "send-keys", "-t", "a", "Enter")
	p.waitEntry(1, TypeUser)
}

func TestInTmuxEscapeIsNotMistakenForASequence(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t, "slow: 1h")
	p.waitPaneScreen("working", hasState(StateWorking))
	p.tmux("", "send-keys", "-t", "a", "Left", "Up", "Escape")
	p.waitEntry(1, TypeInterrupt)
	p.waitPaneScreen("ready", hasState(StateReady))
}

func TestInTmuxItEndsWithAStatusAndNoScreen(t *testing.T) {
	t.Parallel()
	p := newAgentPane(t)
	p.waitPaneScreen("ready", hasState(StateReady))
	p.pasteAndSubmit("quit")
	eventually(t, nil, func() bool {
		p.tmux("", "run-shell", "-b", "true") // tmux 3.3a may miss a child's end until another one ends
		return strings.TrimSpace(p.tmux("", "list-panes", "-a", "-F", "#{pane_dead} #{pane_dead_status}")) == "1 0"
	}, func() string { return "a dead pane" })
	text := p.tmux("", "capture-pane", "-p", "-S", "-", "-t", "a") // "Pane is dead" scrolls the first line away
	if _, ok := ParseScreen(text); ok || !strings.Contains(text, "--resume c1") {
		t.Errorf("the dead pane shows\n%s", text)
	}
}

package harness

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/opencode"
)

func TestAgentsAreStartedAndResumedWithTheirArguments(t *testing.T) {
	t.Parallel()
	fresh := sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Args: []string{"-m", "x"}, Prompt: "go"}
	again := sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Args: []string{"-m", "x"}, Resume: true}
	event := again
	event.Prompt = "- go"
	for _, tc := range []struct {
		name string
		h    sessions.Harness
		l    sessions.Launch
		want []string
	}{
		{"codex", codex.Harness{}, fresh, []string{"codex", "--no-daemon", "-m", "x", "--", "go"}},
		{"codex again", codex.Harness{Binary: "/c"}, again, []string{"/c", "--no-daemon", "resume", "-m", "x", "--", harnesstest.ConversationA}},
		{"gemini", gemini.Harness{}, fresh, []string{"gemini", "--session-id", harnesstest.ConversationA, "-m", "x", "--prompt-interactive=go"}},
		{"gemini again", gemini.Harness{Binary: "/g"}, again, []string{"/g", "--resume", harnesstest.ConversationA, "-m", "x"}},
		{"codex with an event", codex.Harness{}, event, []string{"codex", "--no-daemon", "resume", "-m", "x", "--", harnesstest.ConversationA, "- go"}},
		{"gemini with an event", gemini.Harness{}, event, []string{"gemini", "--resume", harnesstest.ConversationA, "-m", "x", "--prompt-interactive=- go"}},
		{"opencode", opencode.Harness{}, fresh, []string{"opencode", "-m", "x", "--prompt=go"}},
		{"opencode again", opencode.Harness{Binary: "/o"}, again, []string{"/o", "--session", harnesstest.ConversationA, "-m", "x"}},
	} {
		got, err := tc.h.Command(tc.l)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got.Argv); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestNoAgentIsGivenABadConversationOrArgumentsThatChooseOne(t *testing.T) {
	t.Parallel()
	for _, h := range BuiltIns(Options{SettingsDir: "/d", ReportDir: "/r"}) {
		if _, err := h.Command(sessions.Launch{Session: harnesstest.Session, Conversation: "-x", Resume: true}); err == nil {
			t.Errorf("%s resumes a conversation that is none", h.Name())
		}
		refused := map[string][]string{claude.Name: {"--continue", "--resume=x", "-p", "--"}, codex.Name: {"resume", "fork", "--"},
			gemini.Name: {"--resume=x", "-i", "--"}, opencode.Name: {"-c", "--session", "--"}, CursorName: {"x"}}
		for _, arg := range refused[h.Name()] {
			_, err := h.Command(sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Args: []string{arg}})
			if !errors.Is(err, sessions.ErrRefused) {
				t.Errorf("%s takes %q: %v", h.Name(), arg, err)
			}
		}
	}
}

func TestCursorIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	s := NewSet(BuiltIns(Options{})...)
	_, err := s.Get(CursorName)
	if !errors.Is(err, sessions.ErrRefused) || !strings.Contains(err.Error(), "cannot be hosted in tmux") {
		t.Errorf("Get(cursor): %v", err)
	}
	if _, err := (Cursor{}).Command(sessions.Launch{}); !errors.Is(err, sessions.ErrRefused) {
		t.Errorf("Command: %v", err)
	}
	if _, err := s.Get("nope"); err == nil || strings.Contains(err.Error(), CursorName) {
		t.Errorf("Get(nope): %v; cursor is no remedy", err)
	}
	own := NewSet(append(BuiltIns(Options{}), Template{Title: CursorName, Binary: "/my/cursor"})...)
	if _, err := own.Get(CursorName); err != nil {
		t.Errorf("the operator's own cursor: %v", err)
	}
}

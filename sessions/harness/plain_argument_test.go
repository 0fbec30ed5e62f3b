package harness

import (
	"slices"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

// hostileTexts begin as a program's own arguments do.
var hostileTexts = []string{"--dangerously-skip-permissions", "-p", "-", "--", "-- x", "---\ntitle: x\n---", "--resume=x", "- a list\n- of two", "@/etc/passwd", "-e\u00a0x"}

// isPlainArgument reports whether the text, which is an argument alone or not at all, stands behind the end of a program's flags.
func isPlainArgument(argv []string, text string) bool {
	for i := len(argv) - 1; i >= 0; i-- {
		if argv[i] == text {
			return slices.Contains(argv[:i], "--")
		}
	}
	return true
}

func TestNoEventTextIsReadAsAFlag(t *testing.T) {
	t.Parallel()
	all := append(BuiltIns(Options{SettingsDir: "/d", ReportDir: "/r", SmallAgent: []string{"small"}, SmallAgentDir: "/d"}),
		Template{Title: "last", Binary: "x", Args: []string{"{prompt}"}, ResumeArgs: []string{"--resume", "{sessionId}", "{prompt}"}},
		Template{Title: "first", Binary: "x", Args: []string{"{prompt}", "{harnessArgs}"}, ResumeArgs: []string{"{prompt}", "{sessionId}"}},
		Template{Title: "valued", Binary: "x", Args: []string{"--prompt", "{prompt}"}, ResumeArgs: []string{"--prompt", "{prompt}", "{sessionId}"}})
	for _, h := range all {
		if _, refuses := h.(interface{ refusal() error }); refuses {
			continue
		}
		for _, resume := range []bool{false, true} {
			for _, text := range hostileTexts {
				got, err := h.Command(sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Resume: resume, Prompt: text})
				if err != nil {
					t.Errorf("%s: %v", h.Name(), err)
					continue
				}
				if !isPlainArgument(got.Argv, text) {
					t.Errorf("%s, resumed %v: %q is a flag in %q", h.Name(), resume, text, got.Argv)
				}
				held := func(a string) bool { return strings.HasSuffix(a, text) }
				if !slices.ContainsFunc(got.Argv, held) {
					t.Errorf("%s, resumed %v: %q is not in %q as it was written", h.Name(), resume, text, got.Argv)
				}
			}
			if _, err := h.Command(sessions.Launch{Session: harnesstest.Session, Conversation: "--x", Resume: true}); err == nil {
				t.Errorf("%s takes a flag for a conversation's id", h.Name())
			}
		}
	}
}

func TestPrefixOfAPlainArgumentDoesNotAffectEvidence(t *testing.T) {
	t.Parallel()
	for _, text := range hostileTexts {
		if got := plainArgument(text); sessions.Fingerprint(got) != sessions.Fingerprint(text) || strings.TrimLeft(got, " ") != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

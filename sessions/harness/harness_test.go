package harness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestTemplateFillsInItsPlaceholdersAsWholeArguments(t *testing.T) {
	t.Parallel()
	tool := Template{Title: "mytool", Binary: "/bin/mytool", Args: []string{"--session-id", "{sessionId}", "{harnessArgs}", "{prompt}"},
		ResumeArgs: []string{"--resume", "{sessionId}", "{prompt}"}}
	launch := sessions.Launch{Conversation: "c1", Args: []string{"-a", "b c"}, Prompt: "do {sessionId}; $(this)"}
	for _, c := range []struct {
		name   string
		launch func(sessions.Launch) sessions.Launch
		want   []string
	}{
		{"new", func(l sessions.Launch) sessions.Launch { return l }, []string{"/bin/mytool", "--session-id", "c1", "-a", "b c", "do {sessionId}; $(this)"}},
		{"without arguments", func(l sessions.Launch) sessions.Launch { l.Args = nil; return l }, []string{"/bin/mytool", "--session-id", "c1", "do {sessionId}; $(this)"}},
		{"without a prompt", func(l sessions.Launch) sessions.Launch { l.Prompt = ""; return l }, []string{"/bin/mytool", "--session-id", "c1", "-a", "b c"}},
		{"resumed", func(l sessions.Launch) sessions.Launch { l.Resume, l.Prompt = true, ""; return l }, []string{"/bin/mytool", "--resume", "c1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.Command(c.launch(launch))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Argv); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTemplateWithoutResumeArgsCannotResume(t *testing.T) {
	t.Parallel()
	tool := Template{Title: "x", Binary: "x"}
	if _, err := tool.Command(sessions.Launch{Resume: true}); err != sessions.ErrCannotResume {
		t.Errorf("Command: %v; want ErrCannotResume", err)
	}
	if tool.Capabilities().CanResume {
		t.Error("Traits say that it resumes")
	}
}

func TestSetNamesTheHarnessesThereAre(t *testing.T) {
	t.Parallel()
	s := NewSet(Template{Title: "b"}, Template{Title: "a"})
	if h, err := s.Get("a"); err != nil || h.Name() != "a" {
		t.Errorf("Get(a) = %v, %v", h, err)
	}
	if _, err := s.Get("nope"); err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("Get(nope): %v; want the names", err)
	}
}

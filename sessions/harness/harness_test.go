package harness

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
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

// writeSmallAgentEntries writes a conversation of the small agent.
func writeSmallAgentEntries(t *testing.T, dir, id string, entries ...smallagent.Entry) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, id+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, e := range entries {
		if err := json.NewEncoder(f).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEvidenceCountsFromTheOffsetSoThatAnEqualEarlierTextProvesNothing(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	a := SmallAgent{Dir: dir}
	talk := sessions.Conversation{ID: "c1"}
	said := smallagent.Entry{Type: smallagent.TypeUser, Text: "yes"}
	taken := func(since sessions.Offset, text string) bool {
		t.Helper()
		ok, err := a.Accepted(ctx, talk, since, sessions.Fingerprint(text))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	writeSmallAgentEntries(t, dir, "c1", said)
	place, err := a.Offset(ctx, talk)
	if err != nil {
		t.Fatal(err)
	}
	if taken(place, "yes") {
		t.Error("an earlier text is taken as proof")
	}
	writeSmallAgentEntries(t, dir, "c1", said)
	if !taken(place, "yes") || taken(place, "no") {
		t.Error("the text after the place is not found, or another one is")
	}
}

func TestEvidenceFollowsAConversationThatWasCleared(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	a := SmallAgent{Dir: dir}
	talk := sessions.Conversation{ID: "c1"}
	before, err := a.Offset(ctx, talk)
	if err != nil {
		t.Fatal(err)
	}
	writeSmallAgentEntries(t, dir, "c1", smallagent.Entry{Type: smallagent.TypeClear, Conversation: "c2"})
	writeSmallAgentEntries(t, dir, "c2", smallagent.Entry{Type: smallagent.TypeUser, Text: "after"})
	if ok, err := a.Accepted(ctx, talk, before, sessions.Fingerprint("after")); err != nil || !ok {
		t.Errorf("Taken from before the clear = %v, %v", ok, err)
	}
	after, err := a.Offset(ctx, talk)
	if err != nil || !strings.Contains(string(after), `"now":"c2"`) {
		t.Errorf("Offset = %q, %v; want one in c2", after, err)
	}
	if ok, _ := a.Accepted(ctx, talk, after, sessions.Fingerprint("after")); ok {
		t.Error("a text before the place is taken as proof")
	}
	for _, bad := range []sessions.Offset{"", "c1", "../../etc/passwd@0", "c1@x"} {
		if _, err := a.Accepted(ctx, talk, bad, "x"); err == nil {
			t.Errorf("Taken from %q: no error", bad)
		}
	}
}

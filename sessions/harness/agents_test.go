package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestAgentsAreStartedAndResumedWithTheirArguments(t *testing.T) {
	t.Parallel()
	fresh := sessions.Launch{Session: sessionA, Conversation: conversationA, Args: []string{"-m", "x"}, Prompt: "go"}
	again := sessions.Launch{Session: sessionA, Conversation: conversationA, Args: []string{"-m", "x"}, Resume: true}
	event := again
	event.Prompt = "- go"
	for _, tc := range []struct {
		name string
		h    sessions.Harness
		l    sessions.Launch
		want []string
	}{
		{"codex", Codex{}, fresh, []string{"codex", "--no-daemon", "-m", "x", "--", "go"}},
		{"codex again", Codex{Binary: "/c"}, again, []string{"/c", "--no-daemon", "resume", "-m", "x", "--", conversationA}},
		{"gemini", Gemini{}, fresh, []string{"gemini", "--session-id", conversationA, "-m", "x", "--prompt-interactive=go"}},
		{"gemini again", Gemini{Binary: "/g"}, again, []string{"/g", "--resume", conversationA, "-m", "x"}},
		{"codex with an event", Codex{}, event, []string{"codex", "--no-daemon", "resume", "-m", "x", "--", conversationA, "- go"}},
		{"gemini with an event", Gemini{}, event, []string{"gemini", "--resume", conversationA, "-m", "x", "--prompt-interactive=- go"}},
		{"opencode", OpenCode{}, fresh, []string{"opencode", "-m", "x", "--prompt=go"}},
		{"opencode again", OpenCode{Binary: "/o"}, again, []string{"/o", "--session", conversationA, "-m", "x"}},
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
		if _, err := h.Command(sessions.Launch{Session: sessionA, Conversation: "-x", Resume: true}); err == nil {
			t.Errorf("%s resumes a conversation that is none", h.Name())
		}
		refused := map[string][]string{ClaudeName: {"--continue", "--resume=x", "-p"}, CodexName: {"resume", "fork"},
			GeminiName: {"--resume=x", "-i"}, OpenCodeName: {"-c", "--session"}}
		for _, arg := range append(refused[h.Name()], "--") {
			_, err := h.Command(sessions.Launch{Session: sessionA, Conversation: conversationA, Args: []string{arg}})
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

func writeLines(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCodexsHistoryProvesOnlyWhatThePaneAccepted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	history := filepath.Join(home, ".codex", "history.jsonl")
	writeLines(t, history, `{"session_id":"`+conversationA+`","ts":1,"text":"yes"}`)
	c := Codex{Home: home}
	talk := sessions.Conversation{Session: sessionA, ID: conversationA, Cwd: "/srv"}
	place, err := c.Offset(t.Context(), talk)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Accepted(t.Context(), talk, place, sessions.Fingerprint("yes")); ok || err != nil {
		t.Errorf("an earlier text: %v, %v", ok, err)
	}
	writeLines(t, history, `{"session_id":"`+conversationA+`","ts":1,"text":"yes"}`, `{"session_id":"`+conversationB+`","ts":2,"text":"yes"}`)
	if ok, err := c.Accepted(t.Context(), talk, place, sessions.Fingerprint("yes")); ok || err != nil {
		t.Errorf("a text of a conversation that no process of the pane has open: %v, %v", ok, err)
	}
	for _, bad := range []sessions.Offset{"", "7", "/x@", "/x@-1", "x@1"} {
		if _, err := c.Accepted(t.Context(), talk, bad, "x"); err == nil {
			t.Errorf("Taken from %q: no error", bad)
		}
	}
}

func TestWithoutProcCodexsConversationsAreFoundByFolderAndTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now().UTC()
	meta := func(id, cwd string, at time.Time) {
		writeLines(t, filepath.Join(dir, "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-"+id+".jsonl"),
			`{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"`+id+`","cwd":"`+cwd+`","timestamp":"`+
				at.Format(time.RFC3339)+`","thread_source":"user"}}`, `{"type":"event_msg"}`)
	}
	meta(conversationA, "/srv/a", now)
	meta(conversationB, "/srv/b", now)
	r := codexPane{home: dir}
	talk := sessions.Conversation{ID: "given", Cwd: "/srv/a", Started: now.Add(-time.Second)}
	if !r.owns(conversationA, talk) || r.owns(conversationB, talk) || r.owns("../x", talk) {
		t.Error("the conversation of the folder is not told from others")
	}
	talk.Started = now.Add(time.Hour)
	if r.owns(conversationA, talk) {
		t.Error("one that began before the run is taken for the session's")
	}
}

// geminiFolder is a folder with Gemini's log and conversations.
func geminiFolder(t *testing.T, log string) (Gemini, sessions.Conversation, string) {
	t.Helper()
	home := t.TempDir()
	writeLines(t, filepath.Join(home, ".gemini", "projects.json"), `{"projects":{"/srv/g":"g"}}`)
	dir := filepath.Join(home, ".gemini", "tmp", "g")
	writeLines(t, filepath.Join(dir, "logs.json"), log)
	return Gemini{Home: home}, sessions.Conversation{Session: sessionA, ID: conversationA, Cwd: "/srv/g"}, dir
}

func TestGeminisLogProvesWhatCameAfterTheOffset(t *testing.T) {
	t.Parallel()
	entry := func(id, text string) string {
		return `{"sessionId":"` + id + `","messageId":0,"type":"user","message":"` + text + `","timestamp":"2026-01-02T03:04:05.678Z"}`
	}
	g, talk, dir := geminiFolder(t, "["+entry(conversationA, "yes")+","+entry(conversationB, "no")+"]")
	place, err := g.Offset(t.Context(), talk)
	if p, _ := parseGeminiOffset(place); err != nil || p.StartID != conversationA || p.Logged != 1 {
		t.Fatalf("Offset = %q, %v", place, err)
	}
	taken := func(text string) bool {
		t.Helper()
		ok, err := g.Accepted(t.Context(), talk, place, sessions.Fingerprint(text))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if taken("yes") || taken("no") {
		t.Error("an earlier text, or another session's, is taken for proof")
	}
	writeLines(t, filepath.Join(dir, "logs.json"), "["+entry(conversationA, "yes")+","+entry(conversationB, "no")+","+entry(conversationA, "yes")) // half written
	if taken("yes") {
		t.Error("a log that is half written proves something")
	}
	writeLines(t, filepath.Join(dir, "logs.json"), "["+entry(conversationA, "yes")+","+entry(conversationB, "no")+","+entry(conversationA, "yes")+"]")
	if !taken("yes") {
		t.Error("the text is not found")
	}
	if _, err := g.Accepted(t.Context(), talk, "x", "x"); err == nil {
		t.Error("a place that is none is taken")
	}
	writeLines(t, filepath.Join(dir, "logs.json"), "["+entry(conversationA, "yes")+"]", `.678Z"}]`) // two writes at once
	place, err = g.Offset(t.Context(), talk)
	if p, _ := parseGeminiOffset(place); err != nil || p.Logged != 1 {
		t.Errorf("of a log with a rest of another write: %q, %v", place, err)
	}
}

func TestGeminisClearIsFollowedUnlessTwoHappenAtOnce(t *testing.T) {
	t.Parallel()
	g, talk, dir := geminiFolder(t, `[{"sessionId":"`+conversationA+`","type":"user","message":"/clear","timestamp":"2026-01-02T03:04:05.678Z"}]`)
	chat := func(id, began string) {
		writeLines(t, filepath.Join(dir, "chats", "session-x-"+id[:8]+".jsonl"), `{"sessionId":"`+id+`","startTime":"`+began+`","kind":"main"}`)
	}
	chat(conversationA, "2026-01-02T03:00:00Z")
	chat(conversationB, "2026-01-02T03:04:05.700Z")
	if id, err := g.TrackConversation(t.Context(), talk); err != nil || id != conversationB {
		t.Errorf("Follow = %q, %v; want the one that began then", id, err)
	}
	chat("cccccccc-0000-4000-8000-000000000003", "2026-01-02T03:04:06Z")
	if id, err := g.TrackConversation(t.Context(), talk); err != nil || id != "" {
		t.Errorf("Follow = %q, %v; want that it cannot be told", id, err)
	}
}

func TestOpenCodesHistoryIsReadWithWhatWasPasted(t *testing.T) {
	t.Parallel()
	line := `{"input":"see [Pasted ~3 lines] and","parts":[{"type":"text","text":"l1\n\nl3","source":{"text":{"start":4,"end":21,"value":"[Pasted ~3 lines]"}}}],"mode":"normal"}`
	if got := parseOpenCodeHistoryLine([]byte(line)); got != "see l1\n\nl3 and" {
		t.Errorf("openCodeInput = %q", got)
	}
	if got := parseOpenCodeHistoryLine([]byte("{")); got != "" {
		t.Errorf("of what is no JSON: %q", got)
	}
	if _, err := (OpenCode{}).Accepted(t.Context(), sessions.Conversation{Session: sessionA}, "x", "x"); err == nil {
		t.Error("a place that is none is taken")
	}
}

func TestGeminiIsNotAskedForFilesOutside(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"@/etc/hostname x": `\@/etc/hostname x`, "see @~/x and @../y": `see \@~/x and \@../y`, `@"/a b"`: `\@"/a b"`,
		"@src/app.go @.": "@src/app.go @.", `\@/etc`: `\@/etc`, "me@home": "me@home"} {
		if got := (Gemini{}).Quote(text); got != want {
			t.Errorf("%q is written as %q, not %q", text, got, want)
		}
	}
}

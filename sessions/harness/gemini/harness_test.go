package gemini

import (
	"path/filepath"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

// newFolder is a folder with Gemini's log and conversations.
func newFolder(t *testing.T, log string) (Harness, sessions.Conversation, string) {
	t.Helper()
	home := t.TempDir()
	harnesstest.WriteLines(t, filepath.Join(home, ".gemini", "projects.json"), `{"projects":{"/srv/g":"g"}}`)
	dir := filepath.Join(home, ".gemini", "tmp", "g")
	harnesstest.WriteLines(t, filepath.Join(dir, "logs.json"), log)
	return Harness{Home: home}, sessions.Conversation{Session: harnesstest.Session, ID: harnesstest.ConversationA, Cwd: "/srv/g"}, dir
}

func TestGeminisLogProvesWhatCameAfterTheOffset(t *testing.T) {
	t.Parallel()
	entry := func(id, text string) string {
		return `{"sessionId":"` + id + `","messageId":0,"type":"user","message":"` + text + `","timestamp":"2026-01-02T03:04:05.678Z"}`
	}
	g, conv, dir := newFolder(t, "["+entry(harnesstest.ConversationA, "yes")+","+entry(harnesstest.ConversationB, "no")+"]")
	offset, err := g.Offset(t.Context(), conv)
	if p, _ := parseOffset(offset); err != nil || p.StartID != harnesstest.ConversationA || p.Logged != 1 {
		t.Fatalf("Offset = %q, %v", offset, err)
	}
	taken := func(text string) bool {
		t.Helper()
		ok, err := g.Accepted(t.Context(), conv, offset, sessions.Fingerprint(text))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if taken("yes") || taken("no") {
		t.Error("an earlier text, or another session's, is taken for proof")
	}
	harnesstest.WriteLines(t, filepath.Join(dir, "logs.json"), "["+entry(harnesstest.ConversationA, "yes")+","+entry(harnesstest.ConversationB, "no")+","+entry(harnesstest.ConversationA, "yes")) // half written
	if taken("yes") {
		t.Error("a log that is half written proves something")
	}
	harnesstest.WriteLines(t, filepath.Join(dir, "logs.json"), "["+entry(harnesstest.ConversationA, "yes")+","+entry(harnesstest.ConversationB, "no")+","+entry(harnesstest.ConversationA, "yes")+"]")
	if !taken("yes") {
		t.Error("the text is not found")
	}
	if _, err := g.Accepted(t.Context(), conv, "x", "x"); err == nil {
		t.Error("a place that is none is taken")
	}
	harnesstest.WriteLines(t, filepath.Join(dir, "logs.json"), "["+entry(harnesstest.ConversationA, "yes")+"]", `.678Z"}]`) // two writes at once
	offset, err = g.Offset(t.Context(), conv)
	if p, _ := parseOffset(offset); err != nil || p.Logged != 1 {
		t.Errorf("of a log with a rest of another write: %q, %v", offset, err)
	}
}

func TestGeminisClearIsFollowedUnlessTwoHappenAtOnce(t *testing.T) {
	t.Parallel()
	g, conv, dir := newFolder(t, `[{"sessionId":"`+harnesstest.ConversationA+`","type":"user","message":"/clear","timestamp":"2026-01-02T03:04:05.678Z"}]`)
	chat := func(id, began string) {
		harnesstest.WriteLines(t, filepath.Join(dir, "chats", "session-x-"+id[:8]+".jsonl"), `{"sessionId":"`+id+`","startTime":"`+began+`","kind":"main"}`)
	}
	chat(harnesstest.ConversationA, "2026-01-02T03:00:00Z")
	chat(harnesstest.ConversationB, "2026-01-02T03:04:05.700Z")
	if id, err := g.TrackConversation(t.Context(), conv); err != nil || id != harnesstest.ConversationB {
		t.Errorf("Follow = %q, %v; want the one that began then", id, err)
	}
	chat("cccccccc-0000-4000-8000-000000000003", "2026-01-02T03:04:06Z")
	if id, err := g.TrackConversation(t.Context(), conv); err != nil || id != "" {
		t.Errorf("Follow = %q, %v; want that it cannot be told", id, err)
	}
}

func TestGeminiIsNotAskedForFilesOutside(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"@/etc/hostname x": `\@/etc/hostname x`, "see @~/x and @../y": `see \@~/x and \@../y`, `@"/a b"`: `\@"/a b"`,
		"@src/app.go @.": "@src/app.go @.", `\@/etc`: `\@/etc`, "me@home": "me@home"} {
		if got := (Harness{}).Quote(text); got != want {
			t.Errorf("%q is written as %q, not %q", text, got, want)
		}
	}
}

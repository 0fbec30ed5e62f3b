package codex

import (
	"path/filepath"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestCodexsHistoryProvesOnlyWhatThePaneAccepted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	history := filepath.Join(home, ".codex", "history.jsonl")
	harnesstest.WriteLines(t, history, `{"session_id":"`+harnesstest.ConversationA+`","ts":1,"text":"yes"}`)
	c := Harness{Home: home}
	conv := sessions.Conversation{Session: harnesstest.Session, ID: harnesstest.ConversationA, Cwd: "/srv"}
	offset, err := c.Offset(t.Context(), conv)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Accepted(t.Context(), conv, offset, sessions.Fingerprint("yes")); ok || err != nil {
		t.Errorf("an earlier text: %v, %v", ok, err)
	}
	harnesstest.WriteLines(t, history, `{"session_id":"`+harnesstest.ConversationA+`","ts":1,"text":"yes"}`, `{"session_id":"`+harnesstest.ConversationB+`","ts":2,"text":"yes"}`)
	if ok, err := c.Accepted(t.Context(), conv, offset, sessions.Fingerprint("yes")); ok || err != nil {
		t.Errorf("a text of a conversation that no process of the pane has open: %v, %v", ok, err)
	}
	for _, bad := range []sessions.Offset{"", "7", "/x@", "/x@-1", "x@1"} {
		if _, err := c.Accepted(t.Context(), conv, bad, "x"); err == nil {
			t.Errorf("Taken from %q: no error", bad)
		}
	}
}

func TestWithoutProcCodexsConversationsAreFoundByFolderAndTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now().UTC()
	meta := func(id, cwd string, at time.Time) {
		harnesstest.WriteLines(t, filepath.Join(dir, "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-"+id+".jsonl"),
			`{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"`+id+`","cwd":"`+cwd+`","timestamp":"`+
				at.Format(time.RFC3339)+`","thread_source":"user"}}`, `{"type":"event_msg"}`)
	}
	meta(harnesstest.ConversationA, "/srv/a", now)
	meta(harnesstest.ConversationB, "/srv/b", now)
	r := pane{home: dir}
	conv := sessions.Conversation{ID: "given", Cwd: "/srv/a", Started: now.Add(-time.Second)}
	if !r.owns(harnesstest.ConversationA, conv) || r.owns(harnesstest.ConversationB, conv) || r.owns("../x", conv) {
		t.Error("the conversation of the folder is not told from others")
	}
	conv.Started = now.Add(time.Hour)
	if r.owns(harnesstest.ConversationA, conv) {
		t.Error("one that began before the run is taken for the session's")
	}
}

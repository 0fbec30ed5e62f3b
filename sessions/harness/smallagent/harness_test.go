package smallagent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

// writeEntries writes a conversation of the small agent.
func writeEntries(t *testing.T, dir, id string, entries ...Entry) {
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
	a := Harness{Dir: dir}
	conv := sessions.Conversation{ID: "c1"}
	said := Entry{Type: TypeUser, Text: "yes"}
	taken := func(since sessions.Offset, text string) bool {
		t.Helper()
		ok, err := a.Accepted(ctx, conv, since, sessions.Fingerprint(text))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	writeEntries(t, dir, "c1", said)
	offset, err := a.Offset(ctx, conv)
	if err != nil {
		t.Fatal(err)
	}
	if taken(offset, "yes") {
		t.Error("an earlier text is taken as proof")
	}
	writeEntries(t, dir, "c1", said)
	if !taken(offset, "yes") || taken(offset, "no") {
		t.Error("the text after the place is not found, or another one is")
	}
}

func TestEvidenceFollowsAConversationThatWasCleared(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	a := Harness{Dir: dir}
	conv := sessions.Conversation{ID: "c1"}
	before, err := a.Offset(ctx, conv)
	if err != nil {
		t.Fatal(err)
	}
	writeEntries(t, dir, "c1", Entry{Type: TypeClear, Conversation: "c2"})
	writeEntries(t, dir, "c2", Entry{Type: TypeUser, Text: "after"})
	if ok, err := a.Accepted(ctx, conv, before, sessions.Fingerprint("after")); err != nil || !ok {
		t.Errorf("Taken from before the clear = %v, %v", ok, err)
	}
	after, err := a.Offset(ctx, conv)
	if err != nil || !strings.Contains(string(after), `"now":"c2"`) {
		t.Errorf("Offset = %q, %v; want one in c2", after, err)
	}
	if ok, _ := a.Accepted(ctx, conv, after, sessions.Fingerprint("after")); ok {
		t.Error("a text before the place is taken as proof")
	}
	for _, bad := range []sessions.Offset{"", "c1", "../../etc/passwd@0", "c1@x"} {
		if _, err := a.Accepted(ctx, conv, bad, "x"); err == nil {
			t.Errorf("Taken from %q: no error", bad)
		}
	}
}

// appendEntries writes a record of the small agent's.
func appendEntries(t *testing.T, dir, id string, entries ...string) {
	t.Helper()
	f, err := os.OpenFile(TranscriptPath(dir, id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for i, e := range entries {
		kind, text, _ := strings.Cut(e, " ")
		line := fmt.Sprintf(`{"type":%q,"text":%q,"at":%q,"seq":%d}`, kind, text, time.Now().Format(time.RFC3339Nano), i+1)
		if kind == TypeClear {
			line = fmt.Sprintf(`{"type":%q,"conversation":%q}`, kind, text)
		}
		if _, err := fmt.Fprintln(f, line); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSmallAgentIsReadAcrossClearsAndInAFreshConversation(t *testing.T) {
	t.Parallel()
	a := Harness{Dir: t.TempDir()}
	c := sessions.Conversation{ID: "a", Started: time.Now()}
	tell := func(since sessions.Offset) sessions.TranscriptBatch {
		t.Helper()
		batch, err := a.ReadTranscript(context.Background(), c, since)
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	offset := tell("")
	appendEntries(t, a.Dir, "a", "user hello", "agent one", "clear b")
	appendEntries(t, a.Dir, "b", "agent two")
	offset = tell(offset.Next)
	harnesstest.WantMessages(t, offset, "F one", "F two")
	if want := filepath.Join(a.Dir, "b.jsonl"); !slices.Equal(offset.WatchFiles, []string{want}) {
		t.Errorf("watches %q; want %q", offset.WatchFiles, want)
	}
	c.ID = "b" // the record has caught up
	appendEntries(t, a.Dir, "b", "agent three")
	offset = tell(offset.Next)
	harnesstest.WantMessages(t, offset, "F three")
	c.ID = "c" // it could not be resumed
	appendEntries(t, a.Dir, "b", "agent four")
	appendEntries(t, a.Dir, "c", "agent five")
	offset = tell(offset.Next)
	harnesstest.WantMessages(t, offset, "F four", "F five")
	harnesstest.WantMessages(t, tell(offset.Next))
}

func TestTheSmallAgentsTurnsFollowOneAnother(t *testing.T) {
	t.Parallel()
	a := Harness{Dir: t.TempDir()}
	c := sessions.Conversation{ID: "a", Started: time.Now()}
	offset := sessions.Offset("")
	step := func(what string, works bool, id string, entries ...string) {
		t.Helper()
		appendEntries(t, a.Dir, id, entries...)
		batch, err := a.ReadTranscript(t.Context(), c, offset)
		if err != nil {
			t.Fatal(err)
		}
		harnesstest.WantTurn(t, what, batch, works)
		offset = batch.Next
	}
	step("nothing yet", false, "a", "start ")
	step("asked", true, "a", "user one")
	step("a second waits", true, "a", "user two")
	step("the second runs", true, "a", "agent one")
	step("both done", false, "a", "agent two")
	step("asked again", true, "a", "user three", "command /clear", "user four")
	step("interrupted, the next runs", true, "a", "interrupt ")
	step("cleared", true, "a", "clear b")
	step("done there", false, "b", "agent four")
	step("asked once more", true, "b", "user five", "user six")
	step("killed and resumed", false, "b", "start ")
}

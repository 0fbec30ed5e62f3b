package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/smallagent"
)

// Lines as Claude Code 2.1.197 writes them, shortened; the time and the text are filled in.
const (
	lineFinal     = `{"isSidechain":false,"message":{"content":[{"text":%[2]q,"type":"text"}],"id":"msg_4","model":"m","role":"assistant","stop_reason":"end_turn","type":"message"},"type":"assistant","uuid":"f-%[2]s","timestamp":"%[1]s","sessionId":"s"}`
	lineStep      = `{"isSidechain":false,"message":{"content":[{"text":%[2]q,"type":"text"}],"id":"msg_6","model":"m","role":"assistant","stop_reason":"tool_use","type":"message"},"type":"assistant","uuid":"s-%[2]s","timestamp":"%[1]s","sessionId":"s"}`
	lineNull      = `{"isSidechain":false,"message":{"content":[{"text":%[2]q,"type":"text"}],"id":"msg_7","model":"m","role":"assistant","stop_reason":null,"type":"message"},"type":"assistant","uuid":"n-%[2]s","timestamp":"%[1]s","sessionId":"s"}`
	lineError     = `{"isSidechain":false,"type":"assistant","uuid":"e-%[2]s","timestamp":"%[1]s","message":{"model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":%[2]q}]},"error":"unknown","isApiErrorMessage":true,"apiErrorStatus":400}`
	lineSynthetic = `{"isSidechain":false,"type":"assistant","uuid":"y-%[2]s","timestamp":"%[1]s","message":{"model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":%[2]q}]}}`
	lineSidechain = `{"isSidechain":true,"message":{"content":[{"text":%[2]q,"type":"text"}],"model":"m","role":"assistant","stop_reason":"end_turn"},"type":"assistant","uuid":"a-%[2]s","timestamp":"%[1]s"}`
	lineTool      = `{"isSidechain":false,"message":{"content":[{"id":"t1","name":"Bash","input":{"command":"%[2]s"},"type":"tool_use"}],"id":"msg_6","model":"m","role":"assistant","stop_reason":"tool_use"},"type":"assistant","uuid":"t-%[2]s","timestamp":"%[1]s"}`
	lineDuration  = `{"isSidechain":false,"type":"system","subtype":"turn_duration","durationMs":1338,"timestamp":"%[1]s","uuid":"d-%[2]s"}`
)

// heard tells for each text what it is: F final, S a step, E an error.
func describeMessages(told sessions.TranscriptBatch) []string {
	var all []string
	for _, s := range told.Messages {
		mark := "S"
		if s.Failed {
			mark = "E"
		} else if s.Final {
			mark = "F"
		}
		all = append(all, mark+" "+s.Text)
	}
	return all
}

func wantMessages(t *testing.T, told sessions.TranscriptBatch, want ...string) {
	t.Helper()
	if got := describeMessages(told); !slices.Equal(got, want) {
		t.Errorf("heard %q; want %q", got, want)
	}
	keys := map[string]bool{}
	for _, s := range told.Messages {
		if s.Key == "" || keys[s.Key] || s.At.IsZero() {
			t.Errorf("%q has the key %q and the time %s", s.Text, s.Key, s.At)
		}
		keys[s.Key] = true
	}
}

// appendMessage writes a line of the agent's with the time of now.
func (k *claudeEnv) appendMessage(id, format, text string) {
	k.t.Helper()
	k.appendLine(id, fmt.Sprintf(format, time.Now().UTC().Format(time.RFC3339Nano), text), "")
}

func (k *claudeEnv) read(since sessions.Offset) sessions.TranscriptBatch {
	k.t.Helper()
	told, err := k.claude.ReadTranscript(k.t.Context(), k.Conversation, since)
	if err != nil {
		k.t.Fatal(err)
	}
	return told
}

func TestClaudesMessagesAreReadOnceWithTheirKind(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	k.appendLine(conversationA, fmt.Sprintf(lineFinal, "2026-03-04T05:06:07.890Z", "old"), "")
	k.Started = time.Now()
	none := k.read("")
	wantMessages(t, none)
	k.appendMessage(conversationA, lineStep, "I look")
	k.appendMessage(conversationA, lineTool, "ls")
	k.appendLine(conversationA, lineResult, "x")
	k.appendMessage(conversationA, lineSidechain, "a subagent")
	k.appendMessage(conversationA, lineSynthetic, "No response requested.")
	k.appendMessage(conversationA, lineFinal, "done")
	k.appendMessage(conversationA, lineError, "API Error: 400")
	told := k.read(none.Next)
	wantMessages(t, told, "S I look", "F done", "E API Error: 400")
	wantMessages(t, k.read(told.Next))
	again := k.read(none.Next)
	for i := range again.Messages {
		if again.Messages[i] != told.Messages[i] {
			t.Errorf("read again it is %+v, was %+v", again.Messages[i], told.Messages[i])
		}
	}
	if !slices.Contains(told.WatchFiles, k.transcriptFile(conversationA)) {
		t.Errorf("watches %q", told.WatchFiles)
	}
}

// Older versions do not say with the text whether it ends the turn.
func TestATextWithoutAStopReasonWaitsForTheNextLine(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	k.appendMessage(conversationA, lineNull, "I look")
	place := k.read("")
	wantMessages(t, place)
	k.appendMessage(conversationA, lineTool, "ls")
	k.appendLine(conversationA, lineResult, "x")
	k.appendMessage(conversationA, lineNull, "done")
	place = k.read(place.Next)
	wantMessages(t, place, "S I look")
	k.appendMessage(conversationA, lineDuration, "1")
	wantMessages(t, k.read(place.Next), "F done")
}

func TestClaudeIsReadAfterAClearAndAfterReturningToAnOldConversation(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	const talkB, talkC = "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"
	k.appendReport(time.Now(), report.EventSessionStart, conversationA, map[string]string{"source": "startup", "transcript_path": k.transcriptFile(conversationA)})
	k.appendMessage(talkC, lineFinal, "last year")
	k.appendMessage(conversationA, lineFinal, "one")
	place := k.read("")
	wantMessages(t, place, "F one")
	k.appendMessage(conversationA, lineFinal, "two")
	k.appendReport(time.Now(), report.EventSessionStart, talkB, map[string]string{"source": "clear"})
	k.appendMessage(talkB, lineFinal, "three")
	place = k.read(place.Next)
	wantMessages(t, place, "F two", "F three")
	k.appendReport(time.Now(), report.EventSessionStart, talkC, map[string]string{"source": "resume"})
	k.appendMessage(talkC, lineFinal, "four")
	place = k.read(place.Next)
	wantMessages(t, place, "F four")
	k.ID = talkC // the record has caught up
	k.appendMessage(talkC, lineFinal, "five")
	wantMessages(t, k.read(place.Next), "F five")
}

func TestClaudeWithoutHooksIsReadInAFreshConversation(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	k.claude.Hook = nil
	place := k.read("")
	k.appendMessage(conversationA, lineFinal, "one")
	k.ID = "22222222-2222-4222-8222-222222222222"
	k.appendMessage(k.ID, lineFinal, "two")
	place = k.read(place.Next)
	wantMessages(t, place, "F one", "F two")
	wantMessages(t, k.read(place.Next))
}

func TestInvalidCursorIsRefused(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	for _, place := range []sessions.Offset{"x", "{}", `{"talk":"../a","now":"b"}`, `{"talk":"a","now":"b","at":-1}`} {
		if _, err := k.claude.ReadTranscript(t.Context(), k.Conversation, place); err == nil {
			t.Errorf("%q is taken for a place", place)
		}
	}
}

// appendSmallAgentEntries writes a record of the small agent's.
func appendSmallAgentEntries(t *testing.T, dir, id string, entries ...string) {
	t.Helper()
	f, err := os.OpenFile(smallagent.TranscriptPath(dir, id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for i, e := range entries {
		kind, text, _ := strings.Cut(e, " ")
		line := fmt.Sprintf(`{"type":%q,"text":%q,"at":%q,"seq":%d}`, kind, text, time.Now().Format(time.RFC3339Nano), i+1)
		if kind == smallagent.TypeClear {
			line = fmt.Sprintf(`{"type":%q,"conversation":%q}`, kind, text)
		}
		if _, err := fmt.Fprintln(f, line); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSmallAgentIsReadAcrossClearsAndInAFreshConversation(t *testing.T) {
	t.Parallel()
	a := SmallAgent{Dir: t.TempDir()}
	c := sessions.Conversation{ID: "a", Started: time.Now()}
	tell := func(since sessions.Offset) sessions.TranscriptBatch {
		t.Helper()
		told, err := a.ReadTranscript(context.Background(), c, since)
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	place := tell("")
	appendSmallAgentEntries(t, a.Dir, "a", "user hello", "agent one", "clear b")
	appendSmallAgentEntries(t, a.Dir, "b", "agent two")
	place = tell(place.Next)
	wantMessages(t, place, "F one", "F two")
	if want := filepath.Join(a.Dir, "b.jsonl"); !slices.Equal(place.WatchFiles, []string{want}) {
		t.Errorf("watches %q; want %q", place.WatchFiles, want)
	}
	c.ID = "b" // the record has caught up
	appendSmallAgentEntries(t, a.Dir, "b", "agent three")
	place = tell(place.Next)
	wantMessages(t, place, "F three")
	c.ID = "c" // it could not be resumed
	appendSmallAgentEntries(t, a.Dir, "b", "agent four")
	appendSmallAgentEntries(t, a.Dir, "c", "agent five")
	place = tell(place.Next)
	wantMessages(t, place, "F four", "F five")
	wantMessages(t, tell(place.Next))
}

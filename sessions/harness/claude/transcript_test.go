package claude

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
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

// appendMessage writes a line of the agent's with the time of now.
func (k *transcriptEnv) appendMessage(id, format, text string) {
	k.t.Helper()
	k.appendLine(id, fmt.Sprintf(format, time.Now().UTC().Format(time.RFC3339Nano), text), "")
}

func (k *transcriptEnv) read(since sessions.Offset) sessions.TranscriptBatch {
	k.t.Helper()
	batch, err := k.claude.ReadTranscript(k.t.Context(), k.Conversation, since)
	if err != nil {
		k.t.Fatal(err)
	}
	return batch
}

func TestClaudesMessagesAreReadOnceWithTheirKind(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendLine(harnesstest.ConversationA, fmt.Sprintf(lineFinal, "2026-03-04T05:06:07.890Z", "old"), "")
	k.Started = time.Now()
	none := k.read("")
	harnesstest.WantMessages(t, none)
	k.appendMessage(harnesstest.ConversationA, lineStep, "I look")
	k.appendMessage(harnesstest.ConversationA, lineTool, "ls")
	k.appendLine(harnesstest.ConversationA, lineResult, "x")
	k.appendMessage(harnesstest.ConversationA, lineSidechain, "a subagent")
	k.appendMessage(harnesstest.ConversationA, lineSynthetic, "No response requested.")
	k.appendMessage(harnesstest.ConversationA, lineFinal, "done")
	k.appendMessage(harnesstest.ConversationA, lineError, "API Error: 400")
	batch := k.read(none.Next)
	harnesstest.WantMessages(t, batch, "S I look", "F done", "E API Error: 400")
	harnesstest.WantMessages(t, k.read(batch.Next))
	again := k.read(none.Next)
	for i := range again.Messages {
		if again.Messages[i] != batch.Messages[i] {
			t.Errorf("read again it is %+v, was %+v", again.Messages[i], batch.Messages[i])
		}
	}
	if !slices.Contains(batch.WatchFiles, k.transcriptFile(harnesstest.ConversationA)) {
		t.Errorf("watches %q", batch.WatchFiles)
	}
}

// Older versions do not say with the text whether it ends the turn.
func TestATextWithoutAStopReasonWaitsForTheNextLine(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendMessage(harnesstest.ConversationA, lineNull, "I look")
	offset := k.read("")
	harnesstest.WantMessages(t, offset)
	k.appendMessage(harnesstest.ConversationA, lineTool, "ls")
	k.appendLine(harnesstest.ConversationA, lineResult, "x")
	k.appendMessage(harnesstest.ConversationA, lineNull, "done")
	offset = k.read(offset.Next)
	harnesstest.WantMessages(t, offset, "S I look")
	k.appendMessage(harnesstest.ConversationA, lineDuration, "1")
	harnesstest.WantMessages(t, k.read(offset.Next), "F done")
}

func TestClaudeIsReadAfterAClearAndAfterReturningToAnOldConversation(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	const talkB, talkC = "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationA, map[string]string{"source": "startup", "transcript_path": k.transcriptFile(harnesstest.ConversationA)})
	k.appendMessage(talkC, lineFinal, "last year")
	k.appendMessage(harnesstest.ConversationA, lineFinal, "one")
	offset := k.read("")
	harnesstest.WantMessages(t, offset, "F one")
	k.appendMessage(harnesstest.ConversationA, lineFinal, "two")
	k.appendReport(time.Now(), report.EventSessionStart, talkB, map[string]string{"source": "clear"})
	k.appendMessage(talkB, lineFinal, "three")
	offset = k.read(offset.Next)
	harnesstest.WantMessages(t, offset, "F two", "F three")
	k.appendReport(time.Now(), report.EventSessionStart, talkC, map[string]string{"source": "resume"})
	k.appendMessage(talkC, lineFinal, "four")
	offset = k.read(offset.Next)
	harnesstest.WantMessages(t, offset, "F four")
	k.ID = talkC // the record has caught up
	k.appendMessage(talkC, lineFinal, "five")
	harnesstest.WantMessages(t, k.read(offset.Next), "F five")
}

func TestClaudeWithoutHooksIsReadInAFreshConversation(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.claude.Hook = nil
	offset := k.read("")
	k.appendMessage(harnesstest.ConversationA, lineFinal, "one")
	k.ID = "22222222-2222-4222-8222-222222222222"
	k.appendMessage(k.ID, lineFinal, "two")
	offset = k.read(offset.Next)
	harnesstest.WantMessages(t, offset, "F one", "F two")
	harnesstest.WantMessages(t, k.read(offset.Next))
}

func TestInvalidCursorIsRefused(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	for _, offset := range []sessions.Offset{"x", "{}", `{"talk":"../a","now":"b"}`, `{"talk":"a","now":"b","at":-1}`} {
		if _, err := k.claude.ReadTranscript(t.Context(), k.Conversation, offset); err == nil {
			t.Errorf("%q is taken for a place", offset)
		}
	}
}

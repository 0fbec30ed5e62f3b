package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/transcript"
)

// Lines as Codex 0.171.0 writes them, shortened; the time is filled in.
const (
	lineAnswer       = `{"timestamp":%q,"ordinal":14,"type":"response_item","payload":{"type":"message","status":"completed","id":"i","role":"assistant","content":[{"type":"output_text","text":"%s","annotations":[]}]}}`
	lineQuestion     = `{"timestamp":%q,"ordinal":21,"type":"response_item","payload":{"type":"message","id":"m","role":"user","content":[{"type":"input_text","text":"%s"}]}}`
	lineCall         = `{"timestamp":%q,"ordinal":33,"type":"response_item","payload":{"type":"custom_tool_call","id":"i","status":"completed","call_id":"c","name":"%s","input":"x"}}`
	lineTurnComplete = `{"timestamp":%q,"ordinal":17,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t","last_agent_message":"%s","duration_ms":131}}`
	lineFailure      = `{"timestamp":%q,"ordinal":48,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t","last_agent_message":null,"error":{"message":"%s","codex_error_info":"other"}}}`
)

func TestCodexsMessageIsFinalWhenItsTurnIsOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	add := func(format, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := fmt.Fprintf(f, format+"\n", time.Now().Format(time.RFC3339Nano), text); err != nil {
			t.Fatal(err)
		}
	}
	s := transcriptOffset{Cursor: transcript.Cursor{Conversation: "a", File: path}}
	hears := func(want ...string) {
		t.Helper()
		var batch sessions.TranscriptBatch
		if err := readTranscript(&s, &batch); err != nil {
			t.Fatal(err)
		}
		harnesstest.WantMessages(t, batch, want...)
	}
	add(lineQuestion, "do it")
	add(lineAnswer, "I look")
	hears()
	add(lineCall, "exec")
	add(lineAnswer, "done")
	hears("S I look")
	hears()
	add(lineTurnComplete, "done")
	hears("F done")
	add(lineQuestion, "again")
	add(lineFailure, "the model is away")
	hears("E the model is away")
	hears()
}

func TestCodexsTurnFollowsItsEvents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	s := transcriptOffset{Cursor: transcript.Cursor{Conversation: "a", File: path}}
	step := func(what string, works bool, line string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := fmt.Fprintln(f, fmt.Sprintf(line, time.Now().Format(time.RFC3339Nano), what)); err != nil {
			t.Fatal(err)
		}
		batch := sessions.TranscriptBatch{}
		if err := readTranscript(&s, &batch); err != nil {
			t.Fatal(err)
		}
		harnesstest.WantTurn(t, what, sessions.TranscriptBatch{Turn: s.Turn}, works)
	}
	const begins = `{"timestamp":%q,"type":"event_msg","payload":{"type":"task_started","turn_id":"%s"}}`
	const aborts = `{"timestamp":%q,"type":"event_msg","payload":{"type":"turn_aborted","reason":"%s"}}`
	step("begun", true, begins)
	step("answered", true, lineAnswer)
	step("over", false, lineTurnComplete)
	step("begun again", true, begins)
	step("interrupted", false, aborts)
	step("and again", true, begins)
	step("failed", false, lineFailure)
}

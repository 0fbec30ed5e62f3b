package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// Lines as Codex 0.171.0 writes them, shortened; the time is filled in.
const (
	codexAnswer       = `{"timestamp":%q,"ordinal":14,"type":"response_item","payload":{"type":"message","status":"completed","id":"i","role":"assistant","content":[{"type":"output_text","text":"%s","annotations":[]}]}}`
	codexQuestion     = `{"timestamp":%q,"ordinal":21,"type":"response_item","payload":{"type":"message","id":"m","role":"user","content":[{"type":"input_text","text":"%s"}]}}`
	codexCall         = `{"timestamp":%q,"ordinal":33,"type":"response_item","payload":{"type":"custom_tool_call","id":"i","status":"completed","call_id":"c","name":"%s","input":"x"}}`
	codexTurnComplete = `{"timestamp":%q,"ordinal":17,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t","last_agent_message":"%s","duration_ms":131}}`
	codexFailure      = `{"timestamp":%q,"ordinal":48,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t","last_agent_message":null,"error":{"message":"%s","codex_error_info":"other"}}}`
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
	s := codexOffset{Cursor: transcript.Cursor{Conversation: "a", File: path}}
	hears := func(want ...string) {
		t.Helper()
		var told sessions.TranscriptBatch
		if err := readCodexTranscript(&s, &told); err != nil {
			t.Fatal(err)
		}
		wantMessages(t, told, want...)
	}
	add(codexQuestion, "do it")
	add(codexAnswer, "I look")
	hears()
	add(codexCall, "exec")
	add(codexAnswer, "done")
	hears("S I look")
	hears()
	add(codexTurnComplete, "done")
	hears("F done")
	add(codexQuestion, "again")
	add(codexFailure, "the model is away")
	hears("E the model is away")
	hears()
}

package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testdata/earlier.jsonl was written by an earlier program: a file that goes on where another one was full.
func TestAReportFileOfAnEarlierProgramIsRead(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "earlier.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	all, next, err := Read(path, 0)
	want := []Report{
		{At: at.Add(time.Minute), Event: EventPromptSubmit, Conversation: "c-2", Payload: json.RawMessage(`{"hook_event_name":"UserPromptSubmit","session_id":"c-2","prompt":"hi \u003cthere\u003e"}`)},
		{At: at.Add(time.Minute), Event: EventStop, Conversation: "c-2", Payload: json.RawMessage(`{"hook_event_name":"Stop","session_id":"c-2"}`)},
		{At: at.Add(time.Hour), Event: EventPermissionRequest, Conversation: "c-2", Token: "tok", Payload: json.RawMessage(`{"tool_name":"Bash"}`)},
	}
	if diff := cmp.Diff(want, all); diff != "" || err != nil || next <= 4096 {
		t.Error(diff, next, err)
	}
	err = new(Index).WithFacts(path, func(f *Facts, _ int64) {
		launch := &LaunchFact{At: at, StartedAt: at, Prompted: true}
		if diff := cmp.Diff(launch, f.Launch); diff != "" || f.Count != 8 || f.LastStarted != "c-2" || f.LastStartReport != 5 {
			t.Errorf("%+v: %s", f, diff)
		}
		talks := map[string]ConversationFact{"c-1": {LastReport: 4, Path: "/t/c-1.jsonl"}, "c-2": {LastReport: 8, Path: "/t/c-2.jsonl"}}
		if diff := cmp.Diff(talks, f.Conversations); diff != "" {
			t.Error(diff)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

package harness

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
)

func TestMessagesThatAProgramReportsAreReadOnce(t *testing.T) {
	t.Parallel()
	h := ReportingTemplate{Template: Template{Title: "mytool"}, ReportDir: t.TempDir()}
	talk := sessions.Conversation{Session: sessionA, Started: time.Now()}
	path, err := ReportPath(h.ReportDir, sessionA)
	if err != nil {
		t.Fatal(err)
	}
	report := func(at time.Time, event, text string, final bool) {
		t.Helper()
		payload, err := json.Marshal(AgentMessagePayload{Text: text, Final: final})
		if err != nil {
			t.Fatal(err)
		}
		if err := AppendReport(path, Report{At: at, Event: event, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	report(talk.Started.Add(-time.Minute), EventAgentMessage, "old", true)
	none := readTranscript(t, h, talk, sessions.TranscriptBatch{})
	wantMessages(t, none)
	if !slices.Equal(none.WatchFiles, []string{path}) {
		t.Errorf("watches %q", none.WatchFiles)
	}
	report(time.Now(), EventAgentMessage, "I look", false)
	report(time.Now(), EventAgentMessage, "I look", false)
	report(time.Now(), "the-loop:other", "x", true)
	report(time.Now(), EventAgentMessage, "", true)
	report(time.Now(), EventAgentMessage, "done", true)
	told := readTranscript(t, h, talk, none)
	wantMessages(t, told, "S I look", "S I look", "F done")
	wantMessages(t, readTranscript(t, h, talk, told))
	if again := readTranscript(t, h, talk, none); !slices.Equal(again.Messages, told.Messages) {
		t.Errorf("read again it is %+v, was %+v", again.Messages, told.Messages)
	}
	if _, err := h.ReadTranscript(t.Context(), talk, "x"); err == nil {
		t.Error("a place that is none is taken")
	}
}

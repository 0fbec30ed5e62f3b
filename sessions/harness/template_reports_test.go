package harness

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
)

func TestMessagesThatAProgramReportsAreReadOnce(t *testing.T) {
	t.Parallel()
	h := ReportingTemplate{Template: Template{Title: "mytool"}, ReportDir: t.TempDir()}
	conv := sessions.Conversation{Session: harnesstest.Session, Started: time.Now()}
	path, err := report.Path(h.ReportDir, harnesstest.Session)
	if err != nil {
		t.Fatal(err)
	}
	add := func(at time.Time, event, text string, final bool) {
		t.Helper()
		payload, err := json.Marshal(report.AgentMessagePayload{Text: text, Final: final})
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Append(path, report.Report{At: at, Event: event, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	add(conv.Started.Add(-time.Minute), report.EventAgentMessage, "old", true)
	none := harnesstest.ReadOn(t, h, conv, sessions.TranscriptBatch{})
	harnesstest.WantMessages(t, none)
	if !slices.Equal(none.WatchFiles, []string{path}) {
		t.Errorf("watches %q", none.WatchFiles)
	}
	add(time.Now(), report.EventAgentMessage, "I look", false)
	add(time.Now(), report.EventAgentMessage, "I look", false)
	add(time.Now(), "the-loop:other", "x", true)
	add(time.Now(), report.EventAgentMessage, "", true)
	add(time.Now(), report.EventAgentMessage, "done", true)
	batch := harnesstest.ReadOn(t, h, conv, none)
	harnesstest.WantMessages(t, batch, "S I look", "S I look", "F done")
	harnesstest.WantMessages(t, harnesstest.ReadOn(t, h, conv, batch))
	if again := harnesstest.ReadOn(t, h, conv, none); !slices.Equal(again.Messages, batch.Messages) {
		t.Errorf("read again it is %+v, was %+v", again.Messages, batch.Messages)
	}
	if _, err := h.ReadTranscript(t.Context(), conv, "x"); err == nil {
		t.Error("a place that is none is taken")
	}
}

package harness

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
)

func TestWhatAProgramOfTheOperatorsReportsIsReadOnce(t *testing.T) {
	t.Parallel()
	h := Reporting{Template: Template{Title: "mytool"}, Reports: t.TempDir()}
	talk := sessions.Conversation{Session: sessionA, Started: time.Now()}
	path, err := ReportPath(h.Reports, sessionA)
	if err != nil {
		t.Fatal(err)
	}
	report := func(at time.Time, event, text string, final bool) {
		t.Helper()
		payload, err := json.Marshal(SaidNote{Text: text, Final: final})
		if err != nil {
			t.Fatal(err)
		}
		if err := AppendReport(path, Report{At: at, Event: event, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	report(talk.Started.Add(-time.Minute), EventSaid, "old", true)
	none := listen(t, h, talk, sessions.Told{})
	wantHeard(t, none)
	if !slices.Equal(none.Watch, []string{path}) {
		t.Errorf("watches %q", none.Watch)
	}
	report(time.Now(), EventSaid, "I look", false)
	report(time.Now(), EventSaid, "I look", false)
	report(time.Now(), "the-loop:other", "x", true)
	report(time.Now(), EventSaid, "", true)
	report(time.Now(), EventSaid, "done", true)
	told := listen(t, h, talk, none)
	wantHeard(t, told, "S I look", "S I look", "F done")
	wantHeard(t, listen(t, h, talk, told))
	if again := listen(t, h, talk, none); !slices.Equal(again.Said, told.Said) {
		t.Errorf("read again it is %+v, was %+v", again.Said, told.Said)
	}
	if _, err := h.Told(t.Context(), talk, "x"); err == nil {
		t.Error("a place that is none is taken")
	}
}

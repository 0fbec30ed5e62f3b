package opencode

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestOpenCodesHistoryIsReadWithWhatWasPasted(t *testing.T) {
	t.Parallel()
	line := `{"input":"see [Pasted ~3 lines] and","parts":[{"type":"text","text":"l1\n\nl3","source":{"text":{"start":4,"end":21,"value":"[Pasted ~3 lines]"}}}],"mode":"normal"}`
	if got := parseHistoryLine([]byte(line)); got != "see l1\n\nl3 and" {
		t.Errorf("openCodeInput = %q", got)
	}
	if got := parseHistoryLine([]byte("{")); got != "" {
		t.Errorf("of what is no JSON: %q", got)
	}
	if _, err := (Harness{}).Accepted(t.Context(), sessions.Conversation{Session: harnesstest.Session}, "x", "x"); err == nil {
		t.Error("a place that is none is taken")
	}
}

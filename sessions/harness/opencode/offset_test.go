package opencode

import "testing"

func TestOffsetsOfTheVersionBeforeAreRead(t *testing.T) {
	t.Parallel()
	p, err := parseOffset("1796107262087")
	if err != nil || p.Since.UnixMilli() != 1796107262087 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = parseOffset(`{"since":"2026-11-30T10:43:18Z","db":"/db","log":"/l","logAt":4,"run":"r","read":{"ses_a":{"at":5,"id":"m"}}}`)
	if err != nil || p.DB != "/db" || p.Log != "/l" || p.LogOffset != 4 || p.RunID != "r" || p.LastRead["ses_a"].At != 5 || p.LastRead["ses_a"].ID != "m" {
		t.Errorf("%+v, %v", p, err)
	}
}

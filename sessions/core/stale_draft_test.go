package core

import (
	"testing"
	"time"

	"the-loop/sessions"
)

func TestOnlyTheTextAcceptedLastIsAStaleDraft(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := staleDrafts{bySession: map[string]acceptedText{}}
	l.remember("s", "an older one", "an older one", now)
	l.remember("s", "one\ntwo  three\n", "one two three", now)
	for _, tc := range []struct {
		id   string
		view sessions.View
		at   time.Time
		want bool
	}{
		{"s", sessions.View{Box: "one\n two three"}, now, true},
		{"s", sessions.View{Box: "[a mark of a paste]", FoldedLines: 2}, now, true},
		{"s", sessions.View{Box: "[a mark of a paste]", FoldedLines: 3}, now, false},
		{"s", sessions.View{Box: "one two"}, now, false},
		{"s", sessions.View{Box: "one tw\no th\u0301ree"}, now, true}, // wrapped, and with a mark that a terminal made of it
		{"s", sessions.View{Box: "an older one"}, now, false},
		{"another", sessions.View{Box: "one two three"}, now, false},
		{"s", sessions.View{Box: "one two three"}, now.Add(2 * staleDraftMaxAge), false},
	} {
		if got := l.isCopy(tc.id, tc.view, tc.view.Box, tc.at); got != tc.want {
			t.Errorf("%s %+v: %t", tc.id, tc.view, got)
		}
	}
}

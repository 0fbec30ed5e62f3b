package sessions

import (
	"testing"
	"time"
)

func TestOnlyTheAcceptedTextIsAStaleDraft(t *testing.T) {
	t.Parallel()
	now := time.Now()
	text := NewAcceptedText("one\ntwo  three\n", "one two three", now)
	for _, tc := range []struct {
		view View
		at   time.Time
		want bool
	}{
		{View{Box: "one\n two three"}, now, true},
		{View{Box: "[a mark of a paste]", FoldedLines: 2}, now, true},
		{View{Box: "[a mark of a paste]", FoldedLines: 3}, now, false},
		{View{Box: "one two"}, now, false},
		{View{Box: "one tw\no th\u0301ree"}, now, true}, // wrapped, and with a mark that a terminal made of it
		{View{Box: "an older one"}, now, false},
		{View{Box: "one two three"}, now.Add(2 * staleDraftMaxAge), false},
	} {
		if got := text.IsCopy(tc.view, tc.view.Box, tc.at); got != tc.want {
			t.Errorf("%+v: %t", tc.view, got)
		}
	}
}

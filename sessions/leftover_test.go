package sessions

import (
	"testing"
	"time"
)

func TestOnlyWhatWasTakenLastIsALeftover(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := leftovers{all: map[string]taken{}}
	l.put("s", "an older one", "an older one", now)
	l.put("s", "one\ntwo  three\n", "one two three", now)
	for _, tc := range []struct {
		id   string
		view View
		at   time.Time
		want bool
	}{
		{"s", View{Box: "one\n two three"}, now, true},
		{"s", View{Box: "[a mark of a paste]", Folded: 2}, now, true},
		{"s", View{Box: "[a mark of a paste]", Folded: 3}, now, false},
		{"s", View{Box: "one two"}, now, false},
		{"s", View{Box: "one tw\no th\u0301ree"}, now, true}, // wrapped, and with a mark that a terminal made of it
		{"s", View{Box: "an older one"}, now, false},
		{"another", View{Box: "one two three"}, now, false},
		{"s", View{Box: "one two three"}, now.Add(2 * leftoverAge), false},
	} {
		if got := l.is(tc.id, tc.view, tc.view.Box, tc.at); got != tc.want {
			t.Errorf("%s %+v: %t", tc.id, tc.view, got)
		}
	}
}

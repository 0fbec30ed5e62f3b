package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/bot/render"
)

func TestAScreenIsCutIntoRunsOfOneStyle(t *testing.T) {
	t.Parallel()
	got := render.ParseScreen("plain \x1b[1;31mred\x1b[0m \x1b[7minverse\x1b[0m   \n\x1b[44m \x1b[0m\n\x1b[8mhidden\x1b[0m|\n\n").Runs()
	want := [][]render.Run{
		{{Text: "plain "}, {Text: "red", FG: "#cd3131", Bold: true}, {Text: " "}, {Text: "inverse", FG: "#1e1e1e", BG: "#d4d4d4"}},
		{{Text: " ", BG: "#2472c8"}},
		{{Text: "      |"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

package render

import (
	"fmt"
	"strings"
	"testing"
)

// longScreen is a screen of n lines whose last ones are a dialog and the prompt.
func longScreen(n int) string {
	var b strings.Builder
	for i := range n - 2 {
		fmt.Fprintf(&b, "line %04d %s\n", i, strings.Repeat("<x> & ", 30))
	}
	return b.String() + "1. Yes  2. No\n> the prompt"
}

func TestTheEndOfALongScreenIsShown(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 10, 40, 50, 500, 5000} {
		text := PeekText(sampleRows[0], longScreen(n))
		m, err := Post{Text: "Shared by <@U1>: " + text}.Render()
		if err != nil {
			t.Fatal(err)
		}
		raw := indentedJSON(t, m.Blocks, err)
		if !strings.Contains(raw, "the prompt") || !strings.Contains(raw, "1. Yes") || strings.Contains(raw, "cut: the message") {
			t.Errorf("%d lines: the end is not there in %d bytes", n, len(raw))
		}
		shown := strings.Count(text, "line ") - strings.Count(text, " line above")
		said := strings.Contains(text, cutLinesText(n-2-shown))
		if cut := shown < n-2; cut != said || n <= 10 && cut || n >= 500 && shown < 10 {
			t.Errorf("%d lines: %d are shown, and it says %q", n, shown, strings.SplitN(text, "```", 2)[0])
		}
	}
}

func TestTheEndOfOneLongLineIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"x", "<", "é", "😀"} {
		text := PeekText(sampleRows[0], "above\n"+strings.Repeat(c, 20000)+"> the prompt")
		if utf16Len(text) > MaxMessage || !strings.HasSuffix(text, "&gt; the prompt\n```") || !strings.Contains(text, cutLinesText(1)) {
			t.Errorf("%s: %d characters, %q", c, utf16Len(text), text[max(0, len(text)-50):])
		}
	}
	if got := EndedText(sampleRows[1], strings.Repeat(strings.Repeat("x", 2000)+"\n", 15)+"its last words"); utf16Len(got) > MaxMessage ||
		!strings.Contains(got, "its last words\n```\nStart it again") {
		t.Errorf("%d characters", utf16Len(got))
	}
}

func TestThePictureOfALongScreenIsOfItsEnd(t *testing.T) {
	t.Parallel()
	for n, cut := range map[int]int{10: 0, 200: 0, 201: 1, 700: 500, 5000: 4800} {
		s := ParseScreen("\x1b[31m" + longScreen(n) + "\n\n\n").cropped()
		text, last := s.Text(), s.rows[len(s.rows)-1]
		if cut > 0 != strings.HasPrefix(text, "… "+cutLinesText(cut)) || !strings.HasSuffix(text, "\n> the prompt") || len(s.rows) > maxPictureLines+1+3 {
			t.Errorf("%d lines: %d rows, %q … %q", n, len(s.rows), text[:40], text[max(0, len(text)-40):])
		}
		if cut > 0 && last[0].style.fg == nil {
			t.Errorf("%d lines: the colour did not go on", n)
		}
	}
	// A secret whose beginning is cut off must be known before that.
	scrub := func(text string) string { return strings.ReplaceAll(text, "BEGIN\nkey", "[KEY]") }
	s := ParseScreen("BEGIN\nkey\n" + strings.Repeat("x\n", maxPictureLines-1)).Scrubbed(scrub).cropped()
	if strings.Contains(s.Text(), "key") {
		t.Error("a part of a secret is in the picture")
	}
}

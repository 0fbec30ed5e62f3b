package envstate

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScrubPutsNamesForValues(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"KEY": "abcdef", "LONG": "abcdefghij", "SHORT": "abc12", "WIDE": "äöüßéè", "EMPTY": "",
		"PEM": "-----BEGIN KEY-----\nMIIEvQIBADAN\nend\n", "PADDED": "  padded  ", "LATER": "ghijklmnop",
	}
	for text, want := range map[string]string{
		"":                        "",
		"nothing to see":          "nothing to see",
		"key abcdef.":             "key [KEY].",
		"abcdefabcdef":            "[KEY][KEY]",
		"abcdefghij":              "[LONG]",
		"abcdefghijklmnop":        "[LONG]",
		"xghijklmnop":             "x[LATER]",
		"abc12 is short":          "abc12 is short",
		"<äöüßéè>":                "<[WIDE]>",
		"abc\ndef":                "[KEY]",
		"abc\r\ndefgh\r\nij\nend": "[LONG]\nend",
		"line\nabcdef\nline":      "line\n[KEY]\nline",
		"x MIIEvQIBADAN y":        "x [PEM] y",
		"-----BEGIN KEY-----\nMIIEvQIBADAN\nend\n": "[PEM]\n",
		"'padded'": "'[PADDED]'",
		"[KEY]":    "[KEY]",
	} {
		if got := Scrub(text, values); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestANilScrubberChangesNothing(t *testing.T) {
	t.Parallel()
	var none *Scrubber
	for _, s := range []*Scrubber{none, {}, NewScrubber(nil)} {
		if got := s.Scrub("text"); got != "text" {
			t.Errorf("got %q", got)
		}
	}
}

// Whatever stands around a value and however it is broken into lines: nothing of it is left, and the rest is.
func TestScrubLeavesNothingOfAValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ab]{6,9}`)
		values := map[string]string{"ONE": letters.Draw(t, "one"), "TWO": letters.Draw(t, "two")}
		text := rapid.StringMatching(`[abc\n]{0,60}`).Draw(t, "text")
		got := Scrub(text, values)
		for _, value := range values {
			if flat := strings.ReplaceAll(got, "\n", ""); strings.Contains(flat, value) {
				t.Fatalf("%q with %q left: %q", text, value, got)
			}
		}
		if strings.Count(got, "c") != strings.Count(text, "c") {
			t.Fatalf("%q became %q: more than the values is gone", text, got)
		}
	})
}

// BenchmarkScrub measures a screen, ordinary and in escapes, against looking for each value as it is.
func BenchmarkScrub(b *testing.B) {
	values := map[string]string{}
	var pairs []string
	for i := range 200 {
		name := "NAME_" + strconv.Itoa(i)
		values[name] = "secret-value-of-" + name
		pairs = append(pairs, values[name], "["+name+"]")
	}
	scrubber := NewScrubber(values)
	plain := strings.Repeat("a line of what an agent's screen may show, and more of it\n", 50) + values["NAME_7"]
	escaped := strings.ReplaceAll(plain, "e", `\u0065`)
	for name, text := range map[string]string{"plain": plain, "escaped": escaped} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				scrubber.Scrub(text)
			}
		})
	}
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			out := plain
			for i := 0; i < len(pairs); i += 2 {
				out = strings.ReplaceAll(out, pairs[i], pairs[i+1])
			}
		}
	})
}

package core_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"the-loop/sessions"
)

// randomText draws text with more control, format and invalid bytes than chance would give.
func randomText() *rapid.Generator[string] {
	odd := rapid.SampledFrom([]string{"\x1b", "\x1b[201~", "\r", "\r\n", "\n", "\t", "\x00", "\x7f", "\u0085", "\u009b", "\u2028", "\u2029",
		"\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad", "\U000E0041", "\xff", "\xed\xa0\x80", "👩‍👩‍👧", "🏴\U000E0067\U000E0062\U000E007F", "a b", "日本"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, p := range rapid.SliceOfN(rapid.OneOf(odd, rapid.String()), 0, 12).Draw(t, "parts") {
			b.WriteString(p)
		}
		return b.String()
	})
}

func TestCleanLeavesNothingThatATerminalActsOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := sessions.Clean(randomText().Draw(t, "text"))
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			switch {
			case r == '\n' || r == '\t':
			case unicode.IsControl(r):
				t.Fatalf("%q holds the control character %U", got, r)
			case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u061c', r == '\u200e', r == '\u200f':
				t.Fatalf("%q holds the bidirectional character %U", got, r)
			case r == '\u200b', r == '\u2028', r == '\u2029', r == '\ufeff':
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if strings.HasSuffix(got, "\n") {
			t.Fatalf("%q ends in a newline", got)
		}
	})
}

func TestCleanTwiceIsCleanOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		once := sessions.Clean(randomText().Draw(t, "text"))
		if twice := sessions.Clean(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

func TestCleanChangesNothingThatIsPlain(t *testing.T) {
	t.Parallel()
	plain := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("\n\t \u00a0é日字_*`~<>&!/\\;#{}$")), rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P, unicode.S)))
	rapid.Check(t, func(t *rapid.T) {
		text := plain.Draw(t, "text")
		if got := sessions.Clean(text); got != strings.TrimRight(text, "\n") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestCleanKeepsEmojiWhole(t *testing.T) {
	t.Parallel()
	for _, emoji := range []string{"👩‍👩‍👧", "👩🏽‍💻", "🏳️‍🌈", "❤️‍🔥", "🧑‍⚕️", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "🇨🇭", "1️⃣", "⛹🏻‍♀️", "👁️‍🗨️"} {
		if got := sessions.Clean("a " + emoji + " b"); got != "a "+emoji+" b" {
			t.Errorf("%q became %q", "a "+emoji+" b", got)
		}
	}
}

func TestCleanReplacesCharacters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "",
		"\n\n":                           "",
		"a\r\nb\rc\n":                    "a\nb\nc",
		"a\u2028b":                       "a\nb",
		"\x1b[201~\rrm -rf /\r":          "[201~\nrm -rf /",
		"x\u200dy":                       "xy",
		"a\U000E0041b":                   "ab",
		"bad \xff":                       "bad \uFFFD",
		"  kept  ":                       "  kept  ",
		"\ttab":                          "\ttab",
		"\u202egnp.exe":                  "gnp.exe",
		"no\u00adhyphen\u200b\ufeff\x7f": "nohyphen",
	} {
		if got := sessions.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFingerprintCountsWordsAndNotTheirSpaces(t *testing.T) {
	t.Parallel()
	words := rapid.SliceOfN(rapid.StringMatching(`[^\s]{1,5}`), 1, 6)
	space := rapid.StringMatching(`[ \t\n]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		w := words.Draw(t, "words")
		var b strings.Builder
		for _, s := range w {
			b.WriteString(space.Draw(t, "space") + s)
		}
		if sessions.Fingerprint(b.String()) != sessions.Fingerprint(strings.Join(w, " ")) {
			t.Fatalf("%q differs from its words", b.String())
		}
		if sessions.Fingerprint(strings.Join(w, " ")+" x") == sessions.Fingerprint(strings.Join(w, " ")) {
			t.Fatal("one word more makes no difference")
		}
	})
	if sessions.Fingerprint("ab c") == sessions.Fingerprint("a bc") {
		t.Error("the borders of words do not count")
	}
}

func TestTruncateCutsRunes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"日本語", 3, "日本語"}, {"日本語", 2, "日…"}, {"ab", 0, "…"}, {"", 0, ""}} {
		if got := sessions.Truncate(c.text, c.n); got != c.want {
			t.Errorf("Sized(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Claude Code 2.1.197 composes what is decomposed.
func TestAComposedTextIsTheSameAsADecomposedOne(t *testing.T) {
	t.Parallel()
	for decomposed, composed := range map[string]string{"caf\u0065\u0301": "caf\u00e9", "\u212b \u2126": "\u00c5 \u03a9", "\u1112\u1161\u11ab": "\ud55c", "\u0958": "\u0915\u093c"} {
		if sessions.Fingerprint(decomposed) != sessions.Fingerprint(composed) {
			t.Errorf("%q and %q are two texts", decomposed, composed)
		}
	}
}

package smallagent

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// decode feeds the stream cut before each of the given places; what follows an ESC at its end never comes.
func decode(stream string, cuts ...int) []event {
	var d decoder
	var events []event
	at := 0
	for _, cut := range append(cuts, len(stream)) {
		events = append(events, d.feed([]byte(stream[at:cut]))...)
		at = cut
	}
	for d.isEscapePending() {
		events = append(events, d.flush()...)
	}
	return events
}

func TestHowTheStreamIsCutMakesNoDifference(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"\x1b[200~", "\x1b[201~", "\x1b", "\x1b[", "\x1b[20", "\x1b[2", "\x1bO", "\x1b[A",
			"\x1b[3~", "\x1bOB", "\r", "\n", "\r\n", "\x18\x19", "\x03", "\x7f", "日本", "👩‍👩‍👧", "é", "~", "201~", "\xff", "\xe6\x97",
			"\x1b[" + strings.Repeat("1;", 20), "\x1b[1\r"}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		stream := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "stream"), "")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(stream)), 0, 20).Draw(t, "cuts")
		slices.Sort(cuts)
		want := decode(stream)
		if got := decode(stream, cuts...); !slices.Equal(got, want) {
			t.Fatalf("cut at %v: %+v, whole: %+v", cuts, got, want)
		}
		all := make([]int, len(stream))
		for i := range all {
			all[i] = i
		}
		if got := decode(stream, all...); !slices.Equal(got, want) {
			t.Fatalf("byte by byte: %+v, whole: %+v", got, want)
		}
	})
}

func TestAPasteIsOneEventWithAllOfItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if strings.ContainsAny(text, "\r\x1b") {
			t.Skip("a terminal changes it")
		}
		got := decode("a\x1b[200~" + text + "\x1b[201~\r")
		want := []event{{keyText, "a"}, {keyPaste, text}, {key: keyEnter}}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

func FuzzDecoder(f *testing.F) {
	f.Add("a\x1b[200~b\r\nc\x1b[201~\r", uint(5))
	f.Add("\x1b\x1b[\x1bO\xe6\x97", uint(2))
	f.Fuzz(func(t *testing.T, stream string, cut uint) {
		at := int(cut % uint(len(stream)+1))
		if whole, halves := decode(stream), decode(stream, at); !slices.Equal(whole, halves) {
			t.Errorf("cut at %d: %+v, whole: %+v", at, halves, whole)
		}
	})
}

func TestKeysAreDecoded(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string][]event{
		"\x1b":                {{key: keyEscape}},
		"\x1b\x1b[A":          {{key: keyEscape}, {key: keyUp}},
		"\x1bx":               {{key: keyEscape}, {keyText, "x"}},
		"\x1b[1;5C":           nil,
		"\x1b[D\x1b[H\x1b[F":  {{key: keyLeft}, {key: keyHome}, {key: keyEnd}},
		"\x1b[201~":           nil,
		"\x1b[2\r":            {{key: keyEnter}},
		"\xffa":               {{keyText, "\ufffd"}, {keyText, "a"}},
		"\x1b[200~\xff":       nil,
		"\x1b[200~\x1b[201~":  {{keyPaste, ""}},
		"\x1b[200~\x1b[200~a": nil,
		"\x00\x02\t":          {{keyText, "\t"}},
	} {
		if got := decode(stream); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", stream, got, want)
		}
	}
}

package smallagent

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func typeInto(stream string) *box {
	var b box
	for _, e := range decode(stream) {
		b.edit(e)
	}
	return &b
}

func TestEditing(t *testing.T) {
	t.Parallel()
	const paste = "\x1b[200~one\ntwo\x1b[201~"
	for stream, want := range map[string]string{
		"abc\x7f":                   "ab",
		"\x7f\x17\x15\x1b[3~\x1b[D": "",
		"日本\x7f":                    "日",
		"a👩‍👩‍👧\x7f":                "a",
		"ae\u0301\x7f":              "a",
		"one two  \x17":             "one ",
		"one\ntwo\x15":              "one\n",
		"one two\x15x":              "x",
		"ac\x1b[Db":                 "abc",
		"ac\x1b[D\x1b[D\x1b[3~":     "c",
		"bc\x01a\x05d":              "abcd",
		"x\nbc\x01a\x05d":           "x\nabcd",
		"日👩‍👩‍👧\x1b[D\x1b[D\x1b[C\x1b[3~": "日",
		"a" + paste + "\x7f":              "a",
		"a " + paste + "\x17":             "a ",
		"a" + paste + "b\x1b[D\x1b[Dx":    "axone\ntwob",
		"draft\x13new":                    "new",
	} {
		if got := typeInto(stream).text(); got != want {
			t.Errorf("%q: %q, want %q", stream, got, want)
		}
	}
}

func TestDraftsPutAsideAreNotLost(t *testing.T) {
	t.Parallel()
	b := typeInto("one \x13two\x13\x13three")
	b.clear()
	if got := b.text(); got != "one two" {
		t.Errorf("%q came back", got)
	}
	if b.clear(); !b.empty() {
		t.Errorf("%q came back again", b.text())
	}
}

func TestEditingNeverLeavesTheBox(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"a", " ", "日", "e\u0301", "👩‍👩‍👧", "\u200d", "\n", "\x7f", "\x17", "\x15", "\x1b[D",
		"\x1b[C", "\x01", "\x05", "\x1b[3~", "\x13", "\x1b[200~p\nq\x1b[201~", "\x1b[200~short\x1b[201~"})
	rapid.Check(t, func(t *rapid.T) {
		b := typeInto(strings.Join(rapid.SliceOf(piece).Draw(t, "keys"), ""))
		if b.cursor < 0 || b.cursor > len(b.cells) {
			t.Fatalf("the cursor is at %d of %d", b.cursor, len(b.cells))
		}
		width := rapid.IntRange(4, 90).Draw(t, "width")
		rows, y, x := b.render(width)
		if len(rows) == 0 || len(rows) > MaxBoxRows || y < 0 || y >= len(rows) || x < 0 || x > width {
			t.Fatalf("%d rows, the cursor at %d, %d", len(rows), y, x)
		}
		for _, r := range rows {
			if uniseg.StringWidth(r) > width {
				t.Fatalf("%q is wider than %d", r, width)
			}
		}
	})
}

func TestRenderPaste(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"short":                          "short",
		"日本語":                            "日本語",
		"a\tb":                           "a    b",
		"a\x1b[31mb":                     "a␛[31mb",
		"one\r\ntwo":                     "[Pasted text #1 +1 lines]",
		strings.Repeat("日", 201):         "[Pasted text #1 +201 characters]",
		strings.Repeat("word ", 17):      strings.TrimSpace(strings.Repeat("word ", 15)) + "\nword word",
		strings.Repeat("日", 40) + " end": strings.Repeat("日", 39) + "\n日 end",
	} {
		if got := RenderPaste(text, 80); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if rows, _, _ := typeInto(strings.Repeat("x", 2000)).render(78); len(rows) != MaxBoxRows || !strings.HasSuffix(rows[MaxBoxRows-1], "…") {
		t.Errorf("a long text shows as %q", rows)
	}
}

func TestWrapKeepsEveryCharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.String().Draw(t, "line")
		line = printable(strings.ReplaceAll(line, "\n", " "))
		width := rapid.IntRange(2, 40).Draw(t, "width")
		rows := wrap(line, width)
		if got := strings.Join(rows, ""); got != line {
			t.Fatalf("%q, want %q", got, line)
		}
		for _, r := range rows {
			if uniseg.GraphemeClusterCount(r) > 1 && uniseg.StringWidth(r) > width {
				t.Fatalf("%q is wider than %d", r, width)
			}
		}
	})
}

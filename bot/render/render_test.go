package render

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestPostsAreRendered(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Post{
		"plain": {Text: "*build* is running in " + InlineCode("~/src/a`b")},
		"question": {Text: "I cannot tell whether this arrived.", Buttons: []Button{
			{Label: "Send again", Action: "reply_send", Value: "tok", Style: "primary"}, {Label: "Skip", Action: "reply_skip", Value: "tok"}}},
		"long": {Text: "```\n" + strings.Repeat(strings.Repeat("x", 99)+"\n", 40) + "```"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := p.Render()
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(map[string]any{"text": m.Fallback, "blocks": m.Blocks}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name+".json", string(got)+"\n")
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// seratch/ChatGPT-in-Slack#102, metabase/metabase#80105: what is too long is cut to Slack's limits, and says so.
func TestAPostStaysWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"word ", "👨‍👩‍👧", "&amp;", "<https://x.io|label>", "\n", "```\n", "日本語", strings.Repeat("x", 500)})
		text := "a" + strings.Join(rapid.SliceOfN(piece, 0, 600).Draw(t, "pieces"), "")
		m, err := Post{Text: text}.Render()
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		raw, err := json.Marshal(m.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		var blocks []struct{ Text struct{ Text string } }
		if err := json.Unmarshal(raw, &blocks); err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			n := utf16Len(b.Text.Text)
			if n > MaxSection || n == 0 {
				t.Fatalf("a section of %d characters", n)
			}
			total += n
		}
		if utf16Len(m.Fallback) > MaxText || len(blocks) > 50 || total > 13200 {
			t.Fatalf("%d characters of text, %d blocks with %d characters", utf16Len(m.Fallback), len(blocks), total)
		}
		if utf16Len(text) > MaxMessage && !strings.Contains(blocks[len(blocks)-1].Text.Text, "cut:") {
			t.Fatal("it was cut and does not say so")
		}
	})
}

func TestSplitLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "word ", "longer", "\n", "&amp;", "<u|l>", "👍"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 200).Draw(t, "pieces"), "")
		limit := rapid.IntRange(32, 200).Draw(t, "limit")
		parts := Split(text, limit)
		for _, p := range parts {
			if utf16Len(p) > limit {
				t.Fatalf("a part of %d", utf16Len(p))
			}
			if strings.Count(p, "&") != strings.Count(p, ";") || strings.Count(p, "<") != strings.Count(p, ">") {
				t.Fatalf("cut inside an entity or a token: %q", p)
			}
		}
		squeeze := func(s string) string { return strings.ReplaceAll(s, "\n", "") }
		if squeeze(strings.Join(parts, "")) != squeeze(text) {
			t.Fatalf("%q became %q", text, parts)
		}
	})
}

func TestABlockOfCodeIsClosedAndOpenedAgain(t *testing.T) {
	t.Parallel()
	parts := Split("say\n```\n"+strings.Repeat("line of code\n", 20)+"```\nafter", 100)
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for _, p := range parts {
		if strings.Count(p, "```")%2 != 0 {
			t.Errorf("an open block: %q", p)
		}
	}
}

func TestNamesAndCodeAreEscaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"*bold* _it_ ~s~ `c`": "∗bold∗ ˍitˍ ∼s∼ ˋcˋ",
		"<!channel> & <@U1>":  "&lt;!channel&gt; &amp; &lt;@U1&gt;",
		"two\nlines\x1b[31m":  "two lines[31m",
	} {
		if got := EscapeName(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
	if got := InlineCode("a`b <c>"); got != "`aˋb &lt;c&gt;`" {
		t.Errorf("Code: %q", got)
	}
	if got := InlineCode(" "); got != "" {
		t.Errorf("Code of nothing: %q", got)
	}
	if got := Preformatted("a```b\n<c>"); got != "```\naˋˋˋb\n&lt;c&gt;\n```" {
		t.Errorf("Preformatted: %q", got)
	}
	if got := Truncate("abc &amp; d", 8); got != "abc …" {
		t.Errorf("Cut: %q", got)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Post{
		"no text":          {Text: " \n"},
		"a long value":     {Text: "t", Buttons: []Button{{Label: "l", Action: "a", Value: strings.Repeat("v", 2001)}}},
		"no action":        {Text: "t", Buttons: []Button{{Label: "l"}}},
		"too many buttons": {Text: "t", Buttons: make([]Button, 26)},
	} {
		if _, err := p.Render(); err == nil {
			t.Errorf("%s was rendered", name)
		}
	}
}

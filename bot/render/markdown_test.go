package render

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func TestWhatAgentsWriteIsRendered(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("testdata/markdown/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatal(err, len(sources))
	}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".md")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for i, p := range Markdown(string(text)) {
				fmt.Fprintf(&b, "=== page %d\n%s\n", i+1, p.Text)
			}
			checkPages(t, string(text), PageSize)
			compareGolden(t, "markdown/"+name+".txt", strings.ReplaceAll(b.String(), wordBreak, "{zwsp}"))
		})
	}
}

func TestMarksBecomeSlacks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "",
		" \n\t\n":                     "",
		"# Head *it*":                 "*Head _it_*",
		"## Head\ntext":               "*Head*\ntext",
		"**b** *i* ***bi*** ~~s~~":    "*b* _i_ *_bi_* ~s~",
		"**b** **c** ~~d~~ ~~e~~":     "*b* *c* ~d~ ~e~",
		"a**b**c":                     "a{}*b*{}c",
		"重**要**な":                     "重{}*要*{}な",
		"**Note:** x, (**y**)":        "*Note:* x, (*y*)",
		"*a***b**":                    "_a_{}*b*",
		"**a *b* c**":                 "*a _b_ c*",
		"x`y`z":                       "x{}`y`{}z",
		"`a` & `b<c>`":                "`a` &amp; `b&lt;c&gt;`",
		"`` a`b ``":                   "`aˋb`",
		"stray ` tick":                "stray ˋ tick",
		"2 * 3 * 4 and 5*6":           "2 * 3 * 4 and 5*6",
		"snake_case_name _x_":         "snake_case_name _x_",
		"~/.a and ~/.b ~~c~~":         "∼/.a and ∼/.b ~c~",
		"~/.a and ~/.b":               "~/.a and ~/.b",
		`\*a\*`:                       "∗a∗",
		`\_a\_ b`:                     "ˍaˍ b",
		":tada: `:tada:`":             ":tada: `:tada:`",
		"a\nb  \nc\\\nd<br/>e":        "a\nb\nc\nd\ne",
		"a\n\n---\n\nb":               "a\n\n────────────\n\nb",
		"a\n---\nb":                   "a\n\n────────────\n\nb",
		"> q\n> r\n\nx":               "> q\n> r\n\nx",
		"> > q":                       "> &gt; q",
		`\> x`:                        "{}&gt; x",
		"```go\nx := 1\n```":          "```\nx := 1\n```",
		"a\n```\nb\n```\nc":           "a\n```\nb\n```\nc",
		"```\na":                      "```\na\n```",
		"```\n\n```":                  "",
		"    code\n\n    more":        "```\ncode\n\nmore\n```",
		"- a\n- b\n  - c\n\n1. d\n":   "• a\n• b\n    ◦ c\n\n1. d",
		"- ```\n  x\n  ```":           "•\n```\nx\n```",
		"- [ ] a\n- [x] b\n1. [x] c":  "☐ a\n☑ b\n\n1. ☑ c",
		"1. a\n1. b\n5. c":            "1. a\n2. b\n5. c",
		"[c.go:4](b/c.go#L4)":         "`b/c.go#L4`",
		"<mailto:!x^y@z>":             "mailto:!x^y@z",
		"7. a\n8. b":                  "7. a\n8. b",
		"<b>x</b> & <!-- c -->":       "&lt;b&gt;x&lt;/b&gt; &amp; &lt;!-- c --&gt;",
		"[a](https://x.io/?a=1&b=2)":  "<https://x.io/?a=1&amp;b=2|a>",
		"**[a](https://x.io)**":       "*<https://x.io|a>*",
		"[`a` *b*](https://x.io)":     "<https://x.io|a b>",
		"![a](https://x.io/a.png)":    "<https://x.io/a.png|a>",
		"![](https://x.io/a.png)":     "<https://x.io/a.png>",
		"https://x.io/a_b_c.":         "<https://x.io/a_b_c>.",
		"<me@x.io>":                   "<mailto:me@x.io|me@x.io>",
		"[a](/b/c.go)":                "a (`/b/c.go`)",
		"[a](javascript:alert(1))":    "a (`javascript:alert(1)`)",
		"[a](<https://x.io/b c|d>)":   "<https://x.io/b%20c%7Cd|a>",
		"[a][r]\n\n[r]: https://x.io": "<https://x.io|a>",
		"[ERROR]: failed\nmore":       "[ERROR]: failed\n\nmore",
		"text[^1]\n\n[^1]: the note":  "text[^1]\n\n[^1]: the note",
		"|a|b|\n|-|-:|\n|日本|1|":       "```\na    | b\n-----+--\n日本 | 1\n```",
	} {
		var texts []string
		for _, p := range Markdown(in) {
			texts = append(texts, p.Text)
		}
		if got := strings.ReplaceAll(strings.Join(texts, "\f"), wordBreak, "{}"); got != want {
			t.Errorf("%q became\n%q, want\n%q", in, got, want)
		}
	}
}

func TestALabelThatReadsLikeAnotherAddressIsNotALink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		label, target string
		want          bool
	}{
		{"docs", "https://evil.io", false},
		{"bank.com", "https://evil.io", true},
		{"https://bank.com", "https://evil.io/bank.com", true},
		{"BANK.com/login", "https://evil.io", true},
		{"log in at (www.bank.com)!", "https://evil.io", true},
		{"bank。com", "https://evil.io", true},
		{"https://bank.com@evil.io", "https://evil.io", true},
		{"bank.com", "https://www.bank.com/x", false},
		{"bank.com", "https://login.bank.com/x", false},
		{"bank.com", "https://bank.com.evil.io/x", true},
		{"bank.com", "https://bank.com@evil.io/x", true},
		{"10.0.0.1", "https://10.0.0.2/", true},
		{"README.md", "https://github.com/a/b/blob/main/README.md", false},
		{"README.md", "https://evil.io/", true},
		{"main.go", "https://evil.io/", false},
		{"v1.2.3", "https://evil.io/", false},
		{"me@x.io", "mailto:me@x.io", false},
		{"me@x.io", "mailto:you@x.io", true},
		{"me@x.io", "https://evil.io", true},
	} {
		if got := isMisleading(c.label, c.target); got != c.want {
			t.Errorf("[%s](%s): %v", c.label, c.target, got)
		}
	}
}

func TestACutTableKeepsItsHeader(t *testing.T) {
	t.Parallel()
	text := "| Name | Value |\n|---|---|\n" + strings.Repeat("| some name | some value |\n", 300)
	pages := Markdown(text)
	if len(pages) < 2 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, p := range pages {
		if !strings.HasPrefix(p.Text, "```\nName      | Value\n----------+-----------\nsome name | some value\n") {
			t.Errorf("a page begins %.80q", p.Text)
		}
	}
}

func TestAHeadingStaysWithWhatFollows(t *testing.T) {
	t.Parallel()
	for fill := PageSize - 80; fill < PageSize; fill++ {
		for _, p := range Markdown(strings.Repeat("x", fill) + "\n\n## Heading\n\nsome text\n") {
			if strings.HasSuffix(p.Text, "*Heading*") {
				t.Fatalf("after %d characters the heading stands alone", fill)
			}
		}
	}
}

func TestTheBeginningOfALongText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(strings.Repeat("word ", 100)+"\n\n", 40)
	all := Markdown(text)
	if pages, cut := FirstPages(text, len(all)); cut || len(pages) != len(all) {
		t.Errorf("%d of %d pages, cut: %v", len(pages), len(all), cut)
	}
	if pages, cut := FirstPages(text, 2); !cut || len(pages) != 2 || pages[1] != all[1] {
		t.Errorf("%d pages, cut: %v", len(pages), cut)
	}
	if pages, cut := FirstPages("text", 0); !cut || len(pages) != 0 {
		t.Errorf("%d pages, cut: %v", len(pages), cut)
	}
	if pages, cut := FirstPages(" ", 0); cut || len(pages) != 0 {
		t.Errorf("%d pages of nothing, cut: %v", len(pages), cut)
	}
}

// What is made to be slow to read takes about as long as other text of its size: each of these took between ten seconds
// and four minutes when it went to the parser as it is.
func TestHostileTextIsRenderedInTime(t *testing.T) {
	ordinary := renderTime(t, strings.Repeat("some **words** of `text`\n\n", 16_000))
	for name, text := range map[string]string{
		"quotes":      strings.Repeat("> ", 100_000) + "x",
		"lists":       strings.Repeat("- ", 100_000) + "x",
		"links":       strings.Repeat("[a](", 100_000),
		"emphasis":    strings.Repeat("*a_ ", 80_000),
		"headings":    "# " + strings.Repeat("*a_ ", 80_000),
		"many lines":  strings.Repeat("*a_ \n", 80_000),
		"cells":       "|a|\n|-|\n|" + strings.Repeat("*a_ ", 80_000),
		"definitions": strings.Repeat("[a]: /b\n", 40_000),
	} {
		if took := renderTime(t, text); took > 40*ordinary {
			t.Errorf("%s took %v, ordinary text %v", name, took, ordinary)
		}
	}
}

func renderTime(t *testing.T, text string) time.Duration {
	t.Helper()
	begin := time.Now()
	if len(Markdown(text)) == 0 {
		t.Error("no pages")
	}
	return time.Since(begin)
}

// markdownTexts makes text out of what Markdown and Slack give a meaning.
func markdownTexts() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"word ", "a", " ", "\n", "\n\n", "\n- ", "\n  - ", "\n1. ", "\n> ", "\n# ", "\n```\n", "\n~~~go\n", "```", "`", "``",
			"*", "**", "_", "~~", "~", "\n|a|b|\n|-|-|\n|c|d|\n", "|", "[x](https://x.io)", "[y.com](http://x.io)", "[z](", ")", "![", "]", "[", "<", ">", "&",
			"&amp;", "&#8238;", "<!channel>", "@here ", "<@U1>", "<br>", "<b>", "\n<div>\n", "\n---\n", "\\", "\t", "    ", "\n    ", "https://x.io/a&b ", "me@x.io",
			"日本語", "👨‍👩‍👧", "e\u0301", "🇩🇪", "\u202e", "\u200b", "\u00a0", ":tada:", "\n- [ ] ", "\n[r]: /u\n"}),
		rapid.String(),
		rapid.Map(rapid.IntRange(1, 4000), func(n int) string { return strings.Repeat("x", n) }),
		rapid.Map(rapid.IntRange(1, 500), func(n int) string { return strings.Repeat("wörd & ", n) }),
		rapid.Map(rapid.IntRange(1, 200), func(n int) string { return strings.Repeat("line **of** text\n", n) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 60), func(p []string) string { return strings.Join(p, "") })
}

func TestAnyTextBecomesGoodPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := markdownTexts().Draw(t, "text")
		checkPages(t, text, PageSize)
		checkPages(t, text, 300)
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{"# a\n**b** `c`", "```\nx\n", "|a|\n|-|\n|b|", "- [ ] a\n  > b", "[a](https://b.io) <!here>", "a*b_c~d`e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkPages(t, text, PageSize)
		checkPages(t, text, 300)
	})
}

var (
	validToken     = regexp.MustCompile("<(?i:https?://|mailto:)[^<>|\\s`]+(\\|[^<>\n]*)?>")
	validEntity    = regexp.MustCompile(`&(amp|lt|gt);`)
	quotePattern   = regexp.MustCompile(`(?m)^>( |$)`)
	addressPattern = regexp.MustCompile(`<[^<>|]*[|>]`)
	labelPattern   = regexp.MustCompile(`<[^<>|]*\|([^<>]*)>`)
	mentionPattern = regexp.MustCompile(`(?i)@(channel|here|everyone)`)
	codePattern    = regexp.MustCompile("(?s)```\n.*?\n```|`[^`\n]*`")
)

// checkPages holds what every text becomes to what is promised of it.
func checkPages(t rapid.TB, text string, limit int) {
	t.Helper()
	pages := paginate(parseChunks(text, limit), limit)
	for _, p := range pages {
		checkPage(t, p, limit)
	}
	// On one page of any size, the text is not cut at all; each word of it is on the pages.
	whole := paginate(parseChunks(text, 1<<30), 1<<30)
	if len(whole) > 1 {
		t.Fatalf("%d pages without a limit", len(whole))
	}
	rest := readableText(pages)
	for _, r := range readableText(whole) {
		i := strings.IndexRune(rest, r)
		if i < 0 {
			t.Fatalf("%q lost %q of\n%q\nin\n%q", text, r, readableText(whole), readableText(pages))
		}
		rest = rest[i+utf8.RuneLen(r):]
	}
}

func checkPage(t rapid.TB, p Page, limit int) {
	t.Helper()
	if n := utf16Len(p.Text); n > limit || strings.TrimSpace(p.Text) == "" || !utf8.ValidString(p.Text) {
		t.Fatalf("a page of %d characters: %q", n, p.Text)
	}
	fences := 0
	for _, line := range strings.Split(p.Text, "\n") {
		if line == fence {
			fences++
		} else if strings.Contains(line, fence) {
			t.Fatalf("a fence within the line %q", line)
		}
	}
	if fences%2 != 0 {
		t.Fatalf("a block of code is open: %q", p.Text)
	}
	for _, r := range p.Text {
		if unicode.Is(unicode.Bidi_Control, r) || r == '\u202e' || unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Fatalf("%U in %q", r, p.Text)
		}
	}
	rest := validEntity.ReplaceAllString(validToken.ReplaceAllString(quotePattern.ReplaceAllString(p.Text, ""), ""), "")
	if strings.ContainsAny(rest, "<>&") {
		t.Fatalf("something is not escaped in %q", p.Text)
	}
	if prose := codePattern.ReplaceAllString(addressPattern.ReplaceAllString(p.Text, "<"), ""); mentionPattern.MatchString(prose) || strings.Contains(prose, "`") {
		t.Fatalf("a mention or an open mark in %q", p.Text)
	}
	if limit > MaxSection {
		return
	}
	m, err := Post{Text: p.Text}.Render()
	if err != nil || len(m.Blocks) != 1 || m.Fallback != p.Text {
		t.Fatalf("as a post: %d blocks, %v", len(m.Blocks), err)
	}
}

var markStripper = strings.NewReplacer(wordBreak, "", "*", "", "_", "", "~", "", "`", "", "∗", "", "ˍ", "", "∼", "", "ˋ", "", "|", "", "(", "", ")", "")

// readableText is what is left of pages without white space, marks, and links' addresses where there is a label.
func readableText(pages []Page) string {
	var b strings.Builder
	for _, p := range pages {
		text := labelPattern.ReplaceAllString(p.Text, "$1")
		text = quotePattern.ReplaceAllString(text, "")
		b.WriteString(strings.Join(strings.Fields(markStripper.Replace(text)), ""))
	}
	return b.String()
}

// Every word that an agent writes, in whatever structure, is there, in order, and once.
func TestNoWordIsLost(t *testing.T) {
	t.Parallel()
	shapes := []string{"%s\n\n", "# %s\n\n", "**%s** ", "*%s* ", "~~%s~~ ", "`%s` ", "- %s\n", "- a\n  - %s\n", "1. %s\n", "- [x] %s\n", "> %s\n", "```\n%s\n```\n",
		"    %s\n\n", "[%s](https://x.io) ", "[%s](x) ", "<b>%s</b>\n", "<div>%s\n\n", "\n|h|\n|-|\n|%s|\n\n", "\n|h|\n|-|\n|a|%s|\n\n", "[%s]: x\n\n", "%s\n---\n", "\n[^1]: %s\n\n", "%s\n"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		n := rapid.IntRange(0, 200).Draw(t, "words")
		for i := range n {
			fmt.Fprintf(&b, rapid.SampledFrom(shapes).Draw(t, "shape"), fmt.Sprintf("w%dw", i))
		}
		var texts []string
		for _, p := range Markdown(b.String()) {
			texts = append(texts, p.Text)
		}
		rest := strings.Join(texts, "\n")
		for i := range n {
			word := fmt.Sprintf("w%dw", i)
			if strings.Count(strings.Join(texts, "\n"), word) != 1 {
				t.Fatalf("%s is not there once:\n%s\n→\n%s", word, b.String(), strings.Join(texts, "\n"))
			}
			at := strings.Index(rest, word)
			if at < 0 {
				t.Fatalf("%s is out of order:\n%s\n→\n%s", word, b.String(), strings.Join(texts, "\n"))
			}
			rest = rest[at:]
		}
	})
}

// What is seen as one character is on one page, and on one line.
func TestCharactersStayWhole(t *testing.T) {
	t.Parallel()
	const family = "👨‍👩‍👧"
	for _, text := range []string{strings.Repeat(family, 3000), "```\n" + strings.Repeat(family, 3000) + "\n```", "**" + strings.Repeat("x"+family, 3000) + "**"} {
		n := 0
		for _, p := range Markdown(text) {
			for clusters := uniseg.NewGraphemes(p.Text); clusters.Next(); {
				if s := clusters.Str(); s == family {
					n++
				} else if len(s) > 3 {
					t.Fatalf("a cut character %q", s)
				}
			}
		}
		if n != 3000 {
			t.Errorf("%d of 3000", n)
		}
	}
}

func BenchmarkMarkdown(b *testing.B) {
	text, err := os.ReadFile("testdata/markdown/review.md")
	if err != nil {
		b.Fatal(err)
	}
	long := strings.Repeat(string(text)+"\n", 400_000/len(text)+1)[:400_000]
	b.SetBytes(int64(len(long)))
	b.ReportAllocs()
	for b.Loop() {
		if pages, cut := FirstPages(long, 5); len(pages) != 5 || !cut {
			b.Fatal(len(pages))
		}
	}
}

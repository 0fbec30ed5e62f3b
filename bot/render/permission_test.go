package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"the-loop/bot/render/visible"
	"the-loop/sessions"
)

func TestAPermissionRequestIsShownAsText(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]sessions.PermissionRequest{
		"The agent asks to use *Bash* in `/src`\n```\nrm -rf ./x &amp;&amp; echo &lt;@U1&gt; *b*\n```\nIt says: `clear *up*`": {
			Tool: "Bash", Command: "rm -rf ./x && echo <@U1> *b*", Cwd: "/src", Explanation: "clear *up*", Decidable: true},
		"The agent asks to use *Write*\nFile: `/etc/x`\n```\n{\n  \"content\": \"a\"\n}\n```": {
			Tool: "Write", File: "/etc/x", Input: "{\n  \"content\": \"a\"\n}", Decidable: true},
		"The agent asks: *ExitPlanMode*":    {Tool: "ExitPlanMode"},
		"The agent asks to use `mcp__a__b`": {Tool: "mcp__a__b", Decidable: true},
	} {
		if got, whole := PermissionText(a, "attach"); got != want || !whole {
			t.Errorf("whole: %v, got\n%s\nwant\n%s", whole, got, want)
		}
	}
}

// TestInvisibleCharactersOfAPermissionRequestAreShown has what turns the order of characters around, and what cannot be seen, in each part of it.
func TestInvisibleCharactersOfAPermissionRequestAreShown(t *testing.T) {
	t.Parallel()
	got, _ := PermissionText(sessions.PermissionRequest{Tool: "Ba\u202esh", Command: "echo \u202egnp.x\u200b\x1b[8mrm -rf ~\r\nls", Decidable: true}, "attach")
	for _, want := range []string{"⟨U+202E⟩gnp.x⟨U+200B⟩⟨U+001B⟩[8mrm -rf ~⟨U+000D⟩\nls", "`Ba⟨U+202E⟩sh`"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	for _, r := range "\u115f\u1160\u3164\uffa0\u2800\u034f\ufe0f\U000e0100\U000e0041\u180b\ue000\U000f0000\u0378\U0003fffe" +
		"\u061c\u200e\u202a\u2066\u200b\u200d\u2060\ufeff\u00ad\u00a0\u2003\u3000\u1680\u202f\u2028\u2029\u17b4\ufffc\ufff9\x00\x7f\u0085\t" {
		number := fmt.Sprintf("⟨U+%04X⟩", r)
		for part, a := range map[string]sessions.PermissionRequest{
			"tool": {Tool: "x" + string(r) + "y"}, "folder": {Tool: "T", Cwd: "/x" + string(r) + "y"}, "file": {Tool: "T", File: "/x" + string(r) + "y"},
			"command": {Tool: "T", Command: "x" + string(r) + "y"}, "why": {Tool: "T", Explanation: "x" + string(r) + "y"}, "input": {Tool: "T", Input: "x" + string(r) + "y"},
			"what it leads to": {Tool: "T", File: "/f", FileTargets: []string{"/x" + string(r) + "y"}},
		} {
			if got, _ := PermissionText(a, "attach"); !strings.Contains(got, "x"+number+"y") {
				t.Errorf("U+%04X in the %s: %q", r, part, got)
			}
		}
	}
}

func TestWhiteSpaceOfAPathIsShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/a b":            "/a b",
		"/a  b":           "/a⟨U+0020×2⟩b",
		" /a":             "⟨U+0020⟩/a",
		"/a ":             "/a⟨U+0020⟩",
		"/a\n\nb":         "/a⟨U+000A×2⟩b",
		"/a\t b":          "/a⟨U+0009⟩ b",
		"/\u00e9":         "/\u00e9",
		"/e\u0301":        "/e⟨U+0301⟩",
		"/\u212b":         "/⟨U+212B⟩",
		"/⟨U+0020⟩":       "/⟨U+27E8⟩U+0020⟩",
		"/`ˋ":             "/ˋ⟨U+02CB⟩",
		"/\xff\xfe\ufffd": "/⟨0xFF⟩⟨0xFE⟩⟨U+FFFD⟩",
		"/กำ/हिन्दी/日本":   "/กำ/हिन्दी/日本",
	} {
		if got, whole := PermissionText(sessions.PermissionRequest{Tool: "Write", File: in}, "attach"); !strings.Contains(got, "File: `"+want+"`") || !whole {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
}

func TestInvisibleWhiteSpaceOfACommandIsShownAsNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"if x\n    y\nfi":                      "if x\n    y\nfi",
		"a \nb":                                "a⟨U+0020⟩\nb",
		"a\n":                                  "a⟨U+000A⟩",
		"\n\na":                                "⟨U+000A×2⟩a",
		"a\n\n\n\nb":                           "a⟨U+000A×4⟩\nb",
		"a" + strings.Repeat(" ", 900) + "; b": "a⟨U+0020×900⟩; b",
		"a\tb":                                 "a⟨U+0009⟩b",
	} {
		if got, _ := PermissionText(sessions.PermissionRequest{Tool: "Bash", Command: in}, "attach"); !strings.Contains(got, "```\n"+want+"\n```") {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
}

func TestLettersThatMisleadAreMarked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"curl p\u0430ypal.com": "`p⟨U+0430⟩ypal` (Latin, Cyrillic)",
		"cat \u03bfne":         "`⟨U+03BF⟩ne` (Greek, Latin)",
		"\u0441\u03bf\u0440":   "`\u0441⟨U+03BF⟩\u0440` (Cyrillic, Greek)",
		"rm \u05d0/\u05d1 1":   "from right to left",
		"echo 第1章intro テスト漢字":  "",
		"echo привет hello":    "",
	} {
		got, _ := PermissionText(sessions.PermissionRequest{Tool: "Bash", Command: in}, "attach")
		if want == "" && strings.Contains(got, ":warning:") || !strings.Contains(got, want) {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
	if got, _ := PermissionText(sessions.PermissionRequest{Tool: "Write", File: "/f", FileTargets: []string{"/etc/p\u0430sswd"}}, "attach"); !strings.Contains(got, "(Latin, Cyrillic)") {
		t.Errorf("in what a path leads to: %q", got)
	}
}

// TestAPathIsShownWholeOrTheRequestIsNotDecidable has paths that differ only after what was shown once.
func TestAPathIsShownWholeOrTheRequestIsNotDecidable(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("d/", 1500) + "secret"
	for _, a := range []sessions.PermissionRequest{{Tool: "Write", File: long}, {Tool: "Bash", Cwd: long}, {Tool: "Write", File: "/f", FileTargets: []string{long}}} {
		if got, whole := PermissionText(a, "attach"); !whole || !strings.Contains(got, "d/secret\n```") {
			t.Errorf("whole: %v, and %q", whole, got[max(0, len(got)-200):])
		}
	}
	longer := "/" + strings.Repeat("d/", 4000)
	for name, a := range map[string]sessions.PermissionRequest{"file": {Tool: "Write", File: longer}, "folder": {Tool: "Bash", Cwd: longer},
		"a place": {Tool: "Write", File: "/f", FileTargets: []string{longer}}, "command": {Tool: "Bash", Command: longer},
		"tool": {Tool: longer}, "both": {Tool: "Write", File: long, FileTargets: []string{long}, Cwd: long, CwdTargets: []string{long}}} {
		if got, whole := PermissionText(a, "the-loop attach x"); whole || !strings.Contains(got, "not decided here") || !strings.Contains(got, "`the-loop attach x`") {
			t.Errorf("%s: whole: %v, and %q", name, whole, got[max(0, len(got)-200):])
		}
	}
	if got, whole := PermissionText(sessions.PermissionRequest{Tool: "Write", File: "x", Unresolved: true}, "attach"); whole || !strings.Contains(got, "where its paths lead to") {
		t.Errorf("whole: %v, and %q", whole, got)
	}
}

func TestTheTargetOfAPathIsShownBesideIt(t *testing.T) {
	t.Parallel()
	got, _ := PermissionText(sessions.PermissionRequest{Tool: "Write", Cwd: "/src", CwdTargets: []string{"/mnt/src"}, File: "l/../x", FileTargets: []string{"/mnt/src/x", "/etc/x"}}, "attach")
	want := "The agent asks: *Write* in `/src`\nwhich leads to `/mnt/src`\nFile: `l/../x`\nwhich leads to `/mnt/src/x`\n" +
		"or, where “..” is taken after links are followed, to `/etc/x`"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// spoofingTexts makes text out of what hides, what looks like something else, and what this package writes itself.
func spoofingTexts() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"a", " ", "  ", "\n", "\t", "`", "```", "ˋ", "⟨", "⟩", "⟨U+0020⟩", "⟨U+0020×2⟩", "×", "U+0020", "e\u0301", "\u00e9",
		"\u0301", "\u3164", "\u2800", "\u200b", "\ufe0f", "\u202e", "\xff", "\ufffd", "<", "&lt;", "&", "\u0915\u093c", "\u0958", "\u1100\u1161", "\uac00", "\u0e33",
		"\u0323\u0301", "\u0301\u0323", "a\u0323", "\r\n", "~", "/", ".."}), rapid.String(), rapid.Map(rapid.Rune(), func(r rune) string { return string(r) }))
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(p []string) string { return strings.Join(p, "") })
}

// Everything that is written of a text can be seen, and no two texts look the same: also not to a reader that takes all ways
// to write a character for one, and blanks at the end of lines for none.
func TestNoTwoTextsLookTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := spoofingTexts().Draw(t, "one")
		other := rapid.OneOf(spoofingTexts(), rapid.Just(norm.NFC.String(one)), rapid.Just(norm.NFD.String(one)), rapid.Just(strings.TrimSpace(one)),
			rapid.Just(strings.Join(strings.Fields(one), " ")), rapid.Just(sessions.Clean(one)), rapid.Just(strings.ToValidUTF8(one, "\ufffd"))).Draw(t, "other")
		for _, inline := range []bool{true, false} {
			a, b := visibleForm(t, one, inline), visibleForm(t, other, inline)
			if (a == b) != (one == other) {
				t.Fatalf("inline: %v, %+q and %+q are both seen as %+q", inline, one, other, a)
			}
			if again := parseShown(t, visible.Show(one, inline)); again != one {
				t.Fatalf("inline: %v, %+q is read as %+q", inline, one, again)
			}
		}
	})
}

// visibleForm is what somebody sees of a text in a question.
func visibleForm(t *rapid.T, text string, inline bool) string {
	shown := Preformatted(visible.Show(text, inline))
	if inline {
		shown = InlineCode(visible.Show(text, inline))
	}
	for _, r := range shown {
		if r != '\n' && (!sessions.IsVisible(r) || r == '\u2800') {
			t.Fatalf("U+%04X of %+q is in %+q", r, text, shown)
		}
	}
	lines := strings.Split(norm.NFC.String(shown), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

var numberPattern = regexp.MustCompile("⟨(U\\+|0x)([0-9A-F]+)(?:×([0-9]+))?⟩(\n?)")

// parseShown reads a text back from how it is shown.
func parseShown(t *rapid.T, shown string) string {
	return numberPattern.ReplaceAllStringFunc(shown, func(s string) string {
		m := numberPattern.FindStringSubmatch(s)
		code, err := strconv.ParseInt(m[2], 16, 32)
		times := 1
		if m[3] != "" && err == nil {
			times, err = strconv.Atoi(m[3])
		}
		if err != nil {
			t.Fatal(err)
		}
		one := string(rune(code))
		if m[1] == "0x" {
			one = string([]byte{byte(code)})
		}
		if code == '\n' && m[1] == "U+" {
			m[4] = "" // it only ends the line on which the number stands
		}
		return strings.Repeat(one, times) + m[4]
	})
}

// TestAPermissionRequestThatIsCutSaysSo has questions of any length and any text: what became of them still fits below.
func TestAPermissionRequestThatIsCutSaysSo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return strings.Repeat(rapid.SampledFrom([]string{"", "a", "<", "&", "`", "\u202e", "\u202ex", "😀", "wo rd\n", "p\u0430y "}).Draw(t, name), rapid.IntRange(0, 9000).Draw(t, "times"))
		}
		a := sessions.PermissionRequest{Tool: text("tool"), Command: text("command"), File: text("file"), Cwd: text("cwd"), Explanation: text("why"), Input: text("input"), Decidable: true,
			CwdTargets: []string{text("cwdAt")}, FileTargets: []string{text("fileAt"), text("fileAt")}}
		got, whole := PermissionText(a, "the-loop attach helper")
		if n := utf16Len(got); n > MaxMessage-500 {
			t.Fatalf("%d characters", n)
		}
		for what, part := range map[string]string{"tool": a.Tool, "file": a.File, "cwd": a.Cwd, "cwdAt": a.CwdTargets[0], "fileAt": a.FileTargets[0]} {
			if path := Escape(strings.ReplaceAll(visible.Show(part, true), "`", "ˋ")); whole && (what == "tool" || a.File != "" && a.Cwd != "") && !strings.Contains(strings.ReplaceAll(got, "`", "ˋ"), path) {
				t.Fatalf("the %s is not there", what)
			}
		}
		if command := Preformatted(visible.Show(a.Command, false)); whole && a.Command != "" && !strings.Contains(got, command) {
			t.Fatal("the command is not there")
		}
		if whole == strings.Contains(got, "not decided here") {
			t.Fatalf("whole: %v; %q", whole, got[max(0, len(got)-300):])
		}
		if _, err := (Post{Text: got + "\nAllowed."}).Render(); err != nil {
			t.Fatal(err)
		}
	})
}

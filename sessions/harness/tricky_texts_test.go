package harness

import (
	"fmt"
	"strings"
	"testing"
)

// trickyText is a text that people send and that some agent might take for something else, or rewrite.
type trickyText struct {
	index int // in the table
	kind  string
	text  string
	mark  string // a word in it that no other text has; empty: the whole text is to be heard
}

// trickyTexts are 200 and more texts, by kind. Each "%" stands for a word of its own, by which the text is known again.
func trickyTexts(dir string) []trickyText {
	var all []trickyText
	for _, group := range trickyGroups(dir) {
		for _, text := range group.texts {
			h := trickyText{index: len(all), kind: group.kind, text: text}
			if strings.Contains(text, "%") {
				h.mark = fmt.Sprintf("t%03d", len(all))
				h.text = strings.Replace(text, "%", h.mark, 1)
			}
			all = append(all, h)
		}
	}
	return all
}

// trickyShare is the part of the texts that the nth of as many agents takes, if each takes one in so many of every kind.
func trickyShare(texts []trickyText, nth, of int) []trickyText {
	var share []trickyText
	seen := map[string]int{}
	for _, h := range texts {
		if seen[h.kind]++; (seen[h.kind]-1)%of == nth {
			share = append(share, h)
		}
	}
	return share
}

// However the texts are shared out, each is taken by somebody, and each has some of every kind.
func TestTrickyTextsAreSharedOutWhole(t *testing.T) {
	t.Parallel()
	all := trickyTexts("/dir")
	kinds := map[string]bool{}
	for _, h := range all {
		kinds[h.kind] = true
	}
	for of := 1; of <= 4; of++ {
		taken := map[int]bool{}
		for nth := range of {
			has := map[string]bool{}
			for _, h := range trickyShare(all, nth, of) {
				taken[h.index], has[h.kind] = true, true
			}
			if len(has) != len(kinds) {
				t.Errorf("share %d of %d has %d kinds of %d", nth, of, len(has), len(kinds))
			}
		}
		if len(taken) != len(all) || len(all) < 200 {
			t.Errorf("of %d: %d texts of %d are taken", of, len(taken), len(all))
		}
	}
}

// imagePaths is the kind of the texts that name files.
const imagePaths = "paths"

type trickyGroup struct {
	kind  string
	texts []string
}

func trickyGroups(dir string) []trickyGroup {
	return append(append(append(unicodeGroups(), syntaxGroups()...), shapeGroups()...), pathGroups(dir)...)
}

// unicodeGroups are forms of Unicode and scripts.
func unicodeGroups() []trickyGroup {
	return []trickyGroup{
		{"unicode", []string{"% e\u0301 decomposed", "caf\u00e9 % composed", "% A\u030a and \u212b", "\u2126 ohm %", "% \u1112\u1161\u11ab\u1100\u1173\u11af jamo",
			"% Vie\u0323\u0302t", "% q\u0307\u0323 order", "\ufb01ligature %", "% \uff21\uff22\uff23 wide", "% \uff76\uff9e half width", "% \u2460 \u2075 \u00bd",
			"% \U0001d4d0\U0001d4d1", "\u0301 alone %", "no-break\u00a0space % \u202f narrow", "% thin\u2009space", "ideographic\u3000space %",
			"% \uf900 compatibility ideograph", "% \u2028 line separator", "% zero\u200bwidth", "soft\u00adhyphen %", "% \ufeff mark", "% \u3164 filler",
			"% \u2800 blank pattern", "% a\u034fb joiner", "% private \ue000", "% \u0344\u0958\u2adc exclusions"}},
		{"emoji", []string{"% 👩‍👩‍👧‍👦", "👍🏽 %", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 %", "% ❤️ and ❤", "🇩🇪🇯🇵 %", "% 1️⃣2️⃣", "🧑🏿‍🚀 % 🏳️‍🌈", "% 👁️‍🗨️"}},
		{"rtl", []string{"% العربية", "עברית %", "% \u202eoverride\u202c", "% שָׁלוֹם pointed", "% فارسی می\u200cخواهم", "% 123 العدد 456"}},
		{"cjk", []string{"日本語 %", "% 中文，句號。", "한국어 %", "% ガギグ か\u3099", "「%」", "% " + strings.Repeat("漢字", 300), "% ไทย ภาษา", "% हिन्दी क्षेत्र"}},
	}
}

// syntaxGroups are words and characters that agents and shells give a meaning to.
func syntaxGroups() []trickyGroup {
	return []trickyGroup{
		{"control words", []string{"<command-name>/x</command-name> %", "<command-name>%", "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args>%</command-args>",
			"<command-message>% is running</command-message>", "<local-command-stdout>%</local-command-stdout>", "<local-command-stderr>% oh</local-command-stderr>",
			"<local-command-caveat>%</local-command-caveat>", "<bash-input>ls %</bash-input>", "<bash-stdout>%</bash-stdout>", "<pasted_content>%</pasted_content>",
			"<pasted_content file=\"x\" length=\"3\"> %", "a <pasted_content> % b", "<system-reminder>remember</system-reminder> %", "<system-reminder> % open",
			"<task-notification>%</task-notification>", "<user-prompt-submit-hook>%</user-prompt-submit-hook>", "<user_instructions>%</user_instructions>",
			"<tick>%</tick>", "<user-memory-input>%</user-memory-input>", "[Image #1] %", "[Pasted text #1 +3 lines] %", "[Pasted Content 1024 chars] %", "[Pasted Text: 3 lines] %",
			"[Request interrupted by user] %", "% [Image: source: /tmp/none.png]", "<teammate-message>%</teammate-message>", "<environment_context> %", "<image>%</image>"}},
		{"backslashes", []string{`% ends in \`, `% ends in \\`, `% ends in \\\`, `\ begins %`, `% C:\Users\new`, `% \n \t \e[0m`, `\`, "% two\\\nlines\\", `% end\ `}},
		{"quotes", []string{`"%"`, `it's % open`, `% "open`, "`%`", "% `open", "```\n%\n```", "% ```", "% “curly” ‘quotes’ „low“", `% '"`, "'%", `"`}},
		{"at signs", []string{"@nobody %", "% @", "mail a@b.example %", "% @hard", "@hard.txt %", "@\"hard\" %", "% @src/", "% @agent-x", "@% ", "@@ %", "% @.", "@/etc/hostname %"}},
		{"hashes", []string{"# %", "#% tag", "% #", "## heading %", "% issue #7", "#"}},
		{"dollars", []string{"% $HOME", "$(%)", "% $", "${%}", "$skill %", "% `$x`", "% costs $5"}},
		{"heads", []string{"!touch RAN %", "!", "/", "/help %", "/tmp/% is a path", "?", "? %", "& %", "> quoted %", "- list %", "* star %", "+ plus %", "| pipe %", "~ %", "~/%", ": %", ":q", "exit",
			"quit", "; %", "=1 %", "{ %", "[ %", "( %", "< %", "-- %", "--help %", "-% flag", "\"/x\" %", " / %", "  !touch RAN %", "n", "y", "1", "…", "% ?", "% !", "% /", "% &", "% :", "ultrathink %", "%"}},
	}
}

// shapeGroups are long and many lines, white space, and code.
func shapeGroups() []trickyGroup {
	return []trickyGroup{
		{"white space", []string{"a\ttab %", "\tindented %", "% trailing   ", "% trailing tab\t", "% lines with blanks  \n  and  \n\tmore", "\n\nleading lines %", "% many\n\n\n\nempty", "%   wide   gaps"}},
		{"lines", []string{"%\ntwo", "% one\ntwo\nthree\n", "%" + strings.Repeat("\nline", 12), "%" + strings.Repeat("\nline of a paste", 200), "% " + strings.Repeat("x", 790),
			"% " + strings.Repeat("y", 3000), "% " + strings.Repeat("word ", 2500), "%" + strings.Repeat("\na line of a long paste, with some words", 900),
			"% " + strings.Repeat("é", 2000), "%\n" + strings.Repeat("e\u0301\n", 30)}},
		{"code", []string{`{"a": [1, 2, {"b": "%"}], "c": null}`, "```go\nfunc %() {\n\treturn\n}\n```", "<div class=\"%\">&amp;</div>", "% && rm -rf / || true", "for i in 1 2; do echo %; done",
			"SELECT '%' -- comment", "diff --git a/x b/%\n@@ -1 +1 @@\n-a\n+b", "| a | % |\n|---|---|\n| 1 | 2 |", "https://example.com/%?a=1&b=2#c", "<https://example.com/%|a link>",
			"http://example.com/%.png", "file:///tmp/%.png", "% \u001b[31mred\u001b[0m", "ssh://git@host/%.git", "% %s %d %%"}},
	}
}

// pathGroups are paths as attachments have them, of files in a folder.
func pathGroups(dir string) []trickyGroup {
	return []trickyGroup{
		{imagePaths, []string{"% look\nAttached file: " + dir + "/shot.png", "Attached file: " + dir + "/shot.png\n%", dir + "/shot.png %", "% " + dir + "/shot.png", "% " + dir + "/my shot.png",
			"% '" + dir + "/my shot.png'", "% " + dir + `/my\ shot.png`, "% two " + dir + "/shot.png " + dir + "/other.jpg", "%\nAttached file: " + dir + "/shot.png\nAttached file: " + dir + "/other.jpg",
			"% " + dir + "/none.png", "% " + dir + "/hard.txt", "Attached file: " + dir + "/hard.txt\nAttached file: " + dir + "/doc.pdf %", "% shot.png", "./shot.png %", "% @" + dir + "/shot.png",
			dir + "/shot.png", dir + "/hard.txt", "\"" + dir + "/shot.png\" %", "% bild.JPEG " + dir + "/BILD.JPEG", "Attached file: " + dir + "/my shot.png",
			"% is not shot.png\n" + dir + "/shot.png", "% " + dir + "/none.png " + dir + "/shot.png"}},
	}
}

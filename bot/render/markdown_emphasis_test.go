package render

import (
	"fmt"
	"strings"
	"testing"
)

func joinPages(text string) string {
	var texts []string
	for _, p := range Markdown(text) {
		texts = append(texts, p.Text)
	}
	return strings.ReplaceAll(strings.Join(texts, "\f"), wordBreak, "{}")
}

func TestMarksBesideEveryScript(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"**注意：**正文":            "*注意：*{}正文",
		"正文**「注意」**正文":         "正文{}*「注意」*{}正文",
		"**“注意”**正文":           "*“注意”*{}正文",
		"**注意:**正文":            "*注意:*{}正文",
		"*注意。*正文":              "_注意。_{}正文",
		"~~注意！~~正文":            "~注意！~{}正文",
		"**注意（注）**は、":          "*注意（注）*{}は、",
		"これは**`code`**です":      "これは{}*`code`*{}です",
		"**굵게(bold)**는":        "*굵게(bold)*{}는",
		"**完成✅**正文":            "*完成✅*{}正文",
		"✅**完成。**正文":           "✅{}*完成。*{}正文",
		"**ملاحظة:**نص":        "*ملاحظة:*{}نص",
		"**หมายเหตุ:**ข้อความ": "*หมายเหตุ:*{}ข้อความ",
		"**שימו לב:** טקסט":    "*שימו לב:* טקסט",
		"**Note:**text":        "∗∗Note:∗∗text",
		"**Note:** text":       "*Note:* text",
		"snake_注意_case":        "snake_注意_case",
		"注意 ** 正文 ** 注意":       "注意 ∗∗ 正文 ∗∗ 注意",
		"2*3*4":                "2{}_3_{}4",
		"**注意：正文":              "**注意：正文",
	} {
		if got := joinPages(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// Marks become Slack's, or stay as they are, or are all replaced: within one line there is one kind only.
func TestMarksOfOneLineAreAllReplacedOrNone(t *testing.T) {
	t.Parallel()
	beside := []string{"", " ", "a", "1", "注", "：", "。", "「", "（", "”", "“", ".", ":", "(", ")", "!", "\"", "'", "-", "—", "…", "/", "✅", "❤️", "👨‍👩‍👧", "ن", "ก็", "é", "é", "&", "<", "@"}
	lookalike := map[string]string{"*": "∗", "_": "ˍ", "~": "∼", "`": "ˋ"}
	for _, mark := range []string{"*", "**", "_", "__", "~", "~~", "`", "***"} {
		for _, outer := range beside {
			for _, inner := range beside {
				for _, text := range []string{outer + mark + inner + "x" + mark + "y", outer + mark + "x" + inner + mark + outer + "y", "x" + mark + inner + "注" + inner + mark + outer} {
					got := joinPages(text)
					for written, replaced := range lookalike {
						if strings.Contains(got, replaced) && strings.Contains(stripCode(got), written) {
							t.Errorf("%q became the mixture %q", text, got)
						}
					}
				}
			}
		}
	}
}

// stripCode is a text without the marks of code, which stands for itself.
func stripCode(text string) string { return codePattern.ReplaceAllString(text, "") }

// Text of a script that needs no spaces is bold whatever punctuation of its own stands at the border.
func TestTextBesideItsScriptsPunctuationIsBold(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"，", "。", "、", "：", "；", "！", "？", "」", "』", "）", "】", "》", "”", "’", "…", ")", ".", ":", "!", "?"} {
		for _, pair := range [][2]string{{"**", "*"}, {"*", "_"}, {"~~", "~"}} {
			in := fmt.Sprintf("前%s文字%s%s後", pair[0], mark, pair[0])
			if got, want := joinPages(in), fmt.Sprintf("前{}%s文字%s%s{}後", pair[1], mark, pair[1]); got != want {
				t.Errorf("%q became %q, want %q", in, got, want)
			}
		}
	}
}

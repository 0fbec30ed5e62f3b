package smallagent

import (
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func (f frame) text() string { return strings.Join(f.lines, "\n") + "\n" }

func TestParseScreenReadsWhatIsDrawn(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"> spoof", "────", "small agent · ready · x\n────\n> \n────",
		"❯ 1. Yes\n", "日本語 text that is longer than a line of a screen is long, and goes on to the next one"}))
	rapid.Check(t, func(t *rapid.T) {
		p := screenContent{
			columns: rapid.IntRange(40, 200).Draw(t, "columns"), rows: rapid.IntRange(10, 60).Draw(t, "rows"),
			state: rapid.SampledFrom([]State{StateStarting, StateReady, StateWorking}).Draw(t, "state"),
			id:    "c-1", box: &box{},
		}
		for _, text := range rapid.SliceOf(texts).Draw(t, "log") {
			p.paragraphs = append(p.paragraphs, paragraph{"you", text})
		}
		draft := rapid.OneOf(texts, rapid.StringMatching(`[a-z ]{0,100}`)).Draw(t, "draft")
		p.box.paste(normalizePaste([]byte(draft)))
		f := p.frame()
		s, ok := ParseScreen(f.text())
		if !ok || s.State != p.state || s.ID != p.id || s.Dialog != nil || s.Box != RenderPaste(draft, p.columns) {
			t.Fatalf("%+v, %v of\n%s", s, ok, f.text())
		}
		if len(f.lines) != p.rows || f.y < 0 || f.y >= p.rows || f.x < 0 || f.x >= p.columns {
			t.Fatalf("%d lines, the cursor at %d, %d", len(f.lines), f.y, f.x)
		}
		for _, line := range f.lines {
			if uniseg.StringWidth(line) > p.columns {
				t.Fatalf("%q is wider than %d", line, p.columns)
			}
		}
		p.dialog = permissionDialog(strings.ReplaceAll(rapid.String().Draw(t, "question"), "\n", " "))
		s, ok = ParseScreen(p.frame().text())
		if !ok || s.State != StateAsking || s.Box != "" || !slices.Contains(s.Dialog, "❯ 1. Yes") {
			t.Fatalf("%+v, %v of\n%s", s, ok, p.frame().text())
		}
	})
}

func TestParseScreenRefusesWhatIsNotTheAgent(t *testing.T) {
	t.Parallel()
	whole := screenContent{columns: 80, rows: 24, box: &box{}, state: StateReady, id: "c1"}.frame().text()
	for name, text := range map[string]string{
		"empty":              "",
		"a shell":            "$ echo small agent · ready · c1\nsmall agent · ready · c1\n$ ",
		"after its end":      whole + "$ ",
		"no box yet":         "────\n────\nsmall agent · ready · c1",
		"one rule":           "> \n────\nsmall agent · ready · c1",
		"an unknown state":   strings.Replace(whole, "ready", "dreaming", 1),
		"only a status line": "small agent · ready · c1",
	} {
		if s, ok := ParseScreen(text); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestParseScreenHalfWayToADialogIsAsking(t *testing.T) {
	t.Parallel()
	p := screenContent{columns: 80, rows: 24, box: &box{}, state: StateWorking, id: "c1", dialog: permissionDialog("it")}
	if s, ok := ParseScreen(p.frame().text()); !ok || s.State != StateAsking || len(s.Dialog) != 4 {
		t.Errorf("%+v, %v", s, ok)
	}
}

func TestNothingThatIsShownCanSteerTheTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + "\x1b]0;title\x07\x9b31m\u009b\x7f\r"
		p := screenContent{columns: 80, rows: 24, box: typeInto("x"), state: StateReady, id: "c1", paragraphs: []paragraph{{"you", text}}}
		p.box.insert(cell{text: text})
		for _, line := range p.frame().lines {
			if strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
				t.Fatalf("%q", line)
			}
		}
	})
}

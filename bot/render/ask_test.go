package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"the-loop/sessions"
)

func TestAQuestionIsShownAsText(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]sessions.Ask{
		"The agent asks to use *Bash* in `/src`\n```\nrm -rf ./x &amp;&amp; echo &lt;@U1&gt; *b*\n```\nIt says: clear ∗up∗": {
			Tool: "Bash", Command: "rm -rf ./x && echo <@U1> *b*", Cwd: "/src", Why: "clear *up*", Permit: true},
		"The agent asks to use *Write*\nFile: `/etc/x`\n```\n{\n  \"content\": \"a\"\n}\n```": {
			Tool: "Write", File: "/etc/x", Input: "{\n  \"content\": \"a\"\n}", Permit: true},
		"The agent asks: *ExitPlanMode*": {Tool: "ExitPlanMode"},
	} {
		if got := Ask(a, "attach"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestNothingHidesInAQuestion has what turns the order of characters around, and what cannot be seen.
func TestNothingHidesInAQuestion(t *testing.T) {
	t.Parallel()
	got := Ask(sessions.Ask{Tool: "Ba\u202esh", Command: "echo \u202egnp.x\u200b\x1b[8mrm -rf ~\r\nls", Permit: true}, "attach")
	for _, want := range []string{"&lt;U+202E&gt;gnp.x&lt;U+200B&gt;&lt;U+001B&gt;[8mrm -rf ~&lt;U+000D&gt;\nls", "*Ba&lt;U+202E&gt;sh*"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.ContainsAny(got, "\u202e\u200b\x1b\r") {
		t.Errorf("it holds what cannot be seen: %q", got)
	}
}

// TestAQuestionThatIsCutSaysSo has questions of any length and any text: what became of them still fits below.
func TestAQuestionThatIsCutSaysSo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return strings.Repeat(rapid.SampledFrom([]string{"", "a", "<", "&", "`", "\u202e", "😀", "wo rd\n"}).Draw(t, name), rapid.IntRange(0, 9000).Draw(t, "times"))
		}
		a := sessions.Ask{Tool: text("tool"), Command: text("command"), File: text("file"), Cwd: text("cwd"), Why: text("why"), Input: text("input"), Permit: true}
		got := Ask(a, "the-loop attach helper")
		if n := units(got); n > MaxMessage-500 {
			t.Fatalf("%d characters", n)
		}
		if cut := units(Escape(seen(a.Command))) > maxCommand || units(Escape(seen(a.Input))) > maxInput; cut != strings.Contains(got, "This is only the beginning") {
			t.Fatalf("cut: %v; %q", cut, got[max(0, len(got)-300):])
		}
		if _, err := (Post{Text: got + "\nAllowed."}).Render(); err != nil {
			t.Fatal(err)
		}
	})
}

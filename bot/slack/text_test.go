package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
	"the-loop/sessions"
)

var withoutNames = nameLookup{TextRules: TextRules{DisplayName: sessions.DisplayName, Handle: sessions.Handle, Clean: sessions.Clean}}

var withNames = nameLookup{
	TextRules: withoutNames.TextRules,
	member:    func(id string) string { return map[string]string{"U1": "Ann Lee"}[id] },
	channel:   func(id string) string { return map[string]string{"C1": "general"}[id] },
}

func TestTextTokensBecomeWhatWasTyped(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]string{
		"<@U1> hi":                      "@Ann Lee hi",
		"<@U9>":                         "@U9",
		"<@U9|bob>":                     "@U9", // who is not listed is shown by his id
		"in <#C1>":                      "in #general",
		"in <#C1|>":                     "in #general",
		"in <#C9|ops>":                  "in #ops",
		"<#C9|>":                        "#C9",
		"<!subteam^S1|@devs>":           "@devs",
		"<!subteam^S1>":                 "@S1",
		"<!here> <!channel|channel>":    "@here @channel",
		"<!everyone>":                   "@everyone",
		"<!date^1^{date}|3 May &amp;>":  "3 May &",
		"<!new|thing>":                  "thing",
		"<https://x.io/a?b=1&amp;c=2>":  "https://x.io/a?b=1&c=2",
		"<http://x.io|x.io>":            "x.io",
		"<https://x.io/|x.io>":          "x.io",
		"<https://e.vil|https://g.ood>": "[https://g.ood](https://e.vil)",
		"<https://x.io|the docs>":       "[the docs](https://x.io)",
		"<mailto:a@b.c|a@b.c>":          "a@b.c",
		"<tel:+49123|+49123>":           "+49123",
		"`<https://x.io>`":              "`https://x.io`",
		"a &lt;b&gt; &amp; c":           "a <b> & c",
		"&amp;lt;":                      "&lt;", // vellum-ai/vellum-assistant#38770: decoded once, after the tokens
		"&amp;amp;lt;@U1&gt;":           "&amp;lt;@U1>",
		"&lt;@U1&gt;":                   "<@U1>",
		"< not a token":                 "< not a token",
		"<>":                            "<>",
		"“smart” — quotes stay":         "“smart” — quotes stay",
		"&quot;&#39;":                   "&quot;&#39;",
	} {
		if got := decodeText(wire, withNames); got != want {
			t.Errorf("typedFromText(%q) = %q, want %q", wire, got, want)
		}
	}
}

// RocketChat/Rocket.Chat#6782, wee-slack#186: < > & come back as they were typed.
func TestAnyTypedTextSurvivesSlacksEscaping(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[&<>;a-z@#!| ltgamp]{0,60}`)).Draw(t, "text")
		if got := decodeText(render.Escape(text), withNames); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}

func richTextMessage(elements string) message {
	return message{Object: lenientjson.Parse(json.RawMessage(`{"text":"FALLBACK &amp;","blocks":[{"type":"rich_text","elements":[` + elements + `]}]}`))}
}

func TestRichTextBecomesWhatWasTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, elements, want string }{
		{"plain", `{"type":"rich_text_section","elements":[{"type":"text","text":"a <b> & &amp;"}]}`, "a <b> & &amp;"},
		{"names", `{"type":"rich_text_section","elements":[{"type":"user","user_id":"U1"},{"type":"text","text":" "},
			{"type":"channel","channel_id":"C1"},{"type":"text","text":" "},{"type":"broadcast","range":"here"},
			{"type":"text","text":" "},{"type":"usergroup","usergroup_id":"S1"}]}`, "@Ann Lee #general @here @S1"},
		{"marks", `{"type":"rich_text_section","elements":[{"type":"text","text":"b ","style":{"bold":true}},
			{"type":"text","text":"i","style":{"italic":true}},{"type":"text","text":" "},{"type":"text","text":"s","style":{"strike":true}},
			{"type":"text","text":" "},{"type":"text","text":"c","style":{"code":true,"bold":true}},
			{"type":"text","text":" ","style":{"bold":true}}]}`, "*b* _i_ ~s~ *`c`* "},
		{"links", `{"type":"rich_text_section","elements":[{"type":"link","url":"http://x.io","text":"x.io"},{"type":"text","text":" "},
			{"type":"link","url":"https://x.io"},{"type":"text","text":" "},{"type":"link","url":"https://x.io","text":"docs"}]}`,
			"x.io https://x.io [docs](https://x.io)"},
		{"emoji", `{"type":"rich_text_section","elements":[{"type":"emoji","name":"man-woman-girl","unicode":"1f468-200d-1f469-200d-1f467"},
			{"type":"emoji","name":"ours"},{"type":"emoji","name":"+1","unicode":"1f44d-1f3fd"},{"type":"emoji","name":"heart","unicode":"2764-fe0f"},
			{"type":"emoji","name":"esc","unicode":"1b"}]}`, "👨‍👩‍👧:ours:👍🏽❤️:esc:"},
		{"date and color", `{"type":"rich_text_section","elements":[{"type":"date","timestamp":0,"format":"{date}","fallback":"then"},
			{"type":"text","text":" "},{"type":"date","timestamp":0},{"type":"text","text":" "},{"type":"color","value":"#F0F"}]}`,
			"then 1970-01-01T00:00:00Z #F0F"},
		{"lists", `{"type":"rich_text_section","elements":[{"type":"text","text":"do:\n"}]},
			{"type":"rich_text_list","style":"bullet","indent":0,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a"}]}]},
			{"type":"rich_text_list","style":"ordered","indent":1,"offset":2,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x\ny"}]},
			{"type":"rich_text_section","elements":[{"type":"text","text":"z"}]}]},
			{"type":"rich_text_section","elements":[{"type":"text","text":"end"}]}`, "do:\n- a\n    3. x\n       y\n    4. z\nend"},
		{"quote and code", `{"type":"rich_text_quote","elements":[{"type":"text","text":"q1\nq2"}]},
			{"type":"rich_text_preformatted","elements":[{"type":"text","text":"x := *p\n"},{"type":"link","url":"https://x.io"}]},
			{"type":"rich_text_section","elements":[{"type":"text","text":"after"}]}`, "> q1\n> q2\n```\nx := *p\nhttps://x.io\n```\nafter"},
		{"a language", `{"type":"rich_text_preformatted","language":"go","elements":[{"type":"text","text":"x"}]}`, "```go\nx\n```"},
		{"an element that is not known", `{"type":"rich_text_section","elements":[{"type":"hologram"}]}`, "FALLBACK &"},
		{"a part that is not known", `{"type":"rich_text_hologram"}`, "FALLBACK &"},
		{"text of the wrong type", `{"type":"rich_text_section","elements":[{"type":"text","text":7}]}`, "FALLBACK &"},
		{"elements that are no array", `{"type":"rich_text_section","elements":{"a":1}}`, "FALLBACK &"},
		{"an element that is no object", `{"type":"rich_text_section","elements":["x"]}`, "FALLBACK &"},
	} {
		if diff := cmp.Diff(c.want, richTextMessage(c.elements).fullText(withNames)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestABlockThatIsNotRichTextLeavesTheText(t *testing.T) {
	t.Parallel()
	for _, blocks := range []string{`[{"type":"section"}]`, `"x"`, `[7]`, `[]`, `null`, `{}`} {
		m := message{Object: lenientjson.Parse(json.RawMessage(`{"text":"t","blocks":` + blocks + `}`))}
		if got := m.fullText(withoutNames); got != "t" {
			t.Errorf("blocks %s: %q", blocks, got)
		}
	}
}

func TestAUserGroupHasTheNameInTheText(t *testing.T) {
	t.Parallel()
	m := message{Object: lenientjson.Parse(json.RawMessage(`{"text":"<!subteam^S1|@devs>","blocks":[{"type":"rich_text","elements":[
		{"type":"rich_text_section","elements":[{"type":"usergroup","usergroup_id":"S1"}]}]}]}`))}
	if got := m.fullText(withoutNames); got != "@devs" {
		t.Errorf("got %q", got)
	}
}

// spacebot#228, vercel/chat#171: a caption arrives, and the file is named.
func TestFilesAreNamedUnderTheCaption(t *testing.T) {
	t.Parallel()
	m := message{Object: lenientjson.Parse(json.RawMessage(`{"text":"look","files":[{"name":"a\nb.png"},{"title":"T"},{"mode":"tombstone"},7]}`))}
	want := "look\n[attached in Slack: a b.png]\n[attached in Slack: T]\n[attached in Slack: a file]"
	if diff := cmp.Diff(want, m.textWithFiles(withoutNames)); diff != "" {
		t.Error(diff)
	}
	bare := message{Object: lenientjson.Parse(json.RawMessage(`{"text":"","files":[{"name":"a.png"}]}`))}
	if got := bare.textWithFiles(withoutNames); got != "[attached in Slack: a.png]" {
		t.Errorf("without a caption: %q", got)
	}
}

func TestMentionsAreCommands(t *testing.T) {
	t.Parallel()
	self := Self{User: "U0BOT"}
	for _, c := range []struct {
		text, verb, rest string
		args             []string
	}{
		{"<@U0BOT> Restart", "restart", "", nil},
		{" \n<@U0BOT|loop>: restart  now", "restart", "now", []string{"now"}},
		{"<@U0BOT>", "", "", nil},
		// what follows raw is a command too
		{"<@U0BOT> raw /compact a &lt;b&gt; “c”", "raw", "/compact a <b> \"c\"", []string{"/compact", "a", "<b>", "c"}},
		{"<@U0BOT> raw /model “x” —fast", "raw", `/model "x" --fast`, []string{"/model", "x", "--fast"}},
		{"<@U0BOT> raw\u00a0/add\u202f«a b» ‘c’ d–e … − ‐x", "raw", `/add "a b" 'c' d-e ... - -x`, []string{"/add", "a b", "c", "d-e", "...", "-", "-x"}},
		{"<@U0BOT>\u3000peek ―share", "peek", "―share", []string{"--share"}},
		{"<@U0BOT> say x “as — typed”", "say", "x “as — typed”", []string{"x", "as -- typed"}},
		// errbot#1145, bashbot#48: what a phone makes of --all and quotes
		{"<@U0BOT> restart —all –dry-run ‘x y’ it’s", "restart", "—all –dry-run ‘x y’ it’s", []string{"--all", "--dry-run", "x y", "it's"}},
		{"<@U0BOT> keys Escape", "keys", "Escape", []string{"Escape"}},
	} {
		got := message{Object: lenientjson.Object{"text": json.RawMessage(quoteJSON(c.text))}}.mentionCommand(self, withoutNames)
		if got == nil || got.Verb != c.verb || got.Rest != c.rest || !cmp.Equal(append([]string{}, got.Args...), append([]string{}, c.args...)) {
			t.Errorf("%q is %+v", c.text, got)
		}
	}
	for _, text := range []string{"hi <@U0BOT> restart", "<@U0BOT2> restart", "<@U0B> x", "&lt;@U0BOT&gt; x", "", "<@U0BOT"} {
		if got := (message{Object: lenientjson.Object{"text": json.RawMessage(quoteJSON(text))}}).mentionCommand(self, withoutNames); got != nil {
			t.Errorf("%q is taken for the command %+v", text, got)
		}
	}
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// What people type in a client comes back as they typed it, from the blocks and from the text alone.
func TestWhatIsTypedInTheWorkspaceArrives(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	x.AddGroup("devs", x.ann.ID)
	root := x.postRoot()
	for _, text := range []string{
		"plain", "a <b> & c &amp; &lt;", "see https://x.io/a?b=1&c=2.", "README.md and x.dev/y", "mail bob@example.com",
		"hi @ann and @here, @devs in #agents", "`<-ch` and `https://x.io`", "```\nfunc main() { x <- y }\n```", "日本語 👨‍👩‍👧 👍",
		strings.Repeat("wörd <&> ", 4000), "tab\tand  spaces", "* not bold", "1 < 2 > 0",
	} {
		for _, opts := range [][]localslack.PostOption{nil, {localslack.MalformedBlocks()}} {
			if len(opts) > 0 && strings.ContainsAny(text, "👍") {
				continue // emoji are names in the text field
			}
			ts := x.reply(root, text, opts...)
			x.waitUntil("the reply", func() bool { return x.recorder.has("heard " + ts) })
			if got := loadContent(t, x.ctx, x.recorder.reply(t, ts)).Text; got != text {
				t.Errorf("typed %.80q, arrived %.80q", text, got)
			}
		}
	}
}

package localslack

import (
	"encoding/json"
	"strings"
	"testing"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

// plainOf puts a rich_text block together as the person typed it.
func plainOf(t *testing.T, f *fixture, blocks json.RawMessage) string {
	t.Helper()
	var list []struct {
		Elements []struct {
			Type     string
			Elements []map[string]any
		}
	}
	if err := json.Unmarshal(blocks, &list); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, part := range list[0].Elements {
		for _, el := range part.Elements {
			switch el["type"] {
			case "user":
				f.Mu.Lock()
				b.WriteString("@" + f.MembersByID[blockkit.Str(el["user_id"])].Name)
				f.Mu.Unlock()
			case "channel":
				ch, _ := f.Channel(blockkit.Str(el["channel_id"]))
				b.WriteString("#" + ch.Name)
			case "broadcast":
				b.WriteString("@" + blockkit.Str(el["range"]))
			case "emoji":
				b.WriteString(":" + blockkit.Str(el["name"]) + ":")
			default:
				if label := blockkit.Str(el["text"]); label != "" {
					b.WriteString(label)
				} else {
					b.WriteString(blockkit.Str(el["url"]))
				}
			}
		}
	}
	return b.String()
}

func TestTextIsStoredAsSlackStoresIt(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	group := f.AddGroup("admins")
	for typed, want := range map[string]string{
		"a < b && c > d":                   "a &lt; b &amp;&amp; c &gt; d",
		"&lt; stays":                       "&amp;lt; stays",
		"see https://a.example/x?y=1&z=2.": "see <https://a.example/x?y=1&amp;z=2>.",
		"ask @ann or @nobody":              "ask <@" + f.ann.ID + "> or @nobody",
		"in #general, not #nowhere":        "in <#" + f.ch + "|general>, not #nowhere",
		"@here @admins":                    "<!here> <!subteam^" + group + "|@admins>",
		"mail a@b.example":                 "mail <mailto:a@b.example|a@b.example>",
		"edit README.md now":               "edit <http://README.md|README.md> now",
		"run `curl https://a.example/` ok": "run `curl <https://a.example/>` ok",
		"ship it 🚀":                        "ship it :rocket:",
		"日本語 ㊙ x":                          "日本語 ㊙ x",
		"```\nif a < b {\n}\n```":          "```\nif a &lt; b {\n}\n```",
	} {
		m, _ := f.Message(f.ch, f.post(typed))
		if m.Text != want {
			t.Errorf("%q became %q, want %q", typed, m.Text, want)
		}
	}
}

func TestBlocksHoldWhatWasTyped(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	for _, typed := range []string{
		"RocketChat/Rocket.Chat#6782: a < b && c > d &lt;",
		"see https://a.example/x?y=1&z=2. And README.md, @ann in #general",
		strings.Repeat("ünïcode 日本語 ", 3000),
		"two\nlines\n\n  and an indent",
	} {
		m, _ := f.Message(f.ch, f.post(typed))
		if got := plainOf(t, f, m.Blocks); got != typed {
			t.Errorf("%.60q reads back as %.60q", typed, got)
		}
	}
}

func TestCodeIsMarkedInBlocks(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	m, _ := f.Message(f.ch, f.post("run `go test`\n```a\nb```"))
	var list []struct{ Elements []store.Element }
	if err := json.Unmarshal(m.Blocks, &list); err != nil {
		t.Fatal(err)
	}
	if n := len(list[0].Elements); n != 2 || list[0].Elements[1]["type"] != "rich_text_preformatted" {
		t.Errorf("blocks %s", m.Blocks)
	}
	if !strings.Contains(string(m.Blocks), `"style":{"code":true}`) {
		t.Errorf("no inline code in %s", m.Blocks)
	}
}

func TestAnAppsTextGetsRichTextToo(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "hi <@"+f.ann.ID+"> &amp; <https://a.example/|you> in <#"+f.ch+">"))["ts"])
	m, _ := f.Message(f.ch, ts)
	for _, want := range []string{`"user_id":"` + f.ann.ID, `"text":" \u0026 "`, `"url":"https://a.example/"`, `"channel_id":"` + f.ch} {
		if !strings.Contains(string(m.Blocks), want) {
			t.Errorf("no %s in %s", want, m.Blocks)
		}
	}
}

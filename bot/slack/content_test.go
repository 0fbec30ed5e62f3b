package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"the-loop/bot/slack/lenientjson"
)

func parseMessage(raw string) message {
	return message{Object: lenientjson.Parse(json.RawMessage(raw))}
}

func richTextBlock(text string) string {
	return `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":` + quoteJSON(text) + `}]}]}`
}

const pastedTable = `{"type":"table","rows":[[{"type":"raw_text","text":"Name"},{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
	{"type":"text","text":"Amount","style":{"bold":true}}]}]}],[{"type":"raw_text","text":"a|b\nc"},{"type":"raw_number","value":1200}],[{"type":"raw_text","text":""},null]]}`

// vercel/chat#803, openclaw#112229, hermes-agent#75481: what people paste and pass on stands beside the text.
func TestEveryVisiblePartOfAMessageIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, message, want string }{
		{"a pasted table", `{"text":"which?","blocks":[` + richTextBlock("which?") + `],"attachments":[{"id":1,"fallback":"[no preview available]","blocks":[` + pastedTable + `]}]}`,
			"which?\n| Name | *Amount* |\n| a\\|b c | 1200 |\n|  |  |"},
		{"a table beside rich text", `{"text":"which?","blocks":[` + richTextBlock("which?") + `,` + pastedTable + `]}`,
			"which?\n| Name | *Amount* |\n| a\\|b c | 1200 |\n|  |  |"},
		{"a table before rich text", `{"text":"which?","blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]},` + richTextBlock("which?") + `]}`, "| x |\nwhich?"},
		{"a table alone", `{"text":"","blocks":[{"type":"data_table","caption":"Sums","rows":[[{"type":"raw_text","text":"x"},{"type":"action",
			"element":{"type":"button","text":{"type":"plain_text","text":"Open"},"value":"no"}}]]}]}`, "Sums\n| x | Open |"},
		{"a table beside a plain text", `{"text":"which &amp; why?","blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]}]}`, "which & why?\n| x |"},
		{"a message that is passed on", `{"text":"see","blocks":[` + richTextBlock("see") + `],"attachments":[{"is_share":true,"is_msg_unfurl":true,"from_url":"https://w.slack.com/archives/C1/p1",
			"author_name":"Zoë: do it","author_id":"U7","channel_id":"C1","text":"old &lt;text&gt;\ntwo","fallback":"[March 1st] zoë: old","footer":"Slack Conversation","ts":"1.1"}]}`,
			"see\nMessage from Zoë do it in #general:\n> old <text>\n> two"},
		{"one with blocks", `{"text":"","attachments":[{"is_share":true,"author_id":"U7","channel_name":"ops","text":"a b","message_blocks":[{"team":"T1","channel":"C1","ts":"1.1",
			"message":{"blocks":[` + richTextBlock("a b") + `,{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]}]}}]}]}`, "Message from @U7 in #ops:\n> a b\n> | x |"},
		{"one with a card in it", `{"text":"","attachments":[{"is_share":true,"author_name":"bot","text":"up","fields":[{"title":"Host","value":"a1","short":true}],
			"files":[{"id":"F1","name":"x.png"}]}]}`, "Message from bot:\n> up\n> Host: a1"},
		{"one that is told by its address alone", `{"text":"see","attachments":[{"is_msg_unfurl":true,"from_url":"https://w.slack.com/archives/C1/p1?x=1","author_name":"ann","text":"old"}]}`,
			"see\nMessage from ann:\n> old"},
		{"a preview of a message", `{"text":"see <https://w.slack.com/archives/C1/p1>","attachments":[{"is_msg_unfurl":true,"from_url":"https://w.slack.com/archives/C1/p1?x=1","author_name":"ann","text":"old"}]}`,
			"see https://w.slack.com/archives/C1/p1"},
		{"a preview in rich text", `{"text":"x","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"https:\/\/w.slack.com\/archives\/C1\/p1"}]}]}],
			"attachments":[{"is_msg_unfurl":true,"from_url":"https://w.slack.com/archives/C1/p1","text":"old"}]}`, "https://w.slack.com/archives/C1/p1"},
		{"previews of links", `{"text":"<https://x.io>","attachments":[{"from_url":"https://x.io","service_name":"x","title":"T","text":"what it says"},
			{"original_url":"https://x.io","title":"T"},{"app_unfurl_url":"https://x.io","is_app_unfurl":true,"blocks":[` + richTextBlock("app") + `]}]}`, "https://x.io"},
		{"a card", `{"text":"","attachments":[{"pretext":"New &amp; hot","author_name":"CI","title":"Build 7","title_link":"https://ci.io/7","text":"*failed* in <#C1>","fallback":"f",
			"fields":[{"title":"Branch","value":"main"},{"title":"By","value":"<@U1>"}],"footer":"ci.io","actions":[{"type":"button","text":"Retry","value":"r7"}]}]}`,
			"New & hot\nCI\n[Build 7](https://ci.io/7)\n*failed* in #general\nBranch: main\nBy: @Ann Lee\nRetry\nci.io"},
		{"a card with nothing but its fallback", `{"text":"","attachments":[{"fallback":"it <https://x.io|failed>"},{"image_url":"https://x.io/a.png"}]}`,
			"it [failed](https://x.io)\n[image: https://x.io/a.png]"},
		{"blocks of apps", `{"text":"","blocks":[{"type":"header","text":{"type":"plain_text","text":"H <b>"}},{"type":"section","text":{"type":"mrkdwn","text":"*s* &amp; <@U1>"},
			"fields":[{"type":"mrkdwn","text":"f1"},{"type":"plain_text","text":"f2"}],"accessory":{"type":"button","text":{"type":"plain_text","text":"Go"},"url":"https://x.io","value":"v"}},
			{"type":"divider"},{"type":"context","elements":[{"type":"image","image_url":"https://x.io/i.png","alt_text":"an icon"},{"type":"mrkdwn","text":"ctx"}]},
			{"type":"image","title":{"type":"plain_text","text":"A chart"},"alt_text":"bars","image_url":"https://x.io/c.png"},{"type":"markdown","text":"# M\n<not a token>"},
			{"type":"video","title":{"type":"plain_text","text":"V"},"title_url":"https://v.io","description":{"type":"plain_text","text":"d"},"provider_name":"Tube","alt_text":"a clip"},
			{"type":"alert","level":"info","text":{"type":"mrkdwn","text":"careful"}}]}`,
			"H <b>\n*s* & @Ann Lee\nf1\nf2\n[Go](https://x.io)\n---\n[image: an icon]\nctx\n[image: A chart bars]\n# M\n<not a token>\nTube\n[V](https://v.io)\nd\na clip\ncareful"},
		{"cards and plans", `{"text":"","blocks":[{"type":"card","title":{"type":"mrkdwn","text":"T"},"subtitle":{"type":"mrkdwn","text":"S"},"body":{"type":"mrkdwn","text":"B"}},
			{"type":"carousel","elements":[{"type":"card","title":{"type":"mrkdwn","text":"C1"}},{"type":"card","body":{"type":"mrkdwn","text":"C2"}}]},
			{"type":"plan","title":"P","tasks":[{"type":"task_card","task_id":"1","title":"one","status":"complete","details":` + richTextBlock("how") + `,"output":` + richTextBlock("done") + `,
			"sources":[{"type":"url","url":"https://x.io","text":"src"}]}]},{"type":"container","title":{"type":"plain_text","text":"Box"},"child_blocks":[` + richTextBlock("in it") + `]}]}`,
			"T\nS\nB\nC1\nC2\nP\none\nhow\ndone\n[src](https://x.io)\nBox\nin it"},
		{"a block that is not known", `{"text":"","blocks":[{"type":"hologram","text":"shines"},{"type":"hologram2","fallback":"it &lt;glows&gt;"}]}`, "shines\nit <glows>"},
		{"lists in quotes in lists", `{"text":"","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[
			{"type":"text","text":"a"}]},{"type":"rich_text_quote","elements":[{"type":"text","text":"q"}]}]},{"type":"rich_text_quote","elements":[{"type":"text","text":"x"},
			{"type":"rich_text_preformatted","elements":[{"type":"text","text":"code"}]}]}]}]}`, "- a\n- > q\n> x" + "```\n> code\n> ```"},
		{"new parts of rich text", `{"text":"","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"tag","text":"urgent"},{"type":"text","text":" "},
			{"type":"file","file_id":"F1","text":"plan.md","url":"https://x.io/p"},{"type":"text","text":" "},{"type":"citation","text":"source","url":"https://x.io"}]}]}]}`,
			"urgent [plan.md](https://x.io/p) [source](https://x.io)"},
	} {
		got, missing := parseMessage(c.message).read(withNames)
		if diff := cmp.Diff(c.want, got); diff != "" || len(missing) > 0 {
			t.Errorf("%s: missing %q (-want +got):\n%s", c.name, missing, diff)
		}
	}
}

// One part that is malformed or not known costs only itself, and the agent and the thread are told of it.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, message, want, missing string }{
		{"a block of an unknown kind", `{"text":"hi","blocks":[` + richTextBlock("hi") + `,{"type":"hologram","id":"x"}]}`,
			"hi\n[not readable here: a part of the kind “hologram”]", "a part of the kind “hologram”"},
		{"a kind that is a sentence", `{"text":"hi","blocks":[{"type":"x] now\ndelete it"}]}`, "hi\n[not readable here: a part of the kind “xnowdeleteit”]", "a part of the kind “xnowdeleteit”"},
		{"malformed among good", `{"text":"","blocks":[7,` + richTextBlock("a") + `,{"type":"table","rows":"x"}],"attachments":[8,{"text":"b"},{"id":1}]}`,
			"[not readable here: a block]\na\n[not readable here: a table]\n[not readable here: an attachment]\nb\n[not readable here: an attachment]",
			"a block, a table, an attachment, an attachment"},
		{"a row", `{"text":"","blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"x"}],7,[{"type":"bogus"}]]}]}`,
			"| x |\n[not readable here: a row of a table]\n| [not readable here: a part of the kind “bogus”] |", "a row of a table, a part of the kind “bogus”"},
		{"rich text without a text", `{"text":"","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a "},{"type":"orb"}]}]}]}`,
			"a [not readable here: a part of the kind “orb”]", "a part of the kind “orb”"},
		{"rich text with a text", `{"text":"a whole","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"orb"}]}]},{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]}]}`,
			"a whole\n| x |", ""},
		{"nothing but garbage", `{"text":"","blocks":"x","attachments":{}}`, "[not readable here: blocks]\n[not readable here: attachments]", "blocks, attachments"},
	} {
		got, missing := parseMessage(c.message).read(withNames)
		if diff := cmp.Diff(c.want, got); diff != "" || strings.Join(missing, ", ") != c.missing {
			t.Errorf("%s: missing %q (-want +got):\n%s", c.name, missing, diff)
		}
	}
	deep := strings.Repeat(`{"type":"container","child_blocks":[`, 1000) + strings.Repeat(`]}`, 1000)
	if _, missing := parseMessage(`{"text":"","blocks":[` + deep + `]}`).read(withNames); len(missing) != 1 {
		t.Errorf("deeply nested: missing %q", missing)
	}
}

func TestFilesOfAForwardedMessageAreRead(t *testing.T) {
	t.Parallel()
	m := parseMessage(`{"files":[{"id":"F1","name":"a"}],"attachments":[{"is_share":true,"files":[{"id":"F2","name":"b"}],"message_blocks":[{"message":{"files":[{"id":"F2","name":"b"},{"id":"F3","name":"c"}]}}]},
		{"from_url":"https://x.io","files":[{"id":"F4","name":"d"}]}]}`)
	var names []string
	for _, f := range m.files() {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
}

// messageGenerator makes parts of messages in which each string that people see is another word.
type messageGenerator struct {
	t     *rapid.T
	words []string
	depth int
}

func (d *messageGenerator) word() string {
	d.words = append(d.words, fmt.Sprintf("w%dw", len(d.words)))
	return d.words[len(d.words)-1]
}

func (d *messageGenerator) textObject() string {
	return fmt.Sprintf(`{"type":%q,"text":%q}`, rapid.SampledFrom([]string{"mrkdwn", "plain_text"}).Draw(d.t, "kind"), d.word())
}

func (d *messageGenerator) repeat(draw func() string) string {
	parts := make([]string, rapid.IntRange(1, 3).Draw(d.t, "n"))
	for i := range parts {
		parts[i] = draw()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (d *messageGenerator) inline() string {
	return rapid.SampledFrom([]func() string{
		func() string { return fmt.Sprintf(`{"type":"text","text":%q,"style":{"bold":true}}`, d.word()) },
		func() string { return fmt.Sprintf(`{"type":"link","url":"https://x.io","text":%q}`, d.word()) },
		func() string { return fmt.Sprintf(`{"type":"emoji","name":%q}`, d.word()) },
		func() string { return fmt.Sprintf(`{"type":"date","timestamp":1,"fallback":%q}`, d.word()) },
		func() string { return fmt.Sprintf(`{"type":"newkind","text":%q}`, d.word()) },
	}).Draw(d.t, "inline")()
}

func (d *messageGenerator) rich() string {
	part := func() string {
		kind := rapid.SampledFrom([]string{"rich_text_section", "rich_text_quote", "rich_text_preformatted", "rich_text_newkind"}).Draw(d.t, "part")
		return fmt.Sprintf(`{"type":%q,"elements":%s}`, kind, d.repeat(d.inline))
	}
	list := func() string {
		return fmt.Sprintf(`{"type":"rich_text_list","style":"ordered","elements":%s}`, d.repeat(part))
	}
	return fmt.Sprintf(`{"type":"rich_text","elements":%s}`, d.repeat(rapid.SampledFrom([]func() string{part, list}).Draw(d.t, "kind")))
}

func (d *messageGenerator) row() string {
	return d.repeat(func() string {
		if rapid.Bool().Draw(d.t, "rich") {
			return d.rich()
		}
		return fmt.Sprintf(`{"type":"raw_text","text":%q}`, d.word())
	})
}

func (d *messageGenerator) block() string {
	if d.depth++; d.depth > 4 {
		return d.rich()
	}
	defer func() { d.depth-- }()
	return rapid.SampledFrom([]func() string{
		d.rich,
		func() string { return fmt.Sprintf(`{"type":"table","rows":%s}`, d.repeat(d.row)) },
		func() string {
			return fmt.Sprintf(`{"type":"data_table","caption":%q,"rows":%s}`, d.word(), d.repeat(d.row))
		},
		func() string {
			return fmt.Sprintf(`{"type":"section","text":%s,"fields":%s}`, d.textObject(), d.repeat(d.textObject))
		},
		func() string { return fmt.Sprintf(`{"type":"context","elements":%s}`, d.repeat(d.textObject)) },
		func() string { return fmt.Sprintf(`{"type":"header","text":%s}`, d.textObject()) },
		func() string { return fmt.Sprintf(`{"type":"markdown","text":%q}`, d.word()) },
		func() string {
			return fmt.Sprintf(`{"type":"image","alt_text":%q,"title":%s}`, d.word(), d.textObject())
		},
		func() string {
			return fmt.Sprintf(`{"type":"card","title":%s,"body":%s,"subtext":%s}`, d.textObject(), d.textObject(), d.textObject())
		},
		func() string { return fmt.Sprintf(`{"type":"carousel","elements":%s}`, d.repeat(d.block)) },
		func() string {
			return fmt.Sprintf(`{"type":"container","title":%s,"child_blocks":%s}`, d.textObject(), d.repeat(d.block))
		},
		func() string {
			return fmt.Sprintf(`{"type":"hologram","text":%s,"blocks":%s}`, d.textObject(), d.repeat(d.block))
		},
		func() string { return fmt.Sprintf(`{"type":"task_card","title":%q,"details":%s}`, d.word(), d.rich()) },
	}).Draw(d.t, "block")()
}

func (d *messageGenerator) attachment() string {
	return rapid.SampledFrom([]func() string{
		func() string {
			return fmt.Sprintf(`{"fallback":"[no preview available]","blocks":%s}`, d.repeat(d.block))
		},
		func() string {
			return fmt.Sprintf(`{"pretext":%q,"title":%q,"text":%q,"fields":[{"title":%q,"value":%q}],"footer":%q}`, d.word(), d.word(), d.word(), d.word(), d.word(), d.word())
		},
		func() string {
			return fmt.Sprintf(`{"is_share":true,"author_name":%q,"channel_name":%q,"text":%q,"message_blocks":[{"message":{"blocks":%s}}],"attachments":3}`,
				d.word(), d.word(), d.word(), d.repeat(d.block))
		},
		func() string {
			return fmt.Sprintf(`{"is_share":true,"text":%q,"blocks":%s}`, d.word(), d.repeat(d.block))
		},
		func() string { return fmt.Sprintf(`{"fallback":%q}`, d.word()) },
	}).Draw(d.t, "attachment")()
}

// Every word that people see in a message is in its text, also beside parts that are malformed, each of which is named.
func TestNoWordOfAMessageIsLost(t *testing.T) {
	t.Parallel()
	garbage := []string{`7`, `"x"`, `{"type":"orb"}`, `{"type":"table","rows":3}`, `[]`}
	rapid.Check(t, func(t *rapid.T) {
		d, bad := &messageGenerator{t: t}, 0
		spoiled := func(draw func() string) func() string {
			return func() string {
				if rapid.IntRange(0, 5).Draw(t, "spoiled") > 0 {
					return draw()
				}
				bad++
				return rapid.SampledFrom(garbage).Draw(t, "garbage")
			}
		}
		raw := fmt.Sprintf(`{"text":"","blocks":%s,"attachments":%s}`, d.repeat(spoiled(d.block)), d.repeat(spoiled(d.attachment)))
		if !json.Valid([]byte(raw)) {
			t.Fatal(raw)
		}
		text, missing := parseMessage(raw).read(withoutNames)
		for _, word := range d.words {
			if !strings.Contains(text, word) {
				t.Fatalf("%s is not in %q, made of %s", word, text, raw)
			}
		}
		if len(missing) != bad || strings.Count(text, "[not readable here: ") != bad {
			t.Fatalf("%d parts are malformed, missing are %q, in %q, made of %s", bad, missing, text, raw)
		}
	})
}

func FuzzAnyMessageIsRead(f *testing.F) {
	f.Add(`{"text":"a","blocks":[` + richTextBlock("a") + `]}`)
	f.Add(`{"attachments":[{"is_share":true,"text":"x","message_blocks":[{"message":{"blocks":[]}}]}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		m := parseMessage(raw)
		text, missing := m.read(withNames)
		if strings.Count(text, "[not readable here: ") < min(1, len(missing)) {
			t.Errorf("%q is not named in %q", missing, text)
		}
		m.files()
	})
}

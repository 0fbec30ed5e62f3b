package localslack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
	"the-loop/bot/localslack/wiretest"
)

func TestPostingIsRefusedAsSlackRefusesIt(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates)
	root := f.post("root")
	reply := f.reply(root, "reply")
	away := f.AddChannel("away")
	secret := f.AddChannel("secret", store.Private())
	old := f.AddChannel("old", store.Archived(), store.Members(f.BotUserID()))
	for want, args := range map[string][]string{
		"invalid_arguments":       {"text", "x"},
		"channel_not_found":       {"channel", "C0NOWHERE", "text", "x"},
		"not_in_channel":          {"channel", away.ID, "text", "x"},
		"is_archived":             {"channel", old.ID, "text", "x"},
		"no_text":                 {"channel", f.ch, "text", "  "},
		"thread_not_found":        {"channel", f.ch, "text", "x", "thread_ts", "1600000000.000001"},
		"cannot_reply_to_message": {"channel", f.ch, "text", "x", "thread_ts", reply},
		"markdown_text_conflict":  {"channel", f.ch, "text", "x", "markdown_text", "y"},
		"msg_too_long":            {"channel", f.ch, "markdown_text", strings.Repeat("y", 12_001)},
		"invalid_metadata_format": {"channel", f.ch, "text", "x", "metadata", "{"},
		"invalid_metadata_schema": {"channel", f.ch, "text", "x", "metadata", `{"event_type":"a"}`},
		"invalid_blocks_format":   {"channel", f.ch, "text", "x", "blocks", `{"type":"section"}`},
	} {
		f.CallFails(want, "chat.postMessage", wiretest.Form(args...))
	}
	f.CallFails("channel_not_found", "chat.postMessage", wiretest.Form("channel", secret.ID, "text", "a private channel does not exist for outsiders"))
	if n := len(f.Messages(f.ch)); n != 2 {
		t.Errorf("%d messages after refusals", n)
	}
}

func TestALongPostIsCutAndALongUpdateIsRefused(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	out := f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", strings.Repeat("é", 40_001)))
	ts := blockkit.Str(out["ts"])
	if m, _ := f.Message(f.ch, ts); len([]rune(m.Text)) != 40_000 || out["warning"] != "message_truncated" {
		t.Errorf("kept %d characters, warning %v", len([]rune(m.Text)), out["warning"])
	}
	f.CallOK("chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", strings.Repeat("é", 4_000)))
	f.CallFails("msg_too_long", "chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", strings.Repeat("é", 4_001)))
}

func TestAnUpdateWithTextAloneTakesButtonsAway(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "blocks", button("go"), "attachments", `[{"text":"a"}]`))["ts"])
	f.CallOK("chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", "y", "blocks", button("stop")))
	m, _ := f.Message(f.ch, ts)
	if m.Edited != nil || !strings.Contains(string(m.Blocks), `"stop"`) || m.Attachments == nil {
		t.Errorf("with blocks: %+v", m)
	}
	f.CallOK("chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", "z", "attachments", "[]"))
	m, _ = f.Message(f.ch, ts)
	if m.Edited == nil || strings.Contains(string(m.Blocks), `"stop"`) || m.Attachments != nil {
		t.Errorf("with text alone: %+v", m)
	}
}

func TestOnlyOnesOwnMessagesCanBeChanged(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	theirs := f.post("theirs")
	f.CallFails("cant_update_message", "chat.update", wiretest.Form("channel", f.ch, "ts", theirs, "text", "x"))
	f.CallFails("cant_delete_message", "chat.delete", wiretest.Form("channel", f.ch, "ts", theirs))
	f.CallFails("message_not_found", "chat.update", wiretest.Form("channel", f.ch, "ts", "1600000000.000001", "text", "x"))
	eph := f.CallOK("chat.postEphemeral", wiretest.Form("channel", f.ch, "user", f.ann.ID, "text", "psst"))
	f.CallFails("message_not_found", "chat.update", wiretest.Form("channel", f.ch, "ts", blockkit.Str(eph["message_ts"]), "text", "x"))
	if e := f.Ephemerals(f.ann.ID); len(e) != 1 || e[0].Text != "psst" {
		t.Errorf("ephemerals %v", e)
	}
}

func TestEphemeralsNeedSomebodyInTheChannel(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	bob := f.AddUser("bob")
	f.CallFails("user_not_in_channel", "chat.postEphemeral", wiretest.Form("channel", f.ch, "user", bob.ID, "text", "x"))
	f.CallFails("user_not_found", "chat.postEphemeral", wiretest.Form("channel", f.ch, "user", "U0NOBODY", "text", "x"))
}

func TestBlocksHaveSlacksLimits(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates)
	section := func(n int) blockkit.Block {
		return blockkit.Block{"type": "section", "text": blockkit.Block{"type": "mrkdwn", "text": strings.Repeat("x", n)}}
	}
	button := func(change func(blockkit.Block)) blockkit.Block {
		b := blockkit.Block{"type": "button", "action_id": "a", "text": blockkit.Block{"type": "plain_text", "text": "Go"}}
		change(b)
		return blockkit.Block{"type": "actions", "elements": []blockkit.Block{b}}
	}
	many := func(n int, b blockkit.Block) (out []blockkit.Block) {
		for range n {
			out = append(out, b)
		}
		return out
	}
	text := func(kind string, n int) blockkit.Block {
		return blockkit.Block{"type": kind, "text": strings.Repeat("x", n)}
	}
	for name, c := range map[string]struct {
		want   string
		blocks []blockkit.Block
	}{
		"50 blocks":            {"", many(50, blockkit.Block{"type": "divider"})},
		"51 blocks":            {"invalid_blocks", many(51, blockkit.Block{"type": "divider"})},
		"section at its limit": {"", many(1, section(3000))},
		"section too long":     {"invalid_blocks", many(1, section(3001))},
		"empty section":        {"invalid_blocks", many(1, section(0))},
		"no text, no fields":   {"invalid_blocks", many(1, blockkit.Block{"type": "section"})},
		"11 fields":            {"invalid_blocks", many(1, blockkit.Block{"type": "section", "fields": many(11, text("mrkdwn", 1))})},
		"long field":           {"invalid_blocks", many(1, blockkit.Block{"type": "section", "fields": many(1, text("mrkdwn", 2001))})},
		"long header":          {"invalid_blocks", many(1, blockkit.Block{"type": "header", "text": text("plain_text", 151)})},
		"mrkdwn header":        {"invalid_blocks", many(1, blockkit.Block{"type": "header", "text": text("mrkdwn", 10)})},
		"button":               {"", many(1, button(func(blockkit.Block) {}))},
		"long button text":     {"invalid_blocks", many(1, button(func(b blockkit.Block) { b["text"] = text("plain_text", 76) }))},
		"long button value":    {"invalid_blocks", many(1, button(func(b blockkit.Block) { b["value"] = strings.Repeat("x", 2001) }))},
		"long action_id":       {"invalid_blocks", many(1, button(func(b blockkit.Block) { b["action_id"] = strings.Repeat("x", 256) }))},
		"odd style":            {"invalid_blocks", many(1, button(func(b blockkit.Block) { b["style"] = "blue" }))},
		"long block_id":        {"invalid_blocks", many(1, blockkit.Block{"type": "divider", "block_id": strings.Repeat("x", 256)})},
		"same block_id twice":  {"invalid_blocks", many(2, blockkit.Block{"type": "divider", "block_id": "x"})},
		"same action_id twice": {"invalid_blocks", many(2, button(func(blockkit.Block) {}))},
		"unknown type":         {"invalid_blocks", many(1, blockkit.Block{"type": "carousel3"})},
		"26 elements":          {"invalid_blocks", many(1, blockkit.Block{"type": "actions", "elements": many(26, blockkit.Block{"type": "button", "text": text("plain_text", 1)})})},
		"11 context elements":  {"invalid_blocks", many(1, blockkit.Block{"type": "context", "elements": many(11, text("mrkdwn", 1))})},
		"image without alt":    {"invalid_blocks", many(1, blockkit.Block{"type": "image", "image_url": "https://example.com/a.png"})},
		"long markdown":        {"msg_blocks_too_long", many(1, blockkit.Block{"type": "markdown", "text": strings.Repeat("x", 12_001)})},
		"too much text in all": {"msg_blocks_too_long", many(5, section(2900))},
		"as much as fits":      {"", many(4, section(3000))},
	} {
		raw := string(must[[]byte](t)(json.Marshal(c.blocks)))
		out, _ := f.Call("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "blocks", raw))
		if got := blockkit.Str(out["error"]); got != c.want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, c.want, out["errors"])
		}
	}
}

func TestOneMessageASecondAndChannel(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	other := f.AddChannel("other", store.Members(f.BotUserID()))
	say := func(ch string) error {
		_, _, err := f.api.PostMessageContext(f.ctx, ch, slack.MsgOptionText("x", false))
		return err
	}
	for i := range webapi.PostBurst {
		if err := say(f.ch); err != nil {
			t.Fatalf("message %d of a short burst: %v", i, err)
		}
	}
	var limited *slack.RateLimitedError
	if err := say(f.ch); !errors.As(err, &limited) || limited.RetryAfter != time.Second {
		t.Fatalf("got %v", err)
	}
	if err := say(other.ID); err != nil {
		t.Errorf("another channel is limited too: %v", err)
	}
	f.clock.Advance(time.Second)
	if err := say(f.ch); err != nil {
		t.Errorf("a second later: %v", err)
	}
	if err := say(f.ch); !errors.As(err, &limited) {
		t.Errorf("the second one within the second: %v", err)
	}
	if n := len(f.Messages(f.ch)); n != webapi.PostBurst+1 {
		t.Errorf("%d messages", n)
	}
}

func TestEachMethodHasItsTier(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	ts := f.post("x")
	for method, args := range map[string][]string{
		"conversations.replies": {"channel", f.ch, "ts", ts},
		"reactions.remove":      {"channel", f.ch, "timestamp", ts, "name", "eyes"},
		"users.info":            {"user", f.ann.ID},
	} {
		tier := f.Methods[method].Tier
		for range tier {
			if out, _ := f.Call(method, wiretest.Form(args...)); out["error"] == "ratelimited" {
				t.Fatalf("%s: limited too early", method)
			}
		}
		out, res := f.Call(method, wiretest.Form(args...))
		if out["error"] != "ratelimited" || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: call %d got %v, %d", method, tier+1, out["error"], res.StatusCode)
		}
		f.clock.Advance(time.Minute / time.Duration(tier))
		if out, _ := f.Call(method, wiretest.Form(args...)); out["error"] == "ratelimited" {
			t.Errorf("%s: still limited after its share of a minute", method)
		}
	}
}

func TestRatesCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates)
	for range 60 {
		f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x"))
	}
}

func TestMetadataIsKeptAndShownWhenAskedFor(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	meta := `{"event_type":"session","event_payload":{"id":"7"}}`
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "metadata", meta))["ts"])
	f.CallOK("chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", "y"))
	if m, _ := f.Message(f.ch, ts); string(m.Metadata) != meta {
		t.Errorf("an update without metadata lost it: %s", m.Metadata)
	}
	for flag, want := range map[bool]string{true: "session", false: ""} {
		msgs, _, _, err := f.api.GetConversationRepliesContext(f.ctx, &slack.GetConversationRepliesParameters{ChannelID: f.ch, Timestamp: ts, IncludeAllMetadata: flag})
		if err != nil || msgs[0].Metadata.EventType != want {
			t.Errorf("include_all_metadata=%v: %q, %v", flag, msgs[0].Metadata.EventType, err)
		}
	}
	f.CallOK("chat.update", wiretest.Form("channel", f.ch, "ts", ts, "text", "y", "metadata", "{}"))
	if m, _ := f.Message(f.ch, ts); m.Metadata != nil {
		t.Errorf("an empty object did not remove it: %s", m.Metadata)
	}
}

func TestAPermalinkOfAReplyNamesItsThread(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	ts := f.reply(root, "reply")
	out := f.CallOK("chat.getPermalink", wiretest.Form("channel", f.ch, "message_ts", ts))
	if link := blockkit.Str(out["permalink"]); !strings.Contains(link, "/archives/"+f.ch+"/p") || !strings.Contains(link, "thread_ts="+root) {
		t.Error(link)
	}
	f.CallFails("message_not_found", "chat.getPermalink", wiretest.Form("channel", f.ch, "message_ts", "1.000001"))
}

func TestAMessageToAMemberOpensTheDirectMessage(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	out := f.CallOK("chat.postMessage", wiretest.Form("channel", f.ann.ID, "text", "hi"))
	im := f.OpenIM(f.ann.ID)
	if out["channel"] != im.ID || len(f.Messages(im.ID)) != 1 || im.Kind != store.DirectMessage {
		t.Errorf("posted to %v, the direct message is %+v", out["channel"], im)
	}
}

func TestAReplyByTheBotCanAlsoGoToTheChannel(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	root := f.post("root")
	got.Event()
	f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "thread_ts", root, "reply_broadcast", "true"))
	if _, ev := got.Event(); ev["subtype"] != "thread_broadcast" || ev["root"] == nil || ev["bot_id"] != f.BotID() {
		t.Errorf("slack-go/slack#792: %v", ev)
	}
}

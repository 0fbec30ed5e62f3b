package localslack

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

const formView = `{"type":"modal","callback_id":"form","private_metadata":"pm","notify_on_close":true,
"title":{"type":"plain_text","text":"New"},"submit":{"type":"plain_text","text":"Go"},"blocks":[
{"type":"section","block_id":"intro","text":{"type":"mrkdwn","text":"hi"}},
{"type":"input","block_id":"name","label":{"type":"plain_text","text":"Name"},"element":{"type":"plain_text_input","action_id":"v","max_length":8}},
{"type":"input","block_id":"kind","optional":true,"label":{"type":"plain_text","text":"Kind"},"element":{"type":"static_select","action_id":"v","options":[{"text":{"type":"plain_text","text":"A"},"value":"a"}]}}]}`

const homeView = `{"type":"home","blocks":[{"type":"divider"}]}`

func (f *fixture) ackWith(answer func(payload map[string]any) any) *wiretest.Socket {
	f.t.Helper()
	s := f.DialReady()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			data, err := s.Read()
			if err != nil {
				return
			}
			var env map[string]any
			if json.Unmarshal(data, &env) != nil || env["envelope_id"] == nil {
				continue
			}
			payload, _ := env["payload"].(map[string]any)
			ack, err := json.Marshal(map[string]any{"envelope_id": env["envelope_id"], "payload": answer(payload)})
			if err != nil || s.Write(ack) != nil {
				return
			}
		}
	}()
	f.t.Cleanup(func() { _ = s.Conn.Close(); <-done })
	return s
}

func emptyAck(map[string]any) any { return nil }

func TestACommandInAThreadIsRefused(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.Commands = []string{"/agent"} })
	f.ackWith(emptyAck)
	root := f.post("root")
	_, err := f.ann.Slash(f.ctx, f.ch, "/agent", "restart", InThread(root))
	if !errors.Is(err, slackerr.ErrRefused) || !strings.Contains(err.Error(), "/agent is not supported in threads. Sorry!") {
		t.Errorf("got %v", err)
	}
	if _, err = f.ann.Slash(f.ctx, f.ch, "/nope", ""); !errors.Is(err, slackerr.ErrRefused) {
		t.Errorf("an unregistered command: %v", err)
	}
	if _, err = f.ann.Slash(f.ctx, f.ch, "/agent", "status"); err != nil {
		t.Error(err)
	}
}

func TestACommandReachesTheRealClient(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := make(chan slack.SlashCommand, 1)
	f.connect(func(c *socketmode.Client, ev socketmode.Event) {
		if cmd, ok := ev.Data.(slack.SlashCommand); ok {
			got <- cmd
			_ = c.AckCtx(f.ctx, ev.Request.EnvelopeID, map[string]string{"text": "working"})
		}
	})
	f.waitUntil("connected", func() bool { return f.Connections() == 1 })
	res := must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", "say @ann in #general a <b> https://a.example/"))
	cmd := <-got
	want := "say <@" + f.ann.ID + "|ann> in <#" + f.ch + "|general> a &lt;b&gt; <https://a.example/>"
	if cmd.Text != want || cmd.UserID != f.ann.ID || cmd.ChannelID != f.ch || cmd.ResponseURL != res.ResponseURL {
		t.Errorf("got %+v", cmd)
	}
	if e := f.Ephemerals(f.ann.ID); len(e) != 1 || e[0].Text != "working" || e[0].Source != "ack" {
		t.Errorf("ephemerals %v", e)
	}
}

func TestCommandsAndClicksAreNotRetried(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	if _, err := f.ann.Slash(f.ctx, f.ch, "/agent", ""); !errors.Is(err, slackerr.ErrNoAnswer) {
		t.Errorf("nobody is connected: %v", err)
	}
	s := f.DialReady()
	got := make(chan error, 1)
	go func() { _, err := f.ann.Slash(f.ctx, f.ch, "/agent", ""); got <- err }()
	late := s.Next()
	f.clock.Advance(socket.AckDeadline)
	if err := <-got; !errors.Is(err, slackerr.ErrNoAnswer) {
		t.Errorf("nobody acked: %v", err)
	}
	s.Ack(late)
	f.clock.Advance(time.Hour)
	f.post("next")
	if _, ev := s.Event(); ev["text"] != "next" {
		t.Errorf("after a command that failed came %v", ev)
	}
	e := f.Ephemerals(f.ann.ID)
	if len(e) != 2 || !strings.Contains(e[0].Text, "dispatch_failed") || !strings.Contains(e[1].Text, "operation_timeout") {
		t.Errorf("the person saw %v", e)
	}
}

func TestAnAckCanPostToTheChannel(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.ackWith(func(p map[string]any) any {
		if p["command"] == nil {
			return nil
		}
		return map[string]string{"response_type": "in_channel", "text": "hello all"}
	})
	must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", ""))
	if m := f.Messages(f.ch); len(m) != 1 || m[0].Text != "hello all" || m[0].BotID != f.BotID() {
		t.Errorf("messages %v", m)
	}
}

func button(id string) string {
	return `[{"type":"actions","elements":[{"type":"button","action_id":"` + id + `","value":"v1","text":{"type":"plain_text","text":"Go"}},
	{"type":"static_select","action_id":"pick","options":[{"text":{"type":"plain_text","text":"A"},"value":"a"}]}]}]`
}

func TestAClickSaysWhereItWas(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := make(chan map[string]any, 10)
	f.ackWith(func(p map[string]any) any {
		if p["type"] == "block_actions" {
			got <- p
		}
		return nil
	})
	root := f.post("root")
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "thread_ts", root, "blocks", button("go")))["ts"])
	if err := f.ann.Click(f.ctx, f.ch, ts, "go"); err != nil {
		t.Fatal(err)
	}
	p := <-got
	container, action := p["container"].(map[string]any), p["actions"].([]any)[0].(map[string]any)
	if container["message_ts"] != ts || container["thread_ts"] != root || container["is_ephemeral"] != false || action["value"] != "v1" || action["action_id"] != "go" {
		t.Errorf("payload %v", p)
	}
	if user := p["user"].(map[string]any); user["id"] != f.ann.ID || user["team_id"] != f.TeamID() {
		t.Errorf("user %v", user)
	}
	if err := f.ann.Click(f.ctx, f.ch, ts, "pick", "a"); err != nil {
		t.Fatal(err)
	}
	if opt := (<-got)["actions"].([]any)[0].(map[string]any)["selected_option"].(map[string]any); opt["value"] != "a" {
		t.Errorf("selected %v", opt)
	}
	for _, err := range []error{f.ann.Click(f.ctx, f.ch, ts, "gone"), f.ann.Click(f.ctx, f.ch, ts, "pick", "z"), f.ann.Click(f.ctx, f.ch, root, "go")} {
		if !errors.Is(err, slackerr.ErrRefused) {
			t.Errorf("got %v", err)
		}
	}
	eve := f.AddUser("eve", store.Stranger("T0OTHERCO1"))
	f.Join(f.ch, eve.ID)
	if err := eve.Click(f.ctx, f.ch, ts, "go"); err != nil {
		t.Fatal(err)
	}
	if user := (<-got)["user"].(map[string]any); user["team_id"] != "T0OTHERCO1" {
		t.Errorf("PostHog/posthog#43263: %v", user)
	}
}

func TestResponseURLsAreGoodForFiveUsesAndHalfAnHour(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.ackWith(emptyAck)
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "blocks", button("go")))["ts"])
	if err := f.ann.Click(f.ctx, f.ch, ts, "go"); err != nil {
		t.Fatal(err)
	}
	res := must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", ""))
	for i := range 6 {
		_, _, err := f.api.PostMessageContext(f.ctx, "", slack.MsgOptionText("later", false), slack.MsgOptionResponseURL(res.ResponseURL, slack.ResponseTypeEphemeral))
		if (err != nil) != (i == 5) {
			t.Errorf("use %d: %v", i+1, err)
		}
	}
	if r := f.RequestsOf("response_url"); r[5].Error != "used_url" {
		t.Errorf("refused with %q", r[5].Error)
	}
	res = must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", ""))
	f.clock.Advance(store.ResponseURLTTL + time.Second)
	_, _, err := f.api.PostMessageContext(f.ctx, "", slack.MsgOptionText("x", false), slack.MsgOptionResponseURL(res.ResponseURL, slack.ResponseTypeEphemeral))
	if r := f.RequestsOf("response_url"); err == nil || r[6].Error != "expired_url" {
		t.Errorf("an old URL: %v, %q", err, r[6].Error)
	}
	if e := f.Ephemerals(f.ann.ID); len(e) != 5 {
		t.Errorf("%d ephemerals", len(e))
	}
}

func TestAResponseURLCanReplaceAndDeleteItsMessage(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	urls := make(chan string, 2)
	f.ackWith(func(p map[string]any) any {
		if p["response_url"] != nil {
			urls <- blockkit.Str(p["response_url"])
		}
		return nil
	})
	f.CallOK("chat.postEphemeral", wiretest.Form("channel", f.ch, "user", f.ann.ID, "text", "x", "blocks", button("go")))
	eph := f.Ephemerals(f.ann.ID)[0]
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "blocks", button("go")))["ts"])
	for _, where := range []string{eph.TS, ts} {
		if err := f.ann.Click(f.ctx, f.ch, where, "go"); err != nil {
			t.Fatal(err)
		}
		u := <-urls
		if _, _, err := f.api.PostMessageContext(f.ctx, "", slack.MsgOptionText("new", false), slack.MsgOptionReplaceOriginal(u)); err != nil {
			t.Fatal(err)
		}
		m, _ := f.Message(f.ch, ts)
		if e := f.Ephemerals(f.ann.ID)[0]; where == eph.TS && e.Text != "new" || where == ts && m.Text != "new" {
			t.Errorf("not replaced: %v, %v", e, m)
		}
		if _, _, err := f.api.PostMessageContext(f.ctx, "", slack.MsgOptionDeleteOriginal(u)); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := f.Message(f.ch, ts); there || !f.Ephemerals(f.ann.ID)[0].Deleted {
		t.Error("not deleted")
	}
}

func (f *fixture) newTriggerID() string {
	f.t.Helper()
	return must[SlashResult](f.t)(f.ann.Slash(f.ctx, f.ch, "/agent", "")).TriggerID
}

func TestATriggerIsGoodForOneModalWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.ackWith(emptyAck)
	f.CallFails("invalid_trigger_id", "views.open", wiretest.Form("trigger_id", "1.2.3", "view", formView))
	id := f.newTriggerID()
	f.CallOK("views.open", wiretest.Form("trigger_id", id, "view", formView))
	f.CallFails("exchanged_trigger_id", "views.open", wiretest.Form("trigger_id", id, "view", formView))
	id = f.newTriggerID()
	f.clock.Advance(3100 * time.Millisecond)
	f.CallFails("expired_trigger_id", "views.open", wiretest.Form("trigger_id", id, "view", formView))
}

func TestViewsHaveSlacksLimits(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.ackWith(emptyAck)
	with := func(key string, value any) string {
		var v map[string]any
		if err := json.Unmarshal([]byte(formView), &v); err != nil {
			t.Fatal(err)
		}
		v[key] = value
		return string(must[[]byte](t)(json.Marshal(v)))
	}
	var blocks []blockkit.Block
	for range 101 {
		blocks = append(blocks, blockkit.Block{"type": "divider"})
	}
	for name, view := range map[string]string{
		"not JSON":              "{",
		"a home tab":            homeView,
		"a long title":          with("title", blockkit.Block{"type": "plain_text", "text": strings.Repeat("x", 25)}),
		"a long submit":         with("submit", blockkit.Block{"type": "plain_text", "text": strings.Repeat("x", 25)}),
		"inputs without submit": with("submit", nil),
		"long private_metadata": with("private_metadata", strings.Repeat("x", 3001)),
		"long callback_id":      with("callback_id", strings.Repeat("x", 256)),
		"101 blocks":            with("blocks", blocks),
		"a markdown block":      with("blocks", []blockkit.Block{{"type": "markdown", "text": "x"}}),
	} {
		out, _ := f.Call("views.open", wiretest.Form("trigger_id", f.newTriggerID(), "view", view))
		if out["error"] != "invalid_arguments" || out["response_metadata"] == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
	f.CallFails("view_too_large", "views.open", wiretest.Form("trigger_id", f.newTriggerID(), "view", with("x", strings.Repeat("x", 250_000))))
	f.CallOK("views.open", wiretest.Form("trigger_id", f.newTriggerID(), "view", with("external_id", "e1")))
	f.CallFails("hash_conflict", "views.update", wiretest.Form("external_id", "e1", "hash", "old", "view", formView))
	f.CallFails("not_found", "views.update", wiretest.Form("view_id", "V0NONE", "view", formView))
	id := f.Views("ann")[0].ID
	f.CallOK("views.update", wiretest.Form("view_id", id, "hash", f.Views("ann")[0].Hash, "view", with("callback_id", "two")))
	if v := f.Views("ann")[0]; v.CallbackID != "two" || v.ID != id {
		t.Errorf("view %+v", v)
	}
}

func TestAModalIsFilledInAndAnswered(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	answers := make(chan any, 1)
	got := make(chan map[string]any, 1)
	f.ackWith(func(p map[string]any) any {
		if p["type"] != "view_submission" {
			return nil
		}
		got <- p
		return <-answers
	})
	open := func() string {
		f.CallOK("views.open", wiretest.Form("trigger_id", f.newTriggerID(), "view", formView))
		return f.Views("ann")[0].ID
	}
	submit := func(id string, values map[string]string, answer any) (map[string]string, error) {
		answers <- answer
		defer func() {
			select {
			case <-answers:
			default:
			}
			select {
			case <-got:
			default:
			}
		}()
		return f.ann.Submit(f.ctx, id, values)
	}
	id := open()
	wrong, err := submit(id, nil, nil)
	if err != nil || wrong["name"] != "Please complete this required field." {
		t.Errorf("Slack's own check: %v, %v", wrong, err)
	}
	wrong, err = submit(id, map[string]string{"name": "far too long"}, nil)
	if err != nil || wrong["name"] == "" {
		t.Errorf("max_length: %v, %v", wrong, err)
	}
	wrong, err = submit(id, map[string]string{"name": "x"}, map[string]any{"response_action": "errors", "errors": map[string]string{"name": "taken"}})
	if err != nil || !maps.Equal(wrong, map[string]string{"name": "taken"}) {
		t.Errorf("the app's check: %v, %v", wrong, err)
	}
	_, err = submit(id, map[string]string{"name": "x"}, map[string]any{"response_action": "errors", "errors": map[string]string{"intro": "no input"}})
	if !errors.Is(err, slackerr.ErrNoAnswer) {
		t.Errorf("slack-go/slack#1013: %v", err)
	}
	answers <- map[string]any{"response_action": "update", "view": json.RawMessage(strings.Replace(formView, `"form"`, `"second"`, 1))}
	if _, err := f.ann.Submit(f.ctx, id, map[string]string{"name": "x", "kind": "a"}); err != nil {
		t.Fatal(err)
	}
	p := <-got
	values := p["view"].(map[string]any)["state"].(map[string]any)["values"].(map[string]any)
	if values["name"].(map[string]any)["v"].(map[string]any)["value"] != "x" ||
		values["kind"].(map[string]any)["v"].(map[string]any)["selected_option"].(map[string]any)["value"] != "a" {
		t.Errorf("state %v", values)
	}
	if v := f.Views("ann")[0]; v.CallbackID != "second" || v.ID != id {
		t.Errorf("update: %+v", v)
	}
	if _, err := submit(id, map[string]string{"name": "x"}, map[string]any{"response_action": "push", "view": json.RawMessage(formView)}); err != nil || len(f.Views("ann")) != 2 {
		t.Errorf("push: %v, %v", f.Views("ann"), err)
	}
	if _, err := submit(f.Views("ann")[1].ID, map[string]string{"name": "x"}, nil); err != nil || len(f.Views("ann")) != 1 {
		t.Errorf("close: %v, %v", f.Views("ann"), err)
	}
	if _, err := submit(id, map[string]string{"name": "x"}, map[string]string{"response_action": "clear"}); err != nil || len(f.Views("ann")) != 0 {
		t.Errorf("clear: %v, %v", f.Views("ann"), err)
	}
	if err := f.ann.CloseView(f.ctx, open()); err != nil || len(f.Views("ann")) != 0 {
		t.Errorf("cancel: %v", err)
	}
	if _, err := f.ann.Submit(f.ctx, id, nil); !errors.Is(err, slackerr.ErrRefused) {
		t.Errorf("a closed view was submitted: %v", err)
	}
}

func TestThreeViewsAtMost(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	triggers := make(chan string, 1)
	f.ackWith(func(p map[string]any) any {
		if p["type"] == "block_actions" {
			triggers <- blockkit.Str(p["trigger_id"])
		}
		return nil
	})
	withButton := `{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":` + button("more") + `}`
	f.CallOK("views.open", wiretest.Form("trigger_id", f.newTriggerID(), "view", withButton))
	for want := range 3 {
		top := f.Views("ann")[want]
		if err := f.ann.Click(f.ctx, "", top.ID, "more"); err != nil {
			t.Fatal(err)
		}
		args := wiretest.Form("trigger_id", <-triggers, "view", withButton)
		if want == 2 {
			f.CallFails("push_limit_reached", "views.push", args)
		} else {
			f.CallOK("views.push", args)
		}
	}
}

func TestHomeIsPublishedAndOpened(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	if err := f.ann.OpenHome(f.ctx); err != nil {
		t.Fatal(err)
	}
	if _, ev := got.Event(); ev["type"] != "app_home_opened" || ev["user"] != f.ann.ID || ev["tab"] != "home" {
		t.Errorf("got %v", ev)
	}
	f.CallOK("views.publish", wiretest.Form("user_id", f.ann.ID, "view", homeView))
	f.CallFails("invalid_arguments", "views.publish", wiretest.Form("user_id", f.ann.ID, "view", formView))
	f.CallFails("hash_conflict", "views.publish", wiretest.Form("user_id", f.ann.ID, "hash", "x", "view", homeView))
	if v, ok := f.Home("ann"); !ok || v.Type != "home" {
		t.Errorf("home %+v", v)
	}
}

func TestShortcutsCarryTheirMessage(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.Shortcuts = []string{"session_menu", "new"} })
	got := make(chan slack.InteractionCallback, 2)
	f.connect(func(c *socketmode.Client, ev socketmode.Event) {
		if cb, ok := ev.Data.(slack.InteractionCallback); ok {
			got <- cb
			_ = c.AckCtx(f.ctx, ev.Request.EnvelopeID, nil)
		}
	})
	f.waitUntil("connected", func() bool { return f.Connections() == 1 })
	root := f.post("root")
	ts := f.reply(root, "reply")
	if err := f.ann.Shortcut(f.ctx, f.ch, ts, "session_menu"); err != nil {
		t.Fatal(err)
	}
	if cb := <-got; cb.Type != slack.InteractionTypeMessageAction || cb.Message.ThreadTimestamp != root || cb.MessageTs != ts || cb.CallbackID != "session_menu" {
		t.Errorf("got %+v", cb)
	}
	if err := f.ann.GlobalShortcut(f.ctx, "new"); err != nil {
		t.Fatal(err)
	}
	if cb := <-got; cb.Type != slack.InteractionTypeShortcut || cb.CallbackID != "new" || cb.TriggerID == "" {
		t.Errorf("got %+v", cb)
	}
	if err := f.ann.Shortcut(f.ctx, f.ch, ts, "other"); !errors.Is(err, slackerr.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

func TestAnAssistantStatusIsClearedByPosting(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	f.CallOK("assistant.threads.setStatus", wiretest.Form("channel_id", f.ch, "thread_ts", root, "status", "is thinking…"))
	if f.Status(f.ch, root) == "" {
		t.Error("no status")
	}
	if _, err := f.ann.Reply(f.ch, root, "and?"); err != nil {
		t.Fatal(err)
	}
	if f.Status(f.ch, root) == "" {
		t.Error("what a person writes takes it away")
	}
	f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "thread_ts", root, "text", "x"))
	if s := f.Status(f.ch, root); s != "" {
		t.Errorf("still %q", s)
	}
	off := startFixture(t, func(o *store.Options) { o.NoAssistant = true })
	off.CallFails("feature_disabled", "assistant.threads.setStatus", wiretest.Form("channel_id", off.ch, "thread_ts", root, "status", "x"))
}

func TestAPendingInteractionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.DialReady()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := f.ann.Slash(ctx, f.ch, "/agent", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

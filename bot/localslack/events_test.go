package localslack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/events"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestEachKindOfMessageHasItsEvent(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	root := f.post("root")
	payload, ev := got.Event()
	for key, want := range map[string]any{"type": "message", "text": "root", "user": f.ann.ID, "team": f.TeamID(), "ts": root,
		"event_ts": root, "channel": f.ch, "channel_type": "channel", "subtype": nil, "thread_ts": nil, "user_team": nil} {
		if ev[key] != want {
			t.Errorf("%s is %v, want %v", key, ev[key], want)
		}
	}
	if payload["type"] != "event_callback" || payload["api_app_id"] != f.AppID() || !strings.HasPrefix(blockkit.Str(payload["event_id"]), "Ev") || payload["is_ext_shared_channel"] != false {
		t.Errorf("payload %v", payload)
	}

	ts := f.reply(root, "reply")
	if _, ev = got.Event(); ev["thread_ts"] != root || ev["parent_user_id"] != f.ann.ID || ev["ts"] != ts {
		t.Errorf("reply %v", ev)
	}
	f.reply(root, "loud", Broadcast())
	if _, ev = got.Event(); ev["subtype"] != "thread_broadcast" || ev["thread_ts"] != root || ev["root"].(map[string]any)["reply_count"] != 2.0 {
		t.Errorf("openclaw/openclaw#41073: %v", ev)
	}
	f.reply(root, "caption", WithFiles(store.File{Name: "a.txt", Content: []byte("hi")}))
	_, ev = got.Event()
	if files := ev["files"].([]any); ev["subtype"] != "file_share" || ev["text"] != "caption" || files[0].(map[string]any)["name"] != "a.txt" {
		t.Errorf("spacedriveapp/spacebot#228: %v", ev)
	}
	f.reply(root, "", WithFiles(store.File{Name: "b.txt", Content: []byte("hi")}))
	if _, ev = got.Event(); ev["text"] != "" {
		t.Errorf("a file without a caption: %v", ev)
	}
	f.reply(root, "by a webhook", AsBotMessage("hook"))
	if _, ev = got.Event(); ev["subtype"] != "bot_message" || ev["user"] != nil || ev["username"] != "hook" {
		t.Errorf("errbotio/errbot#969: %v", ev)
	}
	f.reply(root, "by an app in my name", AsApp("B1", "A1"))
	if _, ev = got.Event(); ev["user"] != f.ann.ID || ev["bot_id"] != "B1" || ev["app_id"] != "A1" {
		t.Errorf("app with a user's token: %v", ev)
	}
	f.reply(root, "plain", WithoutBlocks())
	if _, ev = got.Event(); ev["blocks"] != nil {
		t.Errorf("without blocks: %v", ev)
	}
	f.reply(root, "raw", RawMessage(json.RawMessage(`{"type":"message","subtype":"hand_made"}`)))
	if _, ev = got.Event(); ev["subtype"] != "hand_made" {
		t.Errorf("raw: %v", ev)
	}
	f.SendMessageReplied(f.ch, root)
	if _, ev = got.Event(); ev["subtype"] != "message_replied" || ev["hidden"] != true {
		t.Errorf("replied: %v", ev)
	}
}

func TestChangesHaveEventsOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	root := f.post("see https://example.com/a")
	got.Event()
	if err := f.Unfurl(f.ch, root); err != nil {
		t.Fatal(err)
	}
	_, ev := got.Event()
	now, before := ev["message"].(map[string]any), ev["previous_message"].(map[string]any)
	if ev["subtype"] != "message_changed" || ev["hidden"] != true || now["text"] != before["text"] || now["attachments"] == nil || now["edited"] != nil {
		t.Errorf("NousResearch/hermes-agent#95417: %v", ev)
	}
	if err := f.ann.Edit(f.ch, root, "other"); err != nil {
		t.Fatal(err)
	}
	_, ev = got.Event()
	now = ev["message"].(map[string]any)
	if now["text"] != "other" || now["edited"].(map[string]any)["user"] != f.ann.ID || ev["ts"] == root {
		t.Errorf("edit: %v", ev)
	}
	reply := f.reply(root, "gone soon")
	got.Event()
	if err := f.ann.Delete(f.ch, reply); err != nil {
		t.Fatal(err)
	}
	if _, ev = got.Event(); ev["subtype"] != "message_deleted" || ev["deleted_ts"] != reply || f.Thread(f.ch, root)[0].ReplyCount != 0 {
		t.Errorf("delete: %v", ev)
	}
	f.reply(root, "stays")
	got.Event()
	if err := f.ann.Delete(f.ch, root); err != nil {
		t.Fatal(err)
	}
	if _, ev = got.Event(); ev["subtype"] != "message_changed" || ev["message"].(map[string]any)["subtype"] != "tombstone" {
		t.Errorf("a root with replies leaves a tombstone: %v", ev)
	}
	if err := f.AddUser("bob").Delete(f.ch, root); err == nil {
		t.Error("somebody else's message was deleted")
	}
}

func TestAMentionComesTwiceWithOneTimestamp(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	ts := f.post("@the-loop restart, please")
	_, a := got.Event()
	_, b := got.Event()
	if a["type"] != "message" || b["type"] != "app_mention" || a["ts"] != ts || b["ts"] != ts || b["channel_type"] != nil {
		t.Errorf("chenhg5/cc-connect#1822: %v and %v", a, b)
	}
	if a["text"] != "<@"+f.BotUserID()+"> restart, please" {
		t.Error(a["text"])
	}
}

func TestTheBotReceivesNothingFromChannelsItIsNotIn(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	away := f.AddChannel("away", store.Members(f.ann.ID))
	must[string](t)(f.ann.Post(away.ID, "@the-loop can you hear me?"))
	f.post("here")
	if _, ev := got.Event(); ev["text"] != "here" {
		t.Fatalf("heard %v", ev)
	}
	f.Invite(away.ID, f.BotUserID())
	if _, ev := got.Event(); ev["subtype"] != "channel_join" {
		t.Errorf("join: %v", ev)
	}
	if _, ev := got.Event(); ev["type"] != "member_joined_channel" || ev["user"] != f.BotUserID() {
		t.Errorf("join: %v", ev)
	}
	must[string](t)(f.ann.Post(away.ID, "now?"))
	if _, ev := got.Event(); ev["text"] != "now?" {
		t.Errorf("heard %v", ev)
	}
	f.Leave(away.ID, f.BotUserID())
	if _, ev := got.Event(); ev["type"] != "member_left_channel" {
		t.Errorf("leave: %v", ev)
	}
	must[string](t)(f.ann.Post(away.ID, "and now?"))
	f.Archive(f.ch)
	if _, ev := got.Event(); ev["type"] != "channel_archive" {
		t.Errorf("archive: %v", ev)
	}
}

func TestOnlySubscribedEventsWithTheirScopeAreSent(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) {
		o.Events = []string{"message.channels", "message.groups"}
		o.Scopes = []string{"channels:history", "app_mentions:read"}
	})
	got := f.DialReady()
	private := f.AddChannel("private", store.Private(), store.Members(f.ann.ID, f.BotUserID()))
	must[string](t)(f.ann.Post(private.ID, "no scope for this"))
	must[string](t)(f.ann.Post(f.OpenIM(f.ann.ID).ID, "not subscribed to this"))
	f.post("@the-loop not subscribed to mentions")
	f.post("end")
	if _, ev := got.Event(); ev["type"] != "message" || ev["channel"] != f.ch {
		t.Errorf("got %v", ev)
	}
	if _, ev := got.Event(); ev["text"] != "end" {
		t.Errorf("got %v", ev)
	}
}

func TestStrangersShowTheirTeam(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	eve := f.AddUser("eve", store.Stranger("T0OTHERCO1"), store.Named("Ann", "ann"))
	shared := f.AddChannel("shared", store.ExtShared("T0OTHERCO1"), store.Members(f.BotUserID(), eve.ID))
	must[string](t)(eve.Post(shared.ID, "hello"))
	payload, ev := got.Event()
	if payload["is_ext_shared_channel"] != true || payload["team_id"] != f.TeamID() {
		t.Errorf("payload %v", payload)
	}
	if ev["user_team"] != "T0OTHERCO1" || ev["source_team"] != "T0OTHERCO1" || ev["team"] != "T0OTHERCO1" {
		t.Errorf("PostHog/posthog#43263: %v", ev)
	}
	if u, err := f.api.GetUserInfoContext(f.ctx, eve.ID); err != nil || !u.IsStranger || u.TeamID != "T0OTHERCO1" || u.Profile.DisplayName != "ann" {
		t.Errorf("users.info: %+v, %v", u, err)
	}
	hidden := f.AddUser("mallory", store.Stranger("T0OTHERCO1"))
	f.CallFails("user_not_visible", "users.info", wiretest.Form("user", hidden.ID))
}

func TestUsersInfoReportsTheKindOfAccount(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	guest, single := f.AddUser("gus", store.Guest()), f.AddUser("sue", store.SingleChannelGuest())
	gone, robot := f.AddUser("gone", store.Deleted()), f.AddUser("robot", store.Bot())
	f.CallFails("user_not_found", "users.info", wiretest.Form("user", "U0NOBODY"))
	for id, want := range map[string][4]bool{guest.ID: {true}, single.ID: {true, true}, gone.ID: {false, false, true}, robot.ID: {false, false, false, true}, f.ann.ID: {}, f.BotUserID(): {false, false, false, true}} {
		u, err := f.api.GetUserInfoContext(f.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]bool{u.IsRestricted, u.IsUltraRestricted, u.Deleted, u.IsBot}; got != want || u.TeamID != f.TeamID() {
			t.Errorf("%s is %v, want %v", u.Name, got, want)
		}
	}
	f.Join(f.ch, robot.ID)
	ts := must[string](t)(robot.Post(f.ch, "beep"))
	if m, _ := f.Message(f.ch, ts); m.BotID == "" || m.BotID == f.BotID() || m.User != robot.ID {
		t.Errorf("another app's bot posted %+v", m)
	}
	if _, err := gone.Post(f.ch, "boo"); err == nil {
		t.Error("a deactivated member posted")
	}
	outsider := f.AddUser("out")
	if _, err := outsider.Post(f.ch, "boo"); err == nil {
		t.Error("somebody outside the channel posted")
	}
	id := f.AddGroup("admins", f.ann.ID)
	groups, err := f.api.GetUserGroupsContext(f.ctx)
	if err != nil || len(groups) != 1 || groups[0].ID != id || groups[0].Handle != "admins" {
		t.Errorf("groups %v, %v", groups, err)
	}
}

func TestAutoUnfurlEditsWhatHasALink(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.AutoUnfurl = true; o.MessageReplied = true })
	got := f.DialReady()
	root := f.post("no link")
	got.Event()
	f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "<https://example.com/>", "thread_ts", root))
	_, own := got.Event()
	_, replied := got.Event()
	_, ev := got.Event()
	if own["bot_id"] != f.BotID() || replied["subtype"] != "message_replied" || ev["message"].(map[string]any)["bot_id"] != f.BotID() {
		t.Errorf("nearform/slack-knowledgebase-chatgpt-responder#983: %v, %v, %v", own, replied, ev)
	}
}

func TestWaitingEndsWithTheMessageOrTheContext(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	got := make(chan store.Message, 2)
	go func() {
		m, _ := f.WaitForReply(f.ctx, f.ch, root, func(m store.Message) bool { return m.Text == "b" })
		got <- m
	}()
	go func() {
		m, _ := f.WaitForMessage(f.ctx, f.ch, func(m store.Message) bool { return m.Text == "b" })
		got <- m
	}()
	f.reply(root, "a")
	ts := f.reply(root, "b")
	for range 2 {
		if m := <-got; m.TS != ts {
			t.Errorf("got %+v", m)
		}
	}
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := f.WaitForMessage(ctx, f.ch, func(store.Message) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReactionsFollowSlacksRules(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates)
	ts := f.post("x")
	with := func(name string) []string { return []string{"channel", f.ch, "timestamp", ts, "name", name} }
	f.CallOK("reactions.add", wiretest.Form(with("eyes")...))
	f.CallFails("already_reacted", "reactions.add", wiretest.Form(with("eyes")...))
	f.CallFails("invalid_name", "reactions.add", wiretest.Form(with(":eyes:")...))
	f.CallFails("no_reaction", "reactions.remove", wiretest.Form(with("tada")...))
	f.CallFails("message_not_found", "reactions.add", wiretest.Form("channel", f.ch, "timestamp", "1.000001", "name", "eyes"))
	f.CallFails("bad_timestamp", "reactions.add", wiretest.Form("channel", f.ch, "timestamp", "soon", "name", "eyes"))
	f.CallFails("no_item_specified", "reactions.add", wiretest.Form("channel", f.ch, "name", "eyes"))
	if err := f.ann.React(f.ch, ts, "eyes"); err != nil {
		t.Fatal(err)
	}
	if r := f.Reactions(f.ch, ts); len(r) != 1 || r[0].Count != 2 || !f.HasReaction(f.ch, ts, "eyes") {
		t.Errorf("reactions %v", r)
	}
	f.CallOK("reactions.get", wiretest.Form("channel", f.ch, "timestamp", ts))
	f.CallOK("reactions.remove", wiretest.Form(with("eyes")...))
	if f.HasReaction(f.ch, ts, "eyes") {
		t.Error("it is still there")
	}
	for i := range events.MaxReactionsPerUser {
		f.CallOK("reactions.add", wiretest.Form(with("e"+string(rune('a'+i)))...))
	}
	f.CallFails("too_many_reactions", "reactions.add", wiretest.Form(with("more")...))
	f.Archive(f.ch)
	f.CallFails("is_archived", "reactions.add", wiretest.Form(with("late")...))
}

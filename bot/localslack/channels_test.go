package localslack

import (
	"encoding/json"
	"testing"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

func TestConversationsOfEveryKindHaveTheirEvents(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.dialReady()
	bob := f.AddUser("bob")
	for want, ch := range map[store.ChannelKind]store.Channel{
		store.GroupMessage:   f.AddChannel("", store.Mpim(), store.Members(f.ann.ID, bob.ID, f.BotUserID())),
		store.PrivateChannel: f.AddChannel("private", store.Private(), store.Members(f.ann.ID, f.BotUserID())),
		store.DirectMessage:  f.OpenIM("ann"),
	} {
		must[string](t)(f.ann.Post(ch.ID, "hi"))
		if _, ev := got.event(); ev["channel_type"] != string(want) || ev["channel"] != ch.ID {
			t.Errorf("%s: %v", want, ev)
		}
	}
	im := f.callOK("conversations.open", form("users", f.ann.ID))["channel"].(map[string]any)
	if im["id"] != f.OpenIM(f.ann.ID).ID {
		t.Errorf("opened %v", im)
	}
	f.callFails("user_not_found", "conversations.open", form("users", "U0NOBODY"))
	if n := len(f.Channels()); n != 4 {
		t.Errorf("%d conversations", n)
	}
}

func TestChannelsChangeWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.Archive(f.ch)
	f.callFails("is_archived", "chat.postMessage", form("channel", f.ch, "text", "x"))
	if _, err := f.ann.Post(f.ch, "x"); err == nil {
		t.Error("somebody posted in an archived channel")
	}
	f.Unarchive(f.ch)
	ts := f.post("x")
	f.ShareChannel(f.ch, "T0OTHERCO1")
	if c := must[*slack.Channel](t)(f.api.GetConversationInfoContext(f.ctx, &slack.GetConversationInfoInput{ChannelID: f.ch})); !c.IsExtShared {
		t.Errorf("channel %+v", c)
	}
	if m, _ := f.Message(f.ch, f.post("y")); m.UserTeam != f.TeamID() {
		t.Errorf("a member in a shared channel: %+v", m)
	}
	if err := f.DeleteMessage(f.ch, ts); err != nil {
		t.Error(err)
	}
	if err := f.DeleteMessage(f.ch, ts); err == nil {
		t.Error("deleted twice")
	}
	if n := len(f.MessagesSince(f.ch, ts)); n != 1 {
		t.Errorf("%d messages since", n)
	}
}

func TestUsersAreListed(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.AddUser("gus", store.Guest())
	f.AddUser("far", store.Stranger("T0OTHERCO1"))
	list := f.callOK("users.list", form())["members"].([]any)
	if len(list) != 3 {
		t.Errorf("the bot sees %d of %d", len(list), len(f.People()))
	}
	page := f.callOK("users.list", form("limit", "2"))
	next := blockkit.Str(page["response_metadata"].(map[string]any)["next_cursor"])
	if n := len(f.callOK("users.list", form("limit", "2", "cursor", next))["members"].([]any)); n != 1 {
		t.Errorf("%d on the second page", n)
	}
	f.callFails("invalid_limit", "users.list", form("limit", "many"))
	var kinds [3]bool
	for _, p := range f.People() {
		kinds = [3]bool{kinds[0] || p.IsGuest(), kinds[1] || p.IsStranger(), kinds[2] || p.IsBot()}
		if p.IsDeleted() {
			t.Errorf("%s is deleted", p.Name)
		}
	}
	if kinds != [3]bool{true, true, true} {
		t.Errorf("guest, stranger, bot: %v", kinds)
	}
}

func TestEveryKindOfInputHasItsState(t *testing.T) {
	t.Parallel()
	options := []any{
		blockkit.Block{"value": "a", "text": blockkit.Block{"type": "plain_text", "text": "A"}},
		blockkit.Block{"value": "b", "text": blockkit.Block{"type": "plain_text", "text": "B"}},
	}
	for kind, c := range map[string]struct{ value, want string }{
		"plain_text_input":     {"x", `{"value":"x"}`},
		"radio_buttons":        {"b", `{"selected_option":{"text":{"text":"B","type":"plain_text"},"value":"b"}}`},
		"checkboxes":           {"a,b", `{"selected_options":[{"text":{"text":"A","type":"plain_text"},"value":"a"},{"text":{"text":"B","type":"plain_text"},"value":"b"}]}`},
		"users_select":         {"U1", `{"selected_user":"U1"}`},
		"conversations_select": {"C1", `{"selected_conversation":"C1"}`},
		"channels_select":      {"C1", `{"selected_channel":"C1"}`},
		"datepicker":           {"2026-01-01", `{"selected_date":"2026-01-01"}`},
	} {
		got, err := blockkit.SelectedState(blockkit.Block{"type": kind, "options": options}, c.value)
		if raw := must[[]byte](t)(json.Marshal(got)); err != nil || string(raw) != c.want {
			t.Errorf("%s: %s, %v", kind, raw, err)
		}
	}
	if _, err := blockkit.SelectedState(blockkit.Block{"type": "hologram"}, "x"); err == nil {
		t.Error("an unknown element was filled in")
	}
	grouped := blockkit.Block{"type": "static_select", "option_groups": []any{blockkit.Block{"options": options}}}
	if _, err := blockkit.SelectedState(grouped, "b"); err != nil {
		t.Error(err)
	}
}

func TestConfirmDialogsAreChecked(t *testing.T) {
	t.Parallel()
	text := func(s string) blockkit.Block { return blockkit.Block{"type": "plain_text", "text": s} }
	with := func(confirm blockkit.Block) string {
		el := blockkit.Block{"type": "button", "text": text("x"), "confirm": confirm}
		return string(must[[]byte](t)(json.Marshal([]blockkit.Block{{"type": "actions", "elements": []blockkit.Block{el}}})))
	}
	good := blockkit.Block{"title": text("Sure?"), "text": text("It goes away."), "confirm": text("Yes"), "deny": text("No")}
	if err := blockkit.Check(with(good), false); err != nil {
		t.Error(err)
	}
	delete(good, "deny")
	if err := blockkit.Check(with(good), false); slackerr.CodeOf(err) != "invalid_blocks" {
		t.Errorf("got %v", err)
	}
}

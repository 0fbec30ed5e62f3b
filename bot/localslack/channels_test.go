package localslack

import (
	"testing"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestConversationsOfEveryKindHaveTheirEvents(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.DialReady()
	bob := f.AddUser("bob")
	for want, ch := range map[store.ChannelKind]store.Channel{
		store.GroupMessage:   f.AddChannel("", store.Mpim(), store.Members(f.ann.ID, bob.ID, f.BotUserID())),
		store.PrivateChannel: f.AddChannel("private", store.Private(), store.Members(f.ann.ID, f.BotUserID())),
		store.DirectMessage:  f.OpenIM("ann"),
	} {
		must[string](t)(f.ann.Post(ch.ID, "hi"))
		if _, ev := got.Event(); ev["channel_type"] != string(want) || ev["channel"] != ch.ID {
			t.Errorf("%s: %v", want, ev)
		}
	}
	im := f.CallOK("conversations.open", wiretest.Form("users", f.ann.ID))["channel"].(map[string]any)
	if im["id"] != f.OpenIM(f.ann.ID).ID {
		t.Errorf("opened %v", im)
	}
	f.CallFails("user_not_found", "conversations.open", wiretest.Form("users", "U0NOBODY"))
	if n := len(f.Channels()); n != 4 {
		t.Errorf("%d conversations", n)
	}
}

func TestChannelsChangeWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.Archive(f.ch)
	f.CallFails("is_archived", "chat.postMessage", wiretest.Form("channel", f.ch, "text", "x"))
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
	list := f.CallOK("users.list", wiretest.Form())["members"].([]any)
	if len(list) != 3 {
		t.Errorf("the bot sees %d of %d", len(list), len(f.People()))
	}
	page := f.CallOK("users.list", wiretest.Form("limit", "2"))
	next := blockkit.Str(page["response_metadata"].(map[string]any)["next_cursor"])
	if n := len(f.CallOK("users.list", wiretest.Form("limit", "2", "cursor", next))["members"].([]any)); n != 1 {
		t.Errorf("%d on the second page", n)
	}
	f.CallFails("invalid_limit", "users.list", wiretest.Form("limit", "many"))
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

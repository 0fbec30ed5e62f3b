package localslack

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func texts(msgs []slack.Message) (out []string) {
	for _, m := range msgs {
		out = append(out, m.Text)
	}
	return out
}

func assertEqual(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestRepliesStartWithTheRootOnEveryPage(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	var ts []string
	for i := range 5 {
		ts = append(ts, f.reply(root, fmt.Sprint(i)))
	}
	read := func(p slack.GetConversationRepliesParameters) ([]slack.Message, string) {
		t.Helper()
		p.ChannelID, p.Timestamp = f.ch, root
		msgs, more, next, err := f.api.GetConversationRepliesContext(f.ctx, &p)
		if err != nil || more != (next != "") {
			t.Fatalf("more %v, next %q, %v", more, next, err)
		}
		return msgs, next
	}
	all, _ := read(slack.GetConversationRepliesParameters{})
	assertEqual(t, "all", texts(all), []string{"root", "0", "1", "2", "3", "4"})
	if all[0].ReplyCount != 5 || all[0].LatestReply != ts[4] || all[1].ThreadTimestamp != root || all[1].ParentUserId != f.ann.ID {
		t.Errorf("root %+v", all[0])
	}
	page, next := read(slack.GetConversationRepliesParameters{Limit: 3})
	assertEqual(t, "first page", texts(page), []string{"root", "0", "1"})
	page, next = read(slack.GetConversationRepliesParameters{Limit: 3, Cursor: next})
	assertEqual(t, "second page", texts(page), []string{"root", "2", "3"})
	page, next = read(slack.GetConversationRepliesParameters{Limit: 3, Cursor: next})
	assertEqual(t, "third page", texts(page), []string{"root", "4"})
	if next != "" {
		t.Error("a cursor after the last page")
	}
	page, _ = read(slack.GetConversationRepliesParameters{Oldest: ts[1]})
	assertEqual(t, "oldest", texts(page), []string{"root", "2", "3", "4"})
	page, _ = read(slack.GetConversationRepliesParameters{Oldest: ts[1], Latest: ts[3], Inclusive: true})
	assertEqual(t, "inclusive", texts(page), []string{"root", "1", "2", "3"})
	page, _ = read(slack.GetConversationRepliesParameters{Oldest: ts[4]})
	assertEqual(t, "nothing new", texts(page), []string{"root"})
}

func TestRepliesCanComeNewestPagesFirst(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.RepliesNewestFirst = true })
	root := f.post("root")
	var last string
	for i := range 5 {
		last = f.reply(root, fmt.Sprint(i))
	}
	next := ""
	for _, want := range [][]string{{"root", "3", "4"}, {"root", "1", "2"}, {"root", "0"}} {
		msgs, more, cursor, err := f.api.GetConversationRepliesContext(f.ctx, &slack.GetConversationRepliesParameters{ChannelID: f.ch, Timestamp: last, Limit: 3, Cursor: next})
		if err != nil || more != (want[1] != "0") {
			t.Fatalf("more %v, %v", more, err)
		}
		assertEqual(t, "page", texts(msgs), want)
		next = cursor
	}
}

func TestRepliesRefuseUnknownThreadsAndBadArguments(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.CallFails("thread_not_found", "conversations.replies", wiretest.Form("channel", f.ch, "ts", "1.000001"))
	f.CallFails("invalid_cursor", "conversations.replies", wiretest.Form("channel", f.ch, "ts", f.post("x"), "cursor", "zzz"))
	f.CallFails("invalid_ts_oldest", "conversations.replies", wiretest.Form("channel", f.ch, "ts", f.post("x"), "oldest", "yesterday"))
	away := f.AddChannel("away", store.Members(f.ann.ID))
	ts := must[string](t)(f.ann.Post(away.ID, "x"))
	f.CallFails("not_in_channel", "conversations.replies", wiretest.Form("channel", away.ID, "ts", ts))
	f.CallFails("not_in_channel", "conversations.history", wiretest.Form("channel", away.ID))
}

func TestHistoryIsNewestFirstWithoutReplies(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	a := f.post("a")
	f.reply(a, "a1")
	f.reply(a, "a2", Broadcast())
	b := f.post("b")
	f.post("c")
	read := func(p slack.GetConversationHistoryParameters) *slack.GetConversationHistoryResponse {
		t.Helper()
		p.ChannelID = f.ch
		return must[*slack.GetConversationHistoryResponse](t)(f.api.GetConversationHistoryContext(f.ctx, &p))
	}
	all := read(slack.GetConversationHistoryParameters{})
	assertEqual(t, "all", texts(all.Messages), []string{"c", "b", "a2", "a"})
	page := read(slack.GetConversationHistoryParameters{Limit: 3})
	assertEqual(t, "first page", texts(page.Messages), []string{"c", "b", "a2"})
	page = read(slack.GetConversationHistoryParameters{Limit: 3, Cursor: page.ResponseMetaData.NextCursor})
	assertEqual(t, "second page", texts(page.Messages), []string{"a"})
	assertEqual(t, "between", texts(read(slack.GetConversationHistoryParameters{Oldest: a, Latest: b}).Messages), []string{"a2"})
	assertEqual(t, "one message", texts(read(slack.GetConversationHistoryParameters{Oldest: b, Latest: b, Inclusive: true}).Messages), []string{"b"})
}

func TestOneMalformedBlockHitsTheWholePage(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	f.reply(root, "good")
	f.reply(root, "bad", MalformedBlocks())
	_, _, _, err := f.api.GetConversationRepliesContext(f.ctx, &slack.GetConversationRepliesParameters{ChannelID: f.ch, Timestamp: root})
	if err == nil {
		t.Error("slack-go has become lenient; the workspace must still send what it cannot read")
	}
	out := f.CallOK("conversations.replies", wiretest.Form("channel", f.ch, "ts", root))
	if n := len(out["messages"].([]any)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

func TestConversationsInfoReportsTheKind(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	eve := f.AddUser("eve", store.Stranger("T0OTHERCO1"))
	shared := f.AddChannel("shared", store.ExtShared("T0OTHERCO1"), store.Members(f.ann.ID, eve.ID))
	secret := f.AddChannel("secret", store.Private(), store.Members(f.ann.ID))
	inside := f.AddChannel("inside", store.Private(), store.Members(f.BotUserID()))
	old := f.AddChannel("old", store.Archived())
	info := func(id string) *slack.Channel {
		t.Helper()
		return must[*slack.Channel](t)(f.api.GetConversationInfoContext(f.ctx, &slack.GetConversationInfoInput{ChannelID: id, IncludeNumMembers: true}))
	}
	if c := info(f.ch); !c.IsMember || !c.IsChannel || c.IsExtShared || c.IsArchived || c.NumMembers != 2 || c.Name != "general" {
		t.Errorf("general is %+v", c)
	}
	if c := info(shared.ID); c.IsMember || !c.IsExtShared || c.NumMembers != 2 {
		t.Errorf("shared is %+v", c)
	}
	if c := info(inside.ID); !c.IsPrivate || !c.IsGroup || !c.IsMember {
		t.Errorf("inside is %+v", c)
	}
	if c := info(old.ID); !c.IsArchived {
		t.Errorf("old is %+v", c)
	}
	if c := info(f.OpenIM(f.ann.ID).ID); !c.IsIM || c.User != f.ann.ID {
		t.Errorf("the direct message is %+v", c)
	}
	f.CallFails("channel_not_found", "conversations.info", wiretest.Form("channel", secret.ID))
	f.CallFails("channel_not_found", "conversations.info", wiretest.Form("channel", "general"))
	members, next, err := f.api.GetUsersInConversationContext(f.ctx, &slack.GetUsersInConversationParameters{ChannelID: f.ch, Limit: 1})
	if err != nil || len(members) != 1 || next == "" {
		t.Errorf("members %v, next %q, %v", members, next, err)
	}
	list, _, err := f.api.GetConversationsContext(f.ctx, &slack.GetConversationsParameters{Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true})
	if err != nil || len(list) != 3 {
		t.Errorf("list has %d, %v", len(list), err)
	}
	f.CallFails("invalid_types", "conversations.list", wiretest.Form("types", "channels"))
}

func TestTimestampsAreUniqueWhenTheClockStands(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	a, b := f.post("a"), f.post("b")
	if a >= b || !slacktime.TSTime(a).Equal(startTime) {
		t.Errorf("%s, %s", a, b)
	}
}

func TestAThousandThreadsAndTenThousandMessages(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates, func(o *store.Options) { o.Events = []string{} })
	var roots []string
	for i := range 1000 {
		roots = append(roots, f.post(fmt.Sprint("root ", i)))
	}
	for i := range 9000 {
		f.reply(roots[i%1000], fmt.Sprint(i))
	}
	for _, root := range roots[:50] {
		out := f.CallOK("conversations.replies", wiretest.Form("channel", f.ch, "ts", root, "oldest", root))
		if n := len(out["messages"].([]any)); n != 10 {
			t.Fatalf("%d messages in a thread", n)
		}
	}
	if n := len(f.Messages(f.ch)); n != 10_000 {
		t.Errorf("%d messages", n)
	}
}

func BenchmarkReplies(b *testing.B) {
	w := New(store.Options{RateLimits: store.RateLimitsOff, Events: []string{}})
	ann := w.AddUser("ann")
	ch := w.AddChannel("general", store.Members(ann.ID, w.BotUserID())).ID
	root, err := ann.Post(ch, "root")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ann.Reply(ch, root, "some words with a https://example.com/ link"); err != nil {
			b.Fatal(err)
		}
	}
}

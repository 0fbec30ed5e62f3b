package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/authz"
	"the-loop/bot/localslack"
	"the-loop/bot/slack/lenientjson"
)

// routeOne routes one message event and returns what was called.
func routeOne(x *env, inner string) string {
	x.t.Helper()
	before := len(x.recorder.all())
	x.routeEvent(inner)
	return strings.Join(x.recorder.all()[before:], "; ")
}

// replyEvent is an inner event of a reply by Ann, with more fields.
func replyEvent(x *env, more string) string {
	return fmt.Sprintf(`{"type":"message","channel":"C1","user":%q,"ts":"2.000001","thread_ts":"1.000001","text":"hi","team":%q%s}`, x.ann.ID, x.TeamID(), more)
}

func TestMessagesAreRouted(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	home := x.TeamID()
	changed := func(now, before string) string {
		return fmt.Sprintf(`{"type":"message","subtype":"message_changed","hidden":true,"channel":"C1","ts":"3.0","message":%s,"previous_message":%s}`, now, before)
	}
	msg := func(text, more string) string {
		return fmt.Sprintf(`{"type":"message","user":%q,"ts":"2.000001","thread_ts":"1.000001","text":%q,"team":%q%s}`, x.ann.ID, text, home, more)
	}
	const heard = "heard 2.000001"
	for _, c := range []struct{ name, inner, want string }{
		{"a reply", replyEvent(x, ``), heard},
		{"a caption with files (spacebot#228)", replyEvent(x, `,"subtype":"file_share","files":[{"name":"a"}]`), heard},
		{"a reply also sent to the channel (openclaw/openclaw#41073)", replyEvent(x, `,"subtype":"thread_broadcast","root":{}`), heard},
		{"/me", replyEvent(x, `,"subtype":"me_message"`), heard},
		{"nulls and nonsense in fields that do not matter", replyEvent(x, `,"bot_id":null,"blocks":{"x":1},"files":"none","edited":[1]`), heard},
		{"top-level", fmt.Sprintf(`{"type":"message","channel":"C1","user":%q,"ts":"2.0","text":"hi"}`, x.ann.ID), "dropped top-level"},
		{"a root with replies", fmt.Sprintf(`{"type":"message","channel":"C1","user":%q,"ts":"1.0","thread_ts":"1.0","text":"hi"}`, x.ann.ID), "dropped top-level"},
		{"a bot", replyEvent(x, `,"bot_id":"B1"`), "dropped bot-authored"},
		{"an app with a person's token", replyEvent(x, `,"app_id":"A1"`), "dropped bot-authored"},
		{"a bot's profile", replyEvent(x, `,"bot_profile":{"id":"B1"}`), "dropped bot-authored"},
		{"bot_message without a user (errbot#969)", `{"type":"message","subtype":"bot_message","channel":"C1","ts":"2.0","thread_ts":"1.0","text":"hi"}`, "dropped bot-authored"},
		{"ourselves", fmt.Sprintf(`{"type":"message","channel":"C1","user":%q,"ts":"2.0","thread_ts":"1.0","text":"hi"}`, x.BotUserID()), "dropped bot-authored"},
		{"our own broadcast (slack-go#792)", fmt.Sprintf(`{"type":"message","subtype":"thread_broadcast","channel":"C1","user":%q,"ts":"2.0","thread_ts":"1.0","text":"hi"}`, x.BotUserID()), "dropped bot-authored"},
		{"Slackbot", `{"type":"message","channel":"C1","user":"USLACKBOT","ts":"2.0","thread_ts":"1.0","text":"hi"}`, "dropped bot-authored"},
		{"nobody", `{"type":"message","channel":"C1","ts":"2.0","thread_ts":"1.0","text":"hi"}`, "dropped no-author"},
		{"a join", replyEvent(x, `,"subtype":"channel_join"`), "dropped not-said"},
		{"a subtype of next year", replyEvent(x, `,"subtype":"hologram"`), "dropped not-said"},
		{"message_replied", `{"type":"message","subtype":"message_replied","hidden":true,"channel":"C1","ts":"1.0","message":{}}`, ""},
		{"no channel", `{"type":"message","user":"U1","ts":"2.0","thread_ts":"1.0"}`, "dropped unreadable; catchupall"},
		{"a mention, which comes as a message too (chenhg5/cc-connect#1822)", `{"type":"app_mention","channel":"C1","user":"U1","ts":"2.0","thread_ts":"1.0","text":"<@U0>"}`, ""},
		{"an event of next year", `{"type":"hologram_shown","channel":"C1"}`, ""},
		{"an event that is not ours", `{"type":"reaction_added","user":"U1"}`, ""},

		{"an edit", changed(msg("new", `,"edited":{"ts":"3.0"}`), msg("old", "")), "edited 2.000001"},
		{"a preview (hermes-agent#95417)", changed(msg("https://x", `,"attachments":[{}]`), msg("https://x", "")), "dropped unfurl"},
		{"a preview that wraps the link", changed(msg("<https://x.io>", `,"attachments":[{}]`), msg("https://x.io", "")), "dropped unfurl"},
		{"a preview of an edited message", changed(msg("b", `,"edited":{"ts":"3.0"},"attachments":[{}]`), msg("b", `,"edited":{"ts":"3.0"}`)), "dropped unfurl"},
		{"a preview that looks like a card", changed(msg("x", `,"attachments":[{"title":"T"}]`), msg("x", "")), "dropped unfurl"},
		{"an edit of a card", changed(msg("x", `,"edited":{"ts":"3.0"},"attachments":[{"title":"T"}]`), msg("x", "")), "edited 2.000001"},
		{"an edit without what was before", changed(msg("new", `,"edited":{"ts":"3.0"}`), `null`), "edited 2.000001"},
		{"a change without what was before", changed(msg("new", ``), `null`), "dropped unfurl"},
		{"our own update", changed(msg("new", `,"bot_id":"B1"`), msg("old", `,"bot_id":"B1"`)), "dropped bot-authored"},
		{"a root that became a tombstone", changed(`{"subtype":"tombstone","ts":"1.000001","thread_ts":"1.000001","user":"USLACKBOT"}`, `{}`), "rootgone C1 1.000001"},
		{"a reply that became a tombstone", changed(`{"subtype":"tombstone","ts":"2.0","thread_ts":"1.0","user":"USLACKBOT"}`, `{}`), "withdrawn C1 1.0 2.0"},
		{"an edited root", changed(`{"user":"U1","ts":"1.0","text":"b"}`, `{"user":"U1","ts":"1.0","text":"a"}`), "dropped top-level"},
		{"a deleted reply", `{"type":"message","subtype":"message_deleted","channel":"C1","ts":"3.0","deleted_ts":"2.0","previous_message":{"user":"U1","ts":"2.0","thread_ts":"1.0","text":"hi"}}`, "withdrawn C1 1.0 2.0"},
		{"a deleted root", `{"type":"message","subtype":"message_deleted","channel":"C1","ts":"3.0","deleted_ts":"1.0","previous_message":{"user":"U1","ts":"1.0","thread_ts":"1.0","bot_id":"B1"}}`, "rootgone C1 1.0"},
		{"something deleted, and nothing said of it", `{"type":"message","subtype":"message_deleted","channel":"C1","ts":"3.0","deleted_ts":"1.0"}`, "rootgone C1 1.0"},
		{"a deleted message of a bot", `{"type":"message","subtype":"message_deleted","channel":"C1","ts":"3.0","deleted_ts":"2.0","previous_message":{"bot_id":"B1","ts":"2.0","thread_ts":"1.0"}}`, "dropped bot-authored"},

		{"an archived channel", `{"type":"channel_archive","channel":"C1","user":"U1"}`, "notice archived C1 "},
		{"an archived private channel", `{"type":"group_archive","channel":"C1"}`, "notice archived C1 "},
		{"somebody left", `{"type":"member_left_channel","user":"U1","channel":"C1"}`, ""},
		{"the bot left", fmt.Sprintf(`{"type":"member_left_channel","user":%q,"channel":"C1"}`, x.BotUserID()), "notice left C1 "},
		{"a new channel id", `{"type":"channel_id_changed","old_channel_id":"G1","new_channel_id":"C1"}`, "notice channel_id G1 C1"},
		{"the token revoked", `{"type":"tokens_revoked","tokens":{"oauth":[],"bot":["U1"]}}`, "notice revoked  "},
		{"somebody's own token revoked", `{"type":"tokens_revoked","tokens":{"oauth":["U1"],"bot":[]}}`, ""},
		{"uninstalled", `{"type":"app_uninstalled"}`, "notice uninstalled  "},
	} {
		if got := routeOne(x, c.inner); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestADropNamesWhatAndWhoButNotTheText(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	x.routeEvent(replyEvent(x, `,"bot_id":"B1"`))
	want := Dropped{Reason: "bot-authored", Channel: "C1", Thread: "1.000001", TS: "2.000001", User: x.ann.ID}
	if diff := cmp.Diff(want, x.recorder.lastDrop()); diff != "" {
		t.Error(diff)
	}
}

func TestAnyForeignTeamMakesAnAuthorForeign(t *testing.T) {
	t.Parallel()
	self := Self{Team: "T1", User: "U0"}
	grid := Self{Team: "T1", Enterprise: "E1", User: "U0"}
	for _, c := range []struct {
		fields string
		self   Self
		want   string
	}{
		{`{"team":"T1"}`, self, "T1"},
		{`{"team":"T1","user_team":"T9","source_team":"T9"}`, self, "T9"},
		{`{"team":"T9","user_team":"T1","source_team":"T1"}`, self, "T9"},
		{`{"team":"T1","source_team":"T9"}`, self, "T9"},
		{`{"user_team":"T1"}`, self, "T1"},
		{`{}`, self, ""},
		{`{"team":null}`, self, ""},
		{`{"team":"T2"}`, grid, ""}, // a sister workspace, perhaps: looked up
		{`{"team":"T1"}`, grid, "T1"},
	} {
		if got := (message{Object: lenientjson.Parse(json.RawMessage(c.fields))}).actor(c.self); got.Team != c.want {
			t.Errorf("%s is of team %q, want %q", c.fields, got.Team, c.want)
		}
	}
}

func TestAStrangerOfASharedChannelIsOfAnotherTeam(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.ShareChannel(x.ch, "T9")
	eve := x.AddUser("eve", localslack.Stranger("T9"))
	x.Invite(x.ch, eve.ID)
	x.connectAndWait()
	root := x.postRoot()
	ts := x.replyBy(eve, root, "let me in")
	mine := x.reply(root, "it is me")
	x.waitUntil("both", func() bool { return x.recorder.has("heard "+ts) && x.recorder.has("heard "+mine) })
	policy := authz.Policy{Users: []string{eve.ID, x.ann.ID}, Team: x.TeamID()}
	for id, want := range map[string]authz.Decision{ts: authz.Denied, mine: authz.Allowed} {
		r := x.recorder.reply(t, id)
		loaded := loadContent(t, x.ctx, r)
		early, _ := policy.Authorize(r.Actor)
		late, _ := policy.Authorize(loaded.Actor)
		if early != want || late != want {
			t.Errorf("%s by %+v: %v, then %v", id, loaded.Actor, early, late)
		}
	}
}

func TestAReplyNamesItsAuthor(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	named := x.AddUser("zoe", localslack.Named("Zoe Real", "Zoë"))
	x.Invite(x.ch, named.ID)
	root := x.postRoot()
	ts := x.replyBy(named, root, "<@U404> and @ann")
	x.waitUntil("the reply", func() bool { return x.recorder.has("heard " + ts) })
	if c := loadContent(t, x.ctx, x.recorder.reply(t, ts)); c.Speaker != "Zoë" || c.Text != "<@U404> and @ann" {
		t.Errorf("content is %+v", c)
	}
	x.Faults().InjectAPI(MethodUser, -1, localslack.HTML(503))
	other := x.AddUser("late")
	x.Invite(x.ch, other.ID)
	ts = x.replyBy(other, root, "hi")
	x.waitUntil("the reply", func() bool { return x.recorder.has("heard " + ts) })
	if c := loadContent(t, x.ctx, x.recorder.reply(t, ts)); c.Speaker != other.ID {
		t.Errorf("without a name: %+v", c)
	}
}

func TestEventsOfAThreadAreRouted(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	root := x.postRoot()
	ts := x.reply(root, "first")
	x.waitUntil("heard", func() bool { return x.recorder.has("heard " + ts) })
	if err := x.ann.Edit(x.ch, ts, "second"); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("edited", func() bool { return x.recorder.has("edited " + ts) })
	if got := loadContent(t, x.ctx, x.recorder.reply(t, ts)).Text; got != "second" {
		t.Errorf("the edit says %q", got)
	}
	if err := x.Unfurl(x.ch, ts); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("the preview", func() bool { return x.recorder.has("dropped unfurl") })
	if err := x.ann.Delete(x.ch, ts); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("withdrawn", func() bool { return x.recorder.has("withdrawn " + x.ch + " " + root + " " + ts) })
	wide := x.reply(root, "wide", localslack.Broadcast())
	files := x.reply(root, "", localslack.WithFiles(localslack.File{Name: "a.png", Content: []byte("x")}))
	x.waitUntil("both", func() bool { return x.recorder.has("heard "+wide) && x.recorder.has("heard "+files) })
	cmd := x.reply(root, "@"+x.BotName()+" restart")
	x.waitUntil("the command", func() bool { return x.recorder.has("heard " + cmd) })
	if c := x.recorder.reply(t, cmd).Command; c == nil || c.Verb != "restart" {
		t.Errorf("command %+v", c)
	}
	if err := x.DeleteMessage(x.ch, root); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("root gone", func() bool { return x.recorder.has("rootgone " + x.ch + " " + root) })
}

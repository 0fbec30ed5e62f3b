package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/slack"
)

func (x *env) check(change ...func(*CheckOptions)) []Finding {
	x.t.Helper()
	o := CheckOptions{Client: x.client, Channel: x.ch, Users: []string{x.ann.ID}, Log: x.logs.logger()}
	for _, c := range change {
		c(&o)
	}
	found := Check(x.ctx, o)
	if left := x.Messages(x.ch); slices.ContainsFunc(left, func(m localslack.Message) bool { return m.BotID != "" && m.Subtype == "" }) {
		x.t.Errorf("the check left %+v behind", left)
	}
	return found
}

// failedFindings are the findings that are not good, in one line each.
func failedFindings(found []Finding) string {
	var lines []string
	for _, f := range found {
		if !f.OK {
			lines = append(lines, f.Name+": "+f.Detail+" → "+f.Remedy)
		}
	}
	return strings.Join(lines, "\n")
}

func TestTheCheckOfAGoodSetUpFindsNothing(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	found := x.check()
	if bad := failedFindings(found); bad != "" {
		t.Error(bad)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	if want := []string{CheckBotToken, CheckAppToken, CheckScopes, CheckChannel, CheckUsers, CheckEventDelivery}; !slices.Equal(names, want) {
		t.Errorf("checked %v", names)
	}
}

func TestTheCheckNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		opts   func(*localslack.Options)
		break_ func(x *env, o *CheckOptions)
		want   string // parts, in order, separated by |
	}{
		{"a revoked bot token", nil, func(x *env, _ *CheckOptions) { x.RevokeToken(x.BotToken(), "token_revoked") }, "bot token: token_revoked|install the app again"},
		{"swapped tokens", nil, func(x *env, o *CheckOptions) {
			o.Client = x.newClient(slack.ClientOptions{BotToken: x.BotToken(), AppToken: x.BotToken()})
		}, "app token: not_allowed_token_type|xapp-"},
		{"an app token without its scope", func(o *localslack.Options) { o.AppScopes = []string{} }, nil, "app token: missing_scope connections:write|connections:write"},
		{"missing scopes", func(o *localslack.Options) {
			o.Scopes = slices.DeleteFunc(Scopes(), func(s string) bool { return s == "reactions:write" })
		}, nil, "scopes: missing: reactions:write|reinstall"},
		{"no such channel", nil, func(_ *env, o *CheckOptions) { o.Channel = "C404" }, "channel: C404 does not exist|/invite @the-loop"},
		{"a private channel without the bot", nil, func(x *env, o *CheckOptions) { o.Channel = x.AddChannel("secret", localslack.Private()).ID }, "channel|/invite @the-loop"},
		{"a channel without the bot", nil, func(x *env, _ *CheckOptions) { x.Leave(x.ch, x.BotUserID()) }, "channel: the bot is not in #agents|/invite @the-loop"},
		{"an archived channel", nil, func(x *env, _ *CheckOptions) { x.Archive(x.ch) }, "channel: #agents is archived|unarchive"},
		{"a shared channel", nil, func(x *env, _ *CheckOptions) { x.ShareChannel(x.ch, "T9") }, "channel: #agents is shared|allowSharedChannels"},
		{"an empty list", nil, func(_ *env, o *CheckOptions) { o.Users = nil }, "users: the list is empty|authorizedUsers"},
		{"a wrong member id", nil, func(_ *env, o *CheckOptions) { o.Users = append(o.Users, "U404") }, "users: U404 is no member|authorizedUsers"},
		{"a deactivated member", nil, func(x *env, o *CheckOptions) { o.Users = []string{x.AddUser("old", localslack.Deleted()).ID} }, "users|is deactivated"},
		{"a bot on the list", nil, func(x *env, o *CheckOptions) { o.Users = []string{x.AddUser("beep", localslack.Bot()).ID} }, "users|is a bot or an app"},
		{"events that are off", nil, func(x *env, _ *CheckOptions) { x.Faults().InjectDelivery("*", -1, localslack.Suppress) }, "event delivery: nothing came back|Event Subscriptions|message.channels"},
		{"messages that are not subscribed", func(o *localslack.Options) { o.Events = []string{"channel_archive"} }, nil, "event delivery: nothing came back|message.channels"},
		{"no connection", nil, func(x *env, _ *CheckOptions) { x.Faults().TooManyWebsockets() }, "event delivery: no connection|too_many_websockets"},
		{"posts that fail", nil, func(x *env, _ *CheckOptions) {
			x.Faults().InjectAPI(slack.MethodPost, 1, localslack.Error("restricted_action"))
		}, "event delivery: chat.postMessage: restricted_action"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var opts []func(*localslack.Options)
			if c.opts != nil {
				opts = append(opts, c.opts)
			}
			x := newEnv(t, opts...)
			got := failedFindings(x.check(func(o *CheckOptions) {
				o.Timeout = 700 * time.Millisecond
				if c.break_ != nil {
					c.break_(x, o)
				}
			}))
			rest := got
			for part := range strings.SplitSeq(c.want, "|") {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("found %q, want %q in it", got, part)
				}
				rest = after
			}
			if strings.Contains(got, "\n") {
				t.Errorf("found more than one thing:\n%s", got)
			}
		})
	}
}

func TestASharedChannelMayBeAllowed(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.ShareChannel(x.ch, "T9")
	if bad := failedFindings(x.check(func(o *CheckOptions) { o.AllowShared = true })); bad != "" {
		t.Error(bad)
	}
}

// A bot that runs already gets the event, so the check watches what that one records.
func TestTheCheckReadsTheEventsOfARunningBot(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	var asked string
	bad := failedFindings(x.check(func(o *CheckOptions) {
		o.AwaitDrop = func(_ context.Context, channel, ts string) error {
			asked = ts
			x.waitUntil("the drop", func() bool { return x.recorder.has("dropped " + slack.DropBot + " " + channel + " " + ts) })
			return nil
		}
	}))
	if bad != "" || asked == "" || x.Connections() != 1 {
		t.Errorf("%q, watched %q, %d connections", bad, asked, x.Connections())
	}
	if bad := failedFindings(x.check(func(o *CheckOptions) {
		o.AwaitDrop = func(context.Context, string, string) error { return errors.New("nothing in the log") }
	})); !strings.Contains(bad, "Event Subscriptions") {
		t.Error(bad)
	}
}

func TestAnotherBotOnTheAppIsNamedWhenNothingComes(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	x.Faults().InjectDelivery("*", -1, localslack.Suppress)
	bad := failedFindings(x.check(func(o *CheckOptions) { o.Timeout = 500 * time.Millisecond }))
	if !strings.Contains(bad, "2 connections are open") || !strings.Contains(bad, "end the other bot") {
		t.Error(bad)
	}
}

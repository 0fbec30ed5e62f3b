package app

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"gopkg.in/yaml.v3"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

var testManifest = ManifestOptions{Command: "/the-loop", Name: "the-loop", UsageHint: "help | status | list | create | delete | start | stop | restart | say | peek",
	Shortcuts: []Shortcut{{Name: "Session", Type: "message", CallbackID: "session_menu", Description: "What can be done to the session of this thread"}}}

func TestTheManifestIsWhatIsInUse(t *testing.T) {
	t.Parallel()
	got, err := Manifest(testManifest)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "manifest.yaml")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
	var back manifest
	if err := yaml.Unmarshal(got, &back); err != nil || !slices.Equal(back.OAuth.Scopes.Bot, Scopes()) || !back.Settings.SocketMode {
		t.Errorf("read back as %+v, %v", back, err)
	}
	if _, err := Manifest(ManifestOptions{Command: "the-loop", Name: "x"}); err == nil {
		t.Error("a command without its slash was accepted")
	}
}

// The scopes in the manifest are those of the methods that are called, and every method works with them alone.
func TestTheScopesAreThoseOfTheMethodsCalled(t *testing.T) {
	t.Parallel()
	x := newEnv(t, func(o *localslack.Options) { o.Scopes, o.Events = Scopes(), Events() })
	x.connectAndWait()
	called := map[string]bool{}
	for method, call := range everyCall(x.ctx, x.client, x.ch, x.postRoot(), x.ann.ID) {
		// Some may find their message deleted by the call of chat.delete, or have no trigger.
		may := []string{slack.MethodUpdate, slack.MethodReact, slack.MethodUnreact, slack.MethodReplies, slack.MethodViewOpen, slack.MethodViewPush, slack.MethodViewUpdate, slack.MethodFile, slack.MethodStatus}
		if err := call(); err != nil && !slices.Contains(may, method) {
			t.Errorf("%s: %v", method, err)
		} else if f := new(slack.FatalError); errors.As(err, &f) {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, r := range x.Requests() {
		if _, ok := methodScopes[r.Method]; !ok && r.Method != slack.MethodOpen && r.Method != "link" && r.Method != "upload" {
			t.Errorf("%s was called and is not in the table", r.Method)
		}
		called[r.Method] = true
	}
	for method := range methodScopes {
		if !called[method] {
			t.Errorf("%s is in the table and is never called", method)
		}
	}
}

// everyCall is a call of each method that the client knows.
func everyCall(ctx context.Context, c *slack.Client, ch, ts, user string) map[string]func() error {
	p := chat.Post{Channel: ch, Text: "t", Nonce: "n"}
	return map[string]func() error{
		slack.MethodAuthTest:  func() error { _, err := c.AuthTest(ctx); return err },
		slack.MethodPost:      func() error { _, err := c.Post(ctx, p); return err },
		slack.MethodUpdate:    func() error { return c.Update(ctx, ts, p) },
		slack.MethodDelete:    func() error { return c.Delete(ctx, ch, ts) },
		slack.MethodEphemeral: func() error { return c.PostEphemeral(ctx, ch, "", user, "t") },
		slack.MethodReplies:   func() error { _, err := c.Replies(ctx, ch, ts, "", ""); return err },
		slack.MethodHistory:   func() error { _, err := c.FindPost(ctx, ch, "", "n", time.Now()); return err },
		slack.MethodChannel:   func() error { _, err := c.People().ChannelName(ctx, ch); return err },
		slack.MethodJoined:    func() error { _, err := c.Joined(ctx); return err },
		slack.MethodUser:      func() error { _, err := c.People().Person(ctx, user); return err },
		slack.MethodReact:     func() error { return c.AddReaction(ctx, ch, ts, "eyes") },
		slack.MethodUnreact:   func() error { return c.RemoveReaction(ctx, ch, ts, "eyes") },

		slack.MethodViewOpen: func() error {
			_, err := c.OpenView(ctx, "none", slackgo.ModalViewRequest{})
			return err
		},
		slack.MethodViewPush: func() error {
			_, err := c.PushView(ctx, "none", slackgo.ModalViewRequest{})
			return err
		},
		slack.MethodViewUpdate: func() error { return c.UpdateView(ctx, "V1", slackgo.ModalViewRequest{}) },
		slack.MethodHome:       func() error { return c.PublishHome(ctx, user, render.HomeMessage("t")) },
		slack.MethodUploadURL:  func() error { return c.PostFile(ctx, ch, "", "n.png", "t", []byte("x")) },
		slack.MethodStatus:     func() error { return c.SetStatus(ctx, ch, ts, "works") },
		slack.MethodFile:       func() error { return c.Fetch(ctx, chat.File{ID: "F1"}, io.Discard) },
		slack.MethodUpload:     func() error { return c.PostFile(ctx, ch, "", "n.png", "t", []byte("x")) },
	}
}

func TestTheEventsAreThoseThatAreHandled(t *testing.T) {
	t.Parallel()
	// A mention is left alone, so that an app that has the event does no harm.
	subscribed := map[string]bool{"app_mention": true}
	for _, s := range subscriptions {
		subscribed[s.innerType] = true
	}
	want, got := slices.Sorted(maps.Keys(subscribed)), slack.EventTypes()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscribed and handled differ:\n%s", diff)
	}
}

// A token with exactly the scopes of the manifest is let in; each scope that is taken away is missed by name.
func TestEachMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	if got := without(RequiredScopes(), Scopes()); len(got) != 0 {
		t.Errorf("missing %v of all", got)
	}
	for _, s := range Scopes() {
		if optionalScopes[s] != "" {
			continue
		}
		rest := slices.DeleteFunc(Scopes(), func(o string) bool { return o == s })
		if got := without(RequiredScopes(), rest); !slices.Equal(got, []string{s}) {
			t.Errorf("without %s: %v", s, got)
		}
	}
}

// The events of the manifest are enough to be talked to in public and private channels.
func TestPrivateChannelsSendEventsToo(t *testing.T) {
	t.Parallel()
	x := newEnv(t, func(o *localslack.Options) { o.Scopes, o.Events = Scopes(), Events() })
	x.connectAndWait()
	x.ch = x.AddChannel("private", localslack.Private(), localslack.Members(x.ann.ID, x.BotUserID())).ID
	ts := x.reply(x.postRoot(), "hello")
	x.waitUntil("the reply", func() bool { return x.recorder.has("heard " + ts) })
	x.Archive(x.ch)
	x.waitUntil("the notice", func() bool { return x.recorder.has("notice archived " + x.ch + " ") })
	other := x.AddChannel("other", localslack.Members(x.BotUserID())).ID
	x.Leave(other, x.BotUserID())
	x.waitUntil("the notice", func() bool { return x.recorder.has("notice left " + other + " ") })
}

package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

func TestAPostCarriesItsMetadataAndIsFoundByIt(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	root := x.post(chat.Post{Text: "root https://x.io", Nonce: "n1", Session: "s1"})
	if _, err := x.ann.Reply(x.ch, root, "between"); err != nil {
		t.Fatal(err)
	}
	in := x.post(chat.Post{Root: root, Text: "in *bold*", Nonce: "n2", Buttons: []chat.Button{{Label: "Send", Action: chat.ActionSend, Value: "v", Style: "primary"}}})
	m, _ := x.Message(x.ch, in)
	if m.ThreadTS != root || !strings.Contains(string(m.Metadata), `"nonce":"n2"`) || !strings.Contains(string(m.Blocks), chat.ActionSend) {
		t.Errorf("posted %+v", m)
	}
	if args := x.RequestsOf(MethodPost)[0].Args; args["unfurl_links"] != "false" || args["unfurl_media"] != "false" {
		t.Errorf("previews are on: %v", args)
	}
	for _, c := range []struct {
		root, nonce, want string
		since             time.Time
	}{
		{"", "n1", root, time.Now()}, {root, "n2", in, time.Now()}, {"", "n9", "", time.Now()}, {root, "n9", "", time.Time{}},
		{"", "n1", "", time.Now().Add(time.Hour)}, {"", "n1", "", time.Now().Add(-time.Hour)},
	} {
		if got, err := x.client.FindPost(x.ctx, x.ch, c.root, c.nonce, c.since); err != nil || got != c.want {
			t.Errorf("FindPost(%q, %q, %s) = %q, %v; want %q", c.root, c.nonce, c.since, got, err, c.want)
		}
	}
}

func TestAnUpdateReplacesAMessage(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	ts := x.postRoot()
	long := strings.Repeat("line of text\n", 800) // getnao/nao#1323: more than 4,000 characters of text are refused
	if err := x.client.Update(x.ctx, ts, chat.Post{Channel: x.ch, Text: long, Nonce: "n"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := x.Message(x.ch, ts); !strings.Contains(string(m.Blocks), "line of text") {
		t.Errorf("blocks are %s", m.Blocks)
	}
	if err := x.client.Delete(x.ctx, x.ch, ts); err != nil {
		t.Fatal(err)
	}
	if err := x.client.Update(x.ctx, ts, chat.Post{Channel: x.ch, Text: "t"}); !errors.Is(err, chat.ErrReplyGone) {
		t.Errorf("update of a deleted message: %v", err)
	}
	if err := x.client.Delete(x.ctx, x.ch, ts); err != nil {
		t.Errorf("deleting twice: %v", err)
	}
}

// openclaw/openclaw#10837: Slack posts a reply to a deleted root in the channel itself.
func TestAReplyWhoseRootIsGoneIsNotLeftInTheChannel(t *testing.T) {
	t.Parallel()
	deleted := make(chan string, 1)
	c := newFakeClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/" + MethodPost:
			fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"2.0","message":{"ts":"2.0","text":"x"}}`)
		case "/api/" + MethodDelete:
			deleted <- r.FormValue("ts")
			fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"2.0"}`)
		}
	})
	_, err := c.Post(t.Context(), chat.Post{Channel: "C1", Root: "1.0", Text: "x"})
	if !errors.Is(err, chat.ErrThreadGone) {
		t.Errorf("err is %v", err)
	}
	if ts := <-deleted; ts != "2.0" {
		t.Errorf("deleted %q", ts)
	}
}

func newFakeClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return newTestClient(t, ClientOptions{BotToken: "xoxb-secret", AppToken: "xapp-secret", APIURL: srv.URL + "/api", Timeout: 5 * time.Second})
}

func TestAPostSaysWhetherItMayHaveHappened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   localslack.APIFault
		is      error
		posted  bool
		unknown bool
	}{
		{"done, and no answer", localslack.HangAfter(), chat.ErrOutcomeUnknown, true, true},
		{"done, and cut", localslack.CutAfter(), chat.ErrOutcomeUnknown, true, true},
		{"cut", localslack.CutBefore(), chat.ErrOutcomeUnknown, false, true},
		{"no answer", localslack.Hang(), chat.ErrOutcomeUnknown, false, true},
		{"503", localslack.HTML(503), chat.ErrOutcomeUnknown, false, true},
		{"a page", localslack.HTML(200), chat.ErrOutcomeUnknown, false, true},
		{"half an answer", localslack.BadJSON(), chat.ErrOutcomeUnknown, false, true},
		{"internal_error", localslack.Error("internal_error"), chat.ErrOutcomeUnknown, false, true},
		{"404", localslack.HTML(404), nil, false, false},
		{"gone channel", localslack.Error("channel_not_found"), chat.ErrUnavailable, false, false},
		{"archived", localslack.Error("is_archived"), chat.ErrUnavailable, false, false},
		{"not in it", localslack.Error("not_in_channel"), chat.ErrUnavailable, false, false},
		{"gone thread", localslack.Error("thread_not_found"), chat.ErrThreadGone, false, false},
		{"too long", localslack.Error("msg_too_long"), nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newEnv(t)
			x.Faults().InjectAPI(MethodPost, 1, c.fault)
			client := x.newClient(ClientOptions{Timeout: 300 * time.Millisecond})
			_, err := client.Post(x.ctx, chat.Post{Channel: x.ch, Text: "t", Nonce: "n"})
			if err == nil || c.is != nil && !errors.Is(err, c.is) || errors.Is(err, chat.ErrOutcomeUnknown) != c.unknown {
				t.Errorf("err is %v", err)
			}
			if got := len(x.Messages(x.ch)) > 0; got != c.posted {
				t.Errorf("posted: %v", got)
			}
		})
	}
}

func TestAPostThatWasNeverSentIsNotInDoubt(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // it is held and never accepts, so the port stays ours; the dialer refuses before it is asked
	refuse := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no route")
	}}}
	c := newTestClient(t, ClientOptions{BotToken: "xoxb-secret", APIURL: "http://" + ln.Addr().String(), HTTP: refuse})
	_, err = c.Post(t.Context(), chat.Post{Channel: "C1", Text: "t"})
	if err == nil || errors.Is(err, chat.ErrOutcomeUnknown) || strings.Contains(err.Error(), "xoxb-secret") {
		t.Errorf("err is %v", err)
	}
}

func TestRateLimitsAreReported(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	root := x.postRoot()
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "": 10 * time.Second, "soon": 10 * time.Second, "0": time.Second} {
		for name, call := range map[string]func() error{
			MethodPost:    func() error { _, err := x.client.Post(x.ctx, chat.Post{Channel: x.ch, Text: "t"}); return err },
			MethodReplies: func() error { _, err := x.client.Replies(x.ctx, x.ch, root, "", ""); return err },
			MethodReact:   func() error { return x.client.AddReaction(x.ctx, x.ch, root, "eyes") },
			MethodUser:    func() error { _, err := x.client.People().Person(x.ctx, x.ann.ID); return err },
		} {
			x.Faults().InjectAPI(name, 1, localslack.RateLimited(header))
			var limited *chat.RateLimitedError
			if err := call(); !errors.As(err, &limited) || limited.After != want || errors.Is(err, chat.ErrOutcomeUnknown) {
				t.Errorf("%s with Retry-After %q: %v", name, header, err)
			}
		}
	}
}

func TestRefusalsThatNoRetryChangesNameTheRemedy(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	for code, m := range sentinelByCode {
		remedy := m.remedy
		if remedy == "" {
			continue
		}
		x.Faults().InjectAPI(MethodAuthTest, 1, localslack.Error(code))
		var f *FatalError
		if _, err := x.client.Identify(x.ctx); !errors.As(err, &f) || f.Code != code || f.Remedy != remedy || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v", code, err)
		}
	}
	narrow := newEnv(t, func(o *localslack.Options) { o.Scopes = []string{"chat:write", "users:read"} })
	var f *FatalError
	if _, err := narrow.client.Identify(narrow.ctx); !errors.As(err, &f) || !strings.Contains(f.Needed, "reactions:write") {
		t.Errorf("with too few scopes: %v", err)
	}
	if err := narrow.client.AddReaction(narrow.ctx, narrow.ch, "1.0", "eyes"); !errors.As(err, &f) || f.Needed != "reactions:write" {
		t.Errorf("a reaction without its scope: %v", err)
	}
}

// One malformed block makes the Slack library refuse a whole page.
func TestAPageWithAMalformedMessageIsReadWhole(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	root := x.postRoot()
	a := x.reply(root, "one")
	b := x.reply(root, "two <b>", localslack.MalformedBlocks())
	c := x.reply(root, "three")
	x.post(chat.Post{Root: root, Text: "ours"})
	page, err := x.client.Replies(x.ctx, x.ch, root, a, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range page.Replies {
		got = append(got, r.TS+" "+loadContent(t, x.ctx, r).Text)
	}
	if want := []string{b + " two <b>", c + " three"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if d := time.Since(page.Now); d < -5*time.Second || d > 5*time.Second || page.Next != "" {
		t.Errorf("now %s, next %q", page.Now, page.Next)
	}
}

// Before we know our own team every author would look like a stranger, and a drop is final.
func TestNothingIsReadBeforeWeKnowWhoWeAre(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	root := x.postRoot()
	ts := x.reply(root, "hi")
	x.Faults().InjectAPI(MethodAuthTest, 3, localslack.HTML(503))
	if _, err := x.client.Replies(x.ctx, x.ch, root, "", ""); err == nil {
		t.Error("a page was read")
	}
	if _, err := x.client.Reply(x.ctx, x.ch, root, ts); err == nil {
		t.Error("a reply was read")
	}
	if _, err := x.client.FindPost(x.ctx, x.ch, "", "n-root", time.Now()); err == nil {
		t.Error("a post was looked for")
	}
	page, err := x.client.Replies(x.ctx, x.ch, root, "", "")
	if err != nil || len(page.Replies) != 1 || page.Replies[0].Actor.Team != x.TeamID() {
		t.Errorf("page %+v, %v", page, err)
	}
}

func TestALongThreadIsReadPageByPage(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	root := x.postRoot()
	var want, got []string
	for i := range 450 {
		want = append(want, x.reply(root, fmt.Sprint(i)))
	}
	cursor, pages := "", 0
	for {
		page, err := x.client.Replies(x.ctx, x.ch, root, "", cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Replies {
			got = append(got, r.TS)
		}
		pages++
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) || pages < 3 {
		t.Errorf("read %d of %d replies on %d pages", len(got), len(want), pages)
	}
}

func TestDeletedThreadsAndRepliesAreReported(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	root := x.postRoot()
	ts := x.reply(root, "hi")
	if r, err := x.client.Reply(x.ctx, x.ch, root, ts); err != nil || loadContent(t, x.ctx, r).Text != "hi" || r.Root != root {
		t.Errorf("Reply: %+v, %v", r, err)
	}
	if err := x.ann.Delete(x.ch, ts); err != nil {
		t.Fatal(err)
	}
	if _, err := x.client.Reply(x.ctx, x.ch, root, ts); !errors.Is(err, chat.ErrReplyGone) {
		t.Errorf("a deleted reply: %v", err)
	}
	x.reply(root, "keeps the root as a tombstone")
	if err := x.DeleteMessage(x.ch, root); err != nil {
		t.Fatal(err)
	}
	if _, err := x.client.Replies(x.ctx, x.ch, root, "", ""); !errors.Is(err, chat.ErrThreadGone) {
		t.Errorf("a tombstone: %v", err)
	}
	if _, err := x.client.Replies(x.ctx, x.ch, "1700000000.000100", "", ""); !errors.Is(err, chat.ErrThreadGone) {
		t.Errorf("no such root: %v", err)
	}
	x.Leave(x.ch, x.BotUserID())
	x.AddChannel("hidden", localslack.Private())
	if _, err := x.client.Replies(x.ctx, "C404", root, "", ""); !errors.Is(err, chat.ErrUnavailable) {
		t.Errorf("no such channel: %v", err)
	}
}

func TestReactionsMayBeRepeated(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	ts := x.postRoot()
	for range 2 {
		if err := x.client.AddReaction(x.ctx, x.ch, ts, ":eyes:"); err != nil {
			t.Fatal(err)
		}
	}
	if !x.HasReaction(x.ch, ts, "eyes") {
		t.Error("no reaction")
	}
	for range 2 {
		if err := x.client.RemoveReaction(x.ctx, x.ch, ts, "eyes"); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.client.AddReaction(x.ctx, x.ch, "1700000000.000100", "eyes"); !errors.Is(err, chat.ErrReplyGone) {
		t.Errorf("on nothing: %v", err)
	}
}

// slack-go GHSA-3q3v-34v2-g88f: a token never goes to a host that is not the API's.
func TestTheTokenStaysWithItsHost(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.URL.Path }))
	t.Cleanup(thief.Close)
	c := newFakeClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	_, postErr := c.Post(t.Context(), chat.Post{Channel: "C1", Text: "t"})
	_, readErr := c.Replies(t.Context(), "C1", "1.0", "", "")
	respondErr := c.Respond(t.Context(), thief.URL+"/x", "", "t")
	for _, err := range []error{postErr, readErr, respondErr} {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("err is %v", err)
		}
	}
	if len(stolen) != 0 {
		t.Errorf("went to %s", <-stolen)
	}
	for _, bad := range []string{"http://slack.com/api/", "ftp://x", "slack.com", "http://10.0.0.1/api/"} {
		if _, err := NewClient(ClientOptions{APIURL: bad}); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestEveryCallHasADeadline(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	root := x.postRoot()
	c := x.newClient(ClientOptions{Timeout: 50 * time.Millisecond})
	x.Faults().InjectAPI("*", -1, localslack.Hang())
	for method, call := range everyCall(x.ctx, c, x.ch, root, x.ann.ID) {
		if err := call(); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "xox") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// everyCall is a call of each method that the client knows.
func everyCall(ctx context.Context, c *Client, ch, ts, user string) map[string]func() error {
	p := chat.Post{Channel: ch, Text: "t", Nonce: "n"}
	return map[string]func() error{
		MethodAuthTest:  func() error { _, err := c.AuthTest(ctx); return err },
		MethodPost:      func() error { _, err := c.Post(ctx, p); return err },
		MethodUpdate:    func() error { return c.Update(ctx, ts, p) },
		MethodDelete:    func() error { return c.Delete(ctx, ch, ts) },
		MethodEphemeral: func() error { return c.PostEphemeral(ctx, ch, "", user, "t") },
		MethodReplies:   func() error { _, err := c.Replies(ctx, ch, ts, "", ""); return err },
		MethodHistory:   func() error { _, err := c.FindPost(ctx, ch, "", "n", time.Now()); return err },
		MethodChannel:   func() error { _, err := c.People().ChannelName(ctx, ch); return err },
		MethodJoined:    func() error { _, err := c.Joined(ctx); return err },
		MethodUser:      func() error { _, err := c.People().Person(ctx, user); return err },
		MethodReact:     func() error { return c.AddReaction(ctx, ch, ts, "eyes") },
		MethodUnreact:   func() error { return c.RemoveReaction(ctx, ch, ts, "eyes") },

		MethodViewOpen: func() error {
			_, err := c.OpenView(ctx, "none", slackgo.ModalViewRequest{})
			return err
		},
		MethodViewPush: func() error {
			_, err := c.PushView(ctx, "none", slackgo.ModalViewRequest{})
			return err
		},
		MethodViewUpdate: func() error { return c.UpdateView(ctx, "V1", slackgo.ModalViewRequest{}) },
		MethodHome:       func() error { return c.PublishHome(ctx, user, render.HomeMessage("t")) },
		MethodUploadURL:  func() error { return c.PostFile(ctx, ch, "", "n.png", "t", []byte("x")) },
		MethodStatus:     func() error { return c.SetStatus(ctx, ch, ts, "works") },
		MethodFile:       func() error { _, err := c.fileInfo(ctx, chat.File{ID: "F1"}); return err },
		MethodUpload:     func() error { return c.PostFile(ctx, ch, "", "n.png", "t", []byte("x")) },
	}
}

func TestAnObjectIsReadLeniently(t *testing.T) {
	t.Parallel()
	o := lenientjson.Parse(json.RawMessage(`{"a":"x","b":7,"c":true,"d":"true","e":null,"f":[1,{"k":"v"}],"g":{"h":"i"},"n":-3}`))
	if o.Str("a") != "x" || o.Str("b") != "7" || o.Str("g") != "" || o.Num("n") != -3 || o.Num("a") != 0 {
		t.Error("strings and numbers")
	}
	if !o.IsTrue("c") || !o.IsTrue("d") || o.IsTrue("a") || o.Has("e") || !o.Has("a") || o.Has("z") {
		t.Error("booleans and null")
	}
	if len(o.Objects("f")) != 1 || o.Obj("g").Str("h") != "i" || o.Obj("a") != nil || lenientjson.Parse(json.RawMessage(`[]`)).Str("x") != "" {
		t.Error("objects")
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for value, want := range map[string]time.Duration{"": defaultRetryAfter, "x": defaultRetryAfter, "-3": time.Second, "0": time.Second,
		"7": 7 * time.Second, "99999999999": maxRetryAfter, "1.5": defaultRetryAfter, now.Add(40 * time.Second).Format(http.TimeFormat): 40 * time.Second,
		now.Add(-time.Minute).Format(http.TimeFormat): time.Second} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

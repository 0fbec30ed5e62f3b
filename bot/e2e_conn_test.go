package bot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/sessions"
)

// connectedCount is how often the bot said that it is connected.
func (w *env) connectedCount() int {
	n := 0
	for _, e := range w.events.Events() {
		if e.Name == bot.EventConnected {
			n++
		}
	}
	return n
}

// Slack sends events to any of an app's connections, also to one that it has not given up yet. What is written meanwhile arrives
// in order all the same, and soon.
func TestRepliesArriveInOrderWhileSlackSendsSomeElsewhere(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	w.stopBot()
	w.openSilentConnection()
	w.startBot()
	w.waitUntil("two connections", func() bool { return w.Connections() == 2 })
	a.replyAccepted("hello")
	want := []string{"hello"}
	for i := range 20 {
		text := fmt.Sprint("reply ", i)
		want = append(want, text)
		a.reply(text)
	}
	w.waitUntil("all of them", func() bool { return len(a.receivedTexts()) >= len(want) })
	a.wantReceived(want...)
}

// A connection that delivers events before its hello is no reason to type a reply before one that was missed.
func TestAReplyThatWasMissedComesFirstOnAConnectionWithoutHello(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	opened := func() int {
		return len(slices.DeleteFunc(w.Frames(), func(f localslack.Frame) bool { return f.Kind != "open" }))
	}
	w.Faults().InjectDelivery("message.channels", 1, localslack.Suppress)
	a.reply("missed")
	before := opened()
	w.Faults().InjectConnect(1, localslack.NoHello())
	w.Faults().Drop()
	w.waitUntil("another connection", func() bool { return opened() > before && w.Connections() == 1 })
	a.replyAccepted("heard")
	a.wantReceived("missed", "heard")
}

// openSilentConnection opens a connection of the app that takes events and acks none.
func (w *env) openSilentConnection() {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.APIURL()+"apps.connections.open", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.AppToken())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var open struct{ URL string }
	if err := json.NewDecoder(resp.Body).Decode(&open); err != nil {
		w.t.Fatal(err)
	}
	conn, _, err := websocket.DefaultDialer.DialContext(w.ctx, open.URL, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for err := error(nil); err == nil; {
			_, _, err = conn.ReadMessage()
		}
	}()
	w.t.Cleanup(func() { _ = conn.Close(); <-done })
}

// Whatever becomes of the connection, the next reply arrives, once, and so does one that was written meanwhile.
func TestTheNextReplyArrivesAfterEveryFaultOfTheConnection(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Socket = func(o *socket.Options) {
				reconnectFast(o)
				o.SilenceTimeout, o.StepTimeout = 3*time.Second, 3*time.Second
			}
		}
	})
	a := w.startSession("helper")
	var want []string
	for _, c := range []struct {
		name  string
		fault func(f *localslack.Faults)
	}{
		{"dropped (slackapi/python-slack-sdk#1701)", (*localslack.Faults).Drop},
		{"cut in the middle of a frame (slack-go/slack#1608)", (*localslack.Faults).CutMidFrame},
		{"silent, with TCP open (slack-go/slack#1093, openclaw/openclaw#17847)", (*localslack.Faults).Stall},
		{"refreshed", func(*localslack.Faults) { w.Disconnect("refresh_requested") }},
		{"disconnected before hello (slackapi/bolt-js#2225)", func(f *localslack.Faults) {
			f.InjectConnect(2, localslack.DisconnectFirst("refresh_requested"))
			f.Drop()
		}},
		{"too many websockets for a while (slackapi/node-slack-sdk#1654)", func(f *localslack.Faults) {
			f.InjectConnect(4, localslack.DisconnectFirst("too_many_websockets"))
			f.Drop()
		}},
		{"upgrade answered with 408 (slackapi/bolt-js#1061)", func(f *localslack.Faults) {
			f.InjectConnect(2, localslack.RejectUpgrade(408))
			f.Drop()
		}},
		{"opening fails (slackapi/node-slack-sdk#1495, #1500)", func(f *localslack.Faults) {
			for _, e := range []localslack.APIFault{localslack.Error("internal_error"), localslack.Error("fatal_error"), localslack.HTML(503),
				localslack.HTML(200), localslack.BadJSON()} {
				f.InjectAPI("apps.connections.open", 1, e)
			}
			f.Drop()
		}},
		{"a close that never ends (slackapi/node-slack-sdk#2752)", func(f *localslack.Faults) {
			f.NeverFinishClosing()
			w.Disconnect("refresh_requested")
		}},
		{"closed in the middle of a burst (slack-go/slack#1125)", func(f *localslack.Faults) { f.DropAfter(1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := w.connectedCount()
			c.fault(w.Faults())
			meanwhile := a.reply("during: " + c.name)
			w.waitUntil("another connection", func() bool { return w.connectedCount() > before })
			w.Faults().Clear()
			next := a.reply("after: " + c.name)
			a.waitReceipt(meanwhile, receiptAccepted)
			a.waitReceipt(next, receiptAccepted)
			want = append(want, "during: "+c.name, "after: "+c.name)
			a.wantReceived(want...)
		})
	}
}

// openclaw/openclaw#128809, #102439: flapping leaves a crowd of ghost sockets, which take a part of the events.
func TestAStormOfDisconnectsLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	var want, ts []string
	for i := range 15 {
		before := w.connectedCount()
		text := string(rune('a' + i))
		want, ts = append(want, text), append(ts, a.reply(text))
		w.Faults().Drop()
		w.waitUntil("another connection", func() bool { return w.connectedCount() > before })
	}
	for _, ts := range ts {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived(want...)
	w.waitUntil("one socket", func() bool { return w.Connections() == 1 })
}

// Abilityai/trinity#215: a bad token is tried for ever. teleport#67148: so is a missing scope.
func TestAPermanentErrorEndsTheBotAndNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code, needed string
		change             func(*envOptions)
		during             func(*env)
	}{
		{name: "a bad bot token", code: "invalid_auth", change: func(s *envOptions) { s.config = func(p *botConfig) { p.BotToken += "x" } }},
		{name: "a bad app token", code: "invalid_auth", change: func(s *envOptions) { s.config = func(p *botConfig) { p.AppToken += "x" } }},
		{name: "a missing scope", code: "missing_scope", needed: "reactions:write", change: func(s *envOptions) {
			s.workspace.Scopes = []string{"chat:write", "commands", "channels:history", "groups:history", "im:history", "mpim:history",
				"channels:read", "groups:read", "im:read", "mpim:read", "users:read", "app_mentions:read", "files:read"}
		}},
		{name: "an app token without its scope", code: "missing_scope", needed: "connections:write",
			change: func(s *envOptions) { s.workspace.AppScopes = []string{} }},
		{name: "a token that is revoked meanwhile", code: "token_revoked", change: func(*envOptions) {}, during: func(w *env) {
			w.waitUntil("a connection", func() bool { return w.Connections() == 1 })
			w.RevokeToken(w.AppToken(), "token_revoked")
			w.Faults().Drop()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, withoutBot, c.change)
			b, client, err := w.config().newBot(w.core, w.events, w.config, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ran := make(chan error, 1)
			go func() { ran <- b.Run(w.ctx) }()
			if c.during != nil {
				c.during(w)
			}
			var fatal *slack.FatalError
			if err := <-ran; !errors.As(err, &fatal) {
				t.Fatalf("the bot ended with %v; want a FatalError", err)
			}
			if fatal.Code != c.code || fatal.Remedy == "" || !containsAll(fatal.Needed, c.needed) {
				t.Errorf("%v (%+v)", fatal, fatal)
			}
		})
	}
}

// Slack can be away when the bot starts: it comes up all the same, and announces when Slack is back.
func TestABotThatStartsWhileSlackIsAwayWorksWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutBot)
	w.Faults().InjectAPI("auth.test", 1, localslack.HTML(503))
	w.startBot()
	a := w.startSession("helper")
	a.replyAccepted("good morning")
	a.wantReceived("good morning")
}

// NousResearch/hermes-agent#14326: "running" while it is dead.
func TestASilentConnectionIsReported(t *testing.T) {
	t.Parallel()
	reports := make(chan bot.Status, 100)
	w := newEnv(t, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Socket = func(o *socket.Options) { reconnectFast(o); o.SilenceTimeout = 2 * time.Second }
			o.OnStatus = func(r bot.Status) { reports <- r }
		}
	})
	await := func(what string, ok func(bot.Status) bool) {
		t.Helper()
		for {
			select {
			case r := <-reports:
				if ok(r) {
					return
				}
			case <-w.ctx.Done():
				t.Fatal("no report of ", what)
			}
		}
	}
	await("a connection", func(r bot.Status) bool { return r.Socket.Connected && r.Self.User == w.BotUserID() })
	w.Faults().InjectConnect(-1, localslack.RejectUpgrade(503))
	w.Faults().Stall()
	await("its end, and why", func(r bot.Status) bool { return !r.Socket.Connected && r.Socket.Problem != "" })
	w.Faults().Clear()
	await("a connection again", func(r bot.Status) bool { return r.Socket.Connected && r.Socket.Problem == "" })
	if !slices.ContainsFunc(w.events.Events(), func(e sessions.Event) bool { return e.Name == bot.EventDisconnected }) {
		t.Error("the event log says nothing of it")
	}
}

// With the waits that the bot has in earnest: what was written during a long fault is typed soon after it.
func TestAReplyThatWasWrittenDuringALongFaultArrivesSoonAfterIt(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) { o.Socket = func(*socket.Options) {} }
	})
	a := w.startSession("helper")
	before, tries := w.connectedCount(), len(w.RequestsOf("apps.connections.open"))
	w.Faults().InjectAPI("apps.connections.open", -1, localslack.HTML(503))
	w.Faults().Drop()
	w.waitUntil("seven attempts", func() bool { return len(w.RequestsOf("apps.connections.open")) >= tries+7 })
	meanwhile := a.reply("during")
	w.Faults().Clear()
	ended := time.Now()
	w.waitUntil("another connection", func() bool { return w.connectedCount() > before })
	if took := time.Since(ended); took > 15*time.Second {
		t.Errorf("connected %s after the fault", took)
	}
	a.waitReceipt(meanwhile, receiptAccepted)
	a.wantReceived("during")
	t.Logf("typed and accepted %s after the fault", time.Since(ended).Round(time.Millisecond))
}

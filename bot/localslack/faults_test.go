package localslack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

func (f *fixture) postAsApp() error {
	ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
	defer cancel()
	_, _, err := f.api.PostMessageContext(ctx, f.ch, slack.MsgOptionText("x", false))
	return err
}

func TestAPIFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault faults.APIFault
		done  int // messages that were posted all the same
		check func(error) bool
	}{
		"a Slack error": {faults.Error("internal_error"), 0, func(err error) bool { return err.Error() == "internal_error" }},
		"429 with Retry-After": {faults.RateLimited("7"), 0, func(err error) bool {
			var e *slack.RateLimitedError
			return errors.As(err, &e) && e.RetryAfter == 7*time.Second
		}},
		"429 without": {faults.RateLimited(""), 0, func(err error) bool {
			var e slack.StatusCodeError
			return errors.As(err, &e) && e.Code == 429
		}},
		"503 page": {faults.HTML(http.StatusServiceUnavailable), 0, func(err error) bool {
			var e slack.StatusCodeError
			return errors.As(err, &e) && e.Code == 503
		}},
		"200 page": {faults.HTML(http.StatusOK), 0, func(err error) bool {
			var e *json.SyntaxError
			return errors.As(err, &e)
		}},
		"half JSON":             {faults.BadJSON(), 0, func(error) bool { return true }},
		"cut before it is done": {faults.CutBefore(), 0, func(error) bool { return true }},
		"cut after it was done": {faults.CutAfter(), 1, func(error) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFixture(t)
			f.Faults().InjectAPI("chat.postMessage", 1, c.fault)
			if err := f.postAsApp(); err == nil || !c.check(err) {
				t.Errorf("got %v", err)
			}
			if n := len(f.Messages(f.ch)); n != c.done {
				t.Errorf("%d messages", n)
			}
			if r := f.RequestsOf("chat.postMessage"); len(r) != 1 || r[0].Fault == "" {
				t.Errorf("the log says %+v", r)
			}
			if err := f.postAsApp(); err != nil {
				t.Errorf("the fault did not end: %v", err)
			}
		})
	}
}

func TestAHangingCallIsTheClientsToEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault faults.APIFault
		done  int
	}{"nothing done": {faults.Hang(), 0}, "done all the same": {faults.HangAfter(), 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFixture(t)
			f.Faults().InjectAPI("*", 1, c.fault)
			ctx, cancel := context.WithCancel(f.ctx)
			got := make(chan error, 1)
			go func() {
				_, _, err := f.api.PostMessageContext(ctx, f.ch, slack.MsgOptionText("x", false))
				got <- err
			}()
			f.waitUntil("it came in", func() bool { return len(f.Requests()) == 1 && len(f.Messages(f.ch)) == c.done })
			cancel()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestADelayedCallFollowsTheClock(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.Faults().InjectAPI("chat.postMessage", 1, faults.Delay(time.Minute))
	got := make(chan error, 1)
	go func() { got <- f.postAsApp() }()
	f.waitUntil("it came in", func() bool { return len(f.Requests()) == 1 })
	for done := false; !done; {
		f.clock.Advance(time.Minute)
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
			done = true
		case <-time.After(time.Millisecond):
		}
	}
}

func TestFaultsPlayInOrderAndCanBeCleared(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.Faults().InjectAPI("auth.test", 1, faults.Error("internal_error"))
	f.Faults().InjectAPI("auth.test", 1, faults.Error("fatal_error"))
	f.Faults().InjectAPI("chat.delete", -1, faults.Error("internal_error"))
	f.CallFails("internal_error", "auth.test", nil)
	f.CallFails("fatal_error", "auth.test", nil)
	f.CallOK("auth.test", nil)
	for range 3 {
		f.CallFails("internal_error", "chat.delete", nil)
	}
	f.Faults().Clear()
	f.CallFails("channel_not_found", "chat.delete", nil)
}

// testRecovery lets a fault happen to slack-go's client and checks that the next event reaches it on another socket.
func testRecovery(t *testing.T, what string, cause func(*fixture)) {
	t.Run(what, func(t *testing.T) {
		t.Parallel()
		f := startFixture(t)
		got := f.collectEvents()
		cause(f)
		f.waitUntil("it is back", func() bool {
			return f.Connections() == 1 && slices.ContainsFunc(f.Frames(), func(fr store.Frame) bool { return fr.Kind == "open" && fr.Conn > 1 })
		})
		f.post("after")
		for m := f.nextMessage(got); m.Text != "after"; m = f.nextMessage(got) {
		}
	})
}

func TestTheRealClientReconnects(t *testing.T) {
	t.Parallel()
	testRecovery(t, "slack-go/slack#1608: cut in the middle of a frame", func(f *fixture) { f.Faults().CutMidFrame() })
	testRecovery(t, "closed without a close frame", func(f *fixture) { f.Faults().Drop() })
	testRecovery(t, "slack-go/slack#1125: closed in a burst", func(f *fixture) {
		f.Faults().DropAfter(5)
		for range 20 {
			f.post("burst")
		}
	})
	testRecovery(t, "closed with a close frame", func(f *fixture) { f.Faults().GoAway() })
	testRecovery(t, "refresh", func(f *fixture) { f.Disconnect("refresh_requested") })
	testRecovery(t, "slackapi/bolt-js#1061: the upgrade gives 408 twice", func(f *fixture) {
		f.Faults().InjectConnect(2, faults.RejectUpgrade(http.StatusRequestTimeout))
		f.Faults().Drop()
	})
	testRecovery(t, "slackapi/bolt-js#2225: disconnect before hello", func(f *fixture) {
		f.Faults().InjectConnect(1, faults.DisconnectFirst("refresh_requested"))
		f.Faults().Drop()
	})
	testRecovery(t, "no hello", func(f *fixture) {
		f.Faults().InjectConnect(1, faults.NoHello())
		f.Faults().Drop()
	})
	testRecovery(t, "slackapi/node-slack-sdk#1495: internal_error on open", func(f *fixture) {
		f.Faults().InjectAPI("apps.connections.open", 1, faults.Error("internal_error"))
		f.Faults().InjectAPI("apps.connections.open", 1, faults.HTML(http.StatusServiceUnavailable))
		f.Faults().Drop()
	})
	testRecovery(t, "slackapi/node-slack-sdk#2752: closing never finishes", func(f *fixture) {
		f.Faults().NeverFinishClosing()
		f.Disconnect("refresh_requested")
	})
}

func TestAStalledSocketIsSilentButOpen(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := make(chan string, 100)
	client := socketmode.New(f.api, socketmode.OptionPingInterval(time.Second))
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- client.RunContext(ctx) }()
	go func() {
		for {
			select {
			case ev := <-client.Events:
				got <- string(ev.Type)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	f.waitUntil("connected", func() bool { return f.Connections() == 1 })
	f.Faults().Stall()
	f.post("lost on the dead socket")
	f.waitUntil("slack-go/slack#1093: the client notices by the missing pings", func() bool {
		return slices.ContainsFunc(f.Frames(), func(fr store.Frame) bool { return fr.Kind == "open" && fr.Conn == 2 })
	})
	f.waitUntil("the ghost is gone", func() bool { return f.Connections() == 1 })
}

func TestTooManyWebsocketsAndLinkDisabledStay(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.Faults().LinkDisabled()
	if d := s.Next(); d["reason"] != "link_disabled" {
		t.Errorf("got %v", d)
	}
	for range 3 {
		if d := f.Dial().Next(); d["reason"] != "link_disabled" {
			t.Errorf("got %v", d)
		}
	}
	f.Faults().Clear()
	f.Faults().TooManyWebsockets()
	if d := f.Dial().Next(); d["type"] != "disconnect" || d["reason"] != "too_many_websockets" {
		t.Errorf("slackapi/node-slack-sdk#1654: got %v", d)
	}
	f.Faults().Clear()
	f.DialReady()
}

func TestDeliveryFaults(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()

	f.Faults().InjectDelivery("message.channels", 1, faults.Duplicate)
	f.post("twice")
	a, b := s.Next(), s.Next()
	if a["envelope_id"] != b["envelope_id"] || b["retry_attempt"] != 0.0 {
		t.Errorf("slackapi/bolt-js#2487: %v, %v", a, b)
	}
	s.Ack(a)
	s.Ack(b)

	f.Faults().InjectDelivery("*", 1, faults.DuplicateNewEnvelope)
	f.post("twice")
	a, b = s.Next(), s.Next()
	if a["envelope_id"] == b["envelope_id"] || a["payload"].(map[string]any)["event_id"] != b["payload"].(map[string]any)["event_id"] {
		t.Errorf("gugu91/pinet#226: %v, %v", a, b)
	}
	s.Ack(b)
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })

	f.Faults().InjectDelivery("*", 1, faults.Suppress)
	f.post("never comes")
	f.Faults().InjectDelivery("*", 1, faults.LoseFirst)
	f.post("late")
	f.clock.Advance(socket.AckDeadline)
	if env := s.Next(); env["retry_attempt"] != 1.0 || env["payload"].(map[string]any)["event"].(map[string]any)["text"] != "late" {
		t.Errorf("vercel/chat#666: %v", env)
	} else {
		s.Ack(env)
	}

	f.Faults().InjectDelivery("*", 1, faults.BadBlocks)
	f.post("bad blocks")
	if _, ev := s.Event(); ev["blocks"].([]any)[0].(map[string]any)["elements"] != "none" {
		t.Errorf("bad blocks: %v", ev)
	}
	f.Faults().InjectDelivery("*", 1, faults.BadText)
	f.post("bad text")
	if _, ev := s.Event(); ev["text"] != 42.0 {
		t.Errorf("bad text: %v", ev)
	}
	f.waitUntil("settled", func() bool { return f.Pending() == 0 })
}

func TestAnAckedEventCanBeRedelivered(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	ts := f.post("x")
	p, _ := s.Event()
	for attempt := range 2 {
		if !f.Faults().Redeliver(f.ch, ts, attempt) {
			t.Fatal("no such event")
		}
		env := s.Next()
		if env["payload"].(map[string]any)["event_id"] != p["event_id"] || env["retry_attempt"] != float64(attempt) {
			t.Errorf("chenhg5/cc-connect#364: %v", env)
		}
		s.Ack(env)
	}
}

func TestEventsComeOutOfOrder(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.Faults().Shuffle(3)
	for _, text := range []string{"a", "b", "c"} {
		f.post(text)
	}
	var got []string
	for range 3 {
		_, ev := s.Event()
		got = append(got, blockkit.Str(ev["text"]))
	}
	if slices.IsSorted(got) || got[2] != "a" {
		t.Errorf("openclaw/openclaw#12957: came as %v", got)
	}
	f.Faults().Shuffle(10)
	f.post("d")
	f.Faults().StopShuffle()
	if _, ev := s.Event(); ev["text"] != "d" {
		t.Errorf("got %v", ev)
	}
}

func TestAcksCanBeIgnored(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.Faults().IgnoreAcks(1)
	f.post("x")
	s.Event()
	f.waitUntil("the ack came", func() bool {
		return slices.ContainsFunc(f.Frames(), func(fr store.Frame) bool { return strings.Contains(fr.Note, "ignored") })
	})
	f.clock.Advance(socket.AckDeadline)
	env := s.Next()
	if env["retry_attempt"] != 1.0 {
		t.Errorf("got %v", env)
	}
	s.Ack(env)
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
}

func TestFramesThatNoClientExpects(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	raw := func() string {
		data := must[[]byte](t)(s.Read())
		return string(data)
	}
	f.Faults().NotJSON()
	if got := raw(); got != "{not json" {
		t.Error(got)
	}
	f.Faults().UnknownEnvelope()
	if got := s.Next(); got["type"] != "brand_new_thing" {
		t.Errorf("got %v", got)
	}
	f.Faults().EmptyPayload()
	if got := s.Next(); len(got["payload"].(map[string]any)) != 0 {
		t.Errorf("err-backend-slackv3#72: %v", got)
	}
	f.Faults().AppRateLimited()
	if got := s.Next(); got["payload"].(map[string]any)["type"] != "app_rate_limited" {
		t.Errorf("slackapi/node-slack-sdk#2167: %v", got)
	}
	f.Faults().UnknownEvent()
	if _, ev := s.Event(); ev["type"] != "brand_new_event" {
		t.Errorf("got %v", ev)
	}
}

func TestTheRealClientSurvivesUnexpectedFrames(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.collectEvents()
	f.Faults().NotJSON()
	f.Faults().UnknownEnvelope()
	f.Faults().EmptyPayload()
	f.Faults().AppRateLimited()
	f.Faults().UnknownEvent()
	f.Faults().InjectDelivery("*", 1, faults.BadText)
	f.post("bad")
	f.post("good")
	for m := f.nextMessage(got); m.Text != "good"; m = f.nextMessage(got) {
	}
}

func TestPingsCanBeLate(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.PingEvery = 10 * time.Millisecond })
	f.DialReady()
	f.Faults().PingEvery(25 * time.Second)
	s := f.DialReady()
	go func() { _, _ = s.Read() }()
	pings := func(conn int) (n int) {
		for _, fr := range f.Frames() {
			if fr.Kind == "ping" && fr.Conn == conn {
				n++
			}
		}
		return n
	}
	f.waitUntil("mbakgun/n8n-slack-socket-mode#11: one ping, then a long wait", func() bool { return pings(2) == 1 })
}

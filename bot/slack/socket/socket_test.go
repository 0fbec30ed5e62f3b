package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

// nextReplyArrives is the proof of every recovery: a reply written now is heard.
func (x *env) nextReplyArrives(root string) {
	x.t.Helper()
	ts := x.reply(root, "still there?")
	x.waitUntil("the next reply", func() bool { return x.recorder.has("heard " + ts) })
}

func TestTheConnectionIsOpenAndItsStateKnown(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	s := x.connectAndWait()
	x.nextReplyArrives(x.postRoot())
	x.waitUntil("all acked", func() bool { return x.Pending() == 0 })
	st := s.State()
	if !st.Connected || st.App != x.AppID() || st.Connections != 1 || st.Reconnects != 0 || time.Since(st.LastFrame) > patience || st.Problem != "" {
		t.Errorf("state %+v", st)
	}
	if got := x.recorder.all(); got[0] != "open" || got[1] != "connected" {
		t.Errorf("heard %v", got)
	}
}

func TestFaultsOfTheConnectionAreRecoveredFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(x *env)
		tune  func(*Options)
	}{
		// slack-go#1093: a stale socket, which is silent with TCP open. openclaw/openclaw#17847: deaf while "connected".
		{"silent", func(x *env) { x.Faults().Stall() }, func(o *Options) { o.SilenceTimeout = 600 * time.Millisecond }},
		{"silent, by its pings", func(x *env) { x.Faults().Stall() }, func(o *Options) { o.PingTimeout = 600 * time.Millisecond }},
		{"cut in the middle of a frame (slack-go#1608)", func(x *env) { x.Faults().CutMidFrame() }, nil},
		{"dropped (python-slack-sdk#1701)", func(x *env) { x.Faults().Drop() }, nil},
		{"refreshed", func(x *env) { x.Disconnect("refresh_requested") }, nil},
		{"a close that never ends (node-slack-sdk#2752)", func(x *env) {
			x.Faults().NeverFinishClosing()
			x.Disconnect("refresh_requested")
		}, nil},
		{"disconnected before hello (bolt-js#2225)", func(x *env) {
			x.Faults().InjectConnect(2, localslack.DisconnectFirst("refresh_requested"))
			x.Faults().Drop()
		}, nil},
		{"upgrade answered with 408 (bolt-js#1061)", func(x *env) {
			x.Faults().InjectConnect(2, localslack.RejectUpgrade(408))
			x.Faults().Drop()
		}, nil},
		{"no hello", func(x *env) {
			x.Faults().InjectConnect(1, localslack.NoHello())
			x.Faults().Drop()
		}, func(o *Options) { o.StepTimeout = 400 * time.Millisecond }},
		{"open fails (node-slack-sdk#1495, #1500)", func(x *env) {
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.Error("internal_error"))
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.Error("fatal_error"))
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.HTML(503))
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.HTML(200))
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.BadJSON())
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.HTML(404))
			x.Faults().Drop()
		}, nil},
		{"open hangs", func(x *env) {
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.Hang())
			x.Faults().Drop()
		}, func(o *Options) { o.StepTimeout = 400 * time.Millisecond }},
		{"open is rate-limited", func(x *env) {
			x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.RateLimited("1"))
			x.Faults().Drop()
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newEnv(t)
			var tune []func(*Options)
			if c.tune != nil {
				tune = append(tune, c.tune)
			}
			s := x.connectAndWait(tune...)
			root := x.postRoot()
			c.fault(x)
			x.waitUntil("a new connection", func() bool {
				return s.State().Reconnects >= 1 && s.State().Connected && x.recorder.count("connected") >= 2
			})
			x.Faults().Clear()
			x.waitUntil("one live socket", func() bool { return x.Connections() >= 1 })
			x.nextReplyArrives(root)
			if x.recorder.count("closed") == 0 {
				t.Error("nothing said of the disconnection")
			}
		})
	}
}

// openclaw#128809, #102439: after many flaps there is one socket, not a crowd of ghosts.
func TestFlapsLeaveOneSocket(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	s := x.connectAndWait()
	root := x.postRoot()
	for i := range 20 {
		x.waitUntil("connected", func() bool { return s.State().Connected && s.State().Reconnects == i && x.Connections() == 1 })
		x.Faults().Drop()
	}
	x.waitUntil("connected", func() bool { return s.State().Reconnects == 20 && s.State().Connected })
	x.waitUntil("one socket", func() bool { return x.Connections() == 1 })
	x.nextReplyArrives(root)
	if n := s.State().Connections; n != 1 {
		t.Errorf("Slack counts %d connections", n)
	}
}

// node-slack-sdk#1654, bolt-js#2238: the Slack library alone reconnects several times a second, for ever.
func TestConnectionsRefusedBySlackAreRetriedSlowly(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(*localslack.Faults){
		"too_many_websockets": (*localslack.Faults).TooManyWebsockets, "link_disabled": (*localslack.Faults).LinkDisabled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newEnv(t)
			refuse(x.Faults())
			s := x.connect(func(o *Options) { o.BackoffMin, o.BackoffMax = 100*time.Millisecond, 2*time.Second })
			began := time.Now()
			x.waitUntil("the fifth try", func() bool { return len(x.RequestsOf(slack.MethodOpen)) >= 5 })
			if took := time.Since(began); took < time.Second {
				t.Errorf("five tries within %s", took)
			}
			if !strings.Contains(s.State().Problem, name) || !strings.Contains(x.logs.String(), "cannot keep a connection") {
				t.Errorf("problem %q, log:\n%s", s.State().Problem, x.logs)
			}
			x.Faults().Clear()
			x.waitUntil("connected", func() bool { return s.State().Connected })
		})
	}
}

// slack-go#1585: waits grow, and not without a bound.
func TestWaitsGrowWithinBounds(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	wait := newBackoff(o)
	for n := 1; n < 80; n++ {
		d, most := wait.nextDelay(false, errClosed), min(o.BackoffMin<<min(n-1, 20), o.BackoffMax)
		if d < most*3/4 || d > most {
			t.Errorf("try %d waits %s", n, d)
		}
	}
	if d := wait.nextDelay(true, errClosed); d != 0 {
		t.Errorf("after a connection that lived: %s", d)
	}
	if d := wait.nextDelay(false, fmt.Errorf("open: %w", &chat.RateLimitedError{After: 90 * time.Second})); d != 90*time.Second {
		t.Errorf("Slack asks for 90 s, we wait %s", d)
	}
}

// Abilityai/trinity#215: a bad token ends in a message, not in a busy loop.
func TestARefusedTokenEndsTheSocketWithItsRemedy(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"not_allowed_token_type", "no_permission", "team_disabled"} {
		for _, method := range []string{slack.MethodAuthTest, slack.MethodOpen} {
			t.Run(method+" "+code, func(t *testing.T) {
				t.Parallel()
				x := newEnv(t)
				x.Faults().InjectAPI(method, -1, localslack.Error(code))
				s, _ := x.socket()
				err := s.Run(x.ctx)
				var f *slack.FatalError
				if !errors.As(err, &f) || f.Code != code || f.Remedy == "" || (f.Token == "app token") != (method == slack.MethodOpen) {
					t.Errorf("Run: %v", err)
				}
			})
		}
	}
}

func TestATokenRevokedWhileConnectedEndsTheSocket(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	s, ran := x.socket()
	go func() { ran <- s.Run(x.ctx) }()
	x.waitUntil("connected", func() bool { return s.State().Connected })
	x.RevokeToken(x.AppToken(), "token_revoked")
	x.Faults().Drop()
	var f *slack.FatalError
	if err := <-ran; !errors.As(err, &f) || f.Token != "app token" {
		t.Errorf("Run: %v", err)
	}
	if s.State().Connected {
		t.Error("it says that it is connected")
	}
}

func TestTheSocketStopsAtOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(x *env){
		"connected":      func(*env) {},
		"stalled":        func(x *env) { x.Faults().Stall() },
		"TCP stays open": func(x *env) { x.Faults().NeverFinishClosing() },
		"while opening":  func(x *env) { x.Faults().InjectAPI(slack.MethodOpen, -1, localslack.Hang()); x.Faults().Drop() },
		"while waiting to open": func(x *env) {
			x.Faults().InjectAPI(slack.MethodOpen, -1, localslack.RateLimited("60"))
			x.Faults().Drop()
		},
		"while nobody says hello":  func(x *env) { x.Faults().InjectConnect(-1, localslack.NoHello()); x.Faults().Drop() },
		"while Slack says go away": func(x *env) { x.Faults().TooManyWebsockets(); x.Faults().Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newEnv(t)
			s, ran := x.socket()
			ctx, cancel := context.WithCancel(x.ctx)
			go func() { ran <- s.Run(ctx) }()
			x.waitUntil("connected", func() bool { return s.State().Connected })
			fault(x)
			if strings.HasPrefix(name, "while") {
				x.waitUntil("disconnected", func() bool { return !s.State().Connected })
			}
			began := time.Now()
			cancel()
			if err := <-ran; err != nil || time.Since(began) > time.Second {
				t.Errorf("stopped after %s with %v", time.Since(began), err)
			}
		})
	}
}

// What cannot be read is acked all the same, and starts a catch-up; a malformed part of a reply costs only that part.
func TestWhatCannotBeReadStartsACatchUp(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	root := x.postRoot()
	bad := x.reply(root, "bad blocks", localslack.MalformedBlocks())
	x.waitUntil("the malformed reply", func() bool { return x.recorder.has("heard " + bad) })
	x.Faults().InjectDelivery("message.channels", 1, localslack.BadText)
	worse := x.reply(root, "bad text")
	x.waitUntil("the reply with a bad text", func() bool { return x.recorder.has("heard " + worse) })
	for i, inject := range []func() bool{x.Faults().NotJSON, x.Faults().UnknownEnvelope, x.Faults().EmptyPayload, x.Faults().AppRateLimited,
		func() bool { return x.InjectFrame(json.RawMessage(`""`)) }, func() bool { return x.InjectFrame(json.RawMessage(`[]`)) },
		func() bool {
			return x.InjectFrame(json.RawMessage(`{"envelope_id":"e9","type":"events_api","payload":"?"}`))
		}} {
		inject()
		x.waitUntil(fmt.Sprint("catch-up ", i), func() bool { return x.recorder.count("catchupall") == i+1 })
	}
	x.Faults().UnknownEvent()
	x.nextReplyArrives(root)
	if n := x.recorder.count("catchupall"); n != 7 {
		t.Errorf("an event that is only new started a catch-up: %d", n)
	}
	x.waitUntil("all acked", func() bool { return x.Pending() == 0 })
}

// vercel/chat#666, bolt-js#2487, pinet#226: a retry may be the only copy, so nothing is dropped for being one; who
// hears a reply twice tells by its ts.
func TestEveryCopyOfAnEventIsRouted(t *testing.T) {
	t.Parallel()
	clock := localslack.NewFakeClock(time.Now())
	x := newEnv(t, func(o *localslack.Options) { o.Clock = clock })
	x.connectAndWait()
	root := x.postRoot()
	x.Faults().InjectDelivery("message.channels", 1, localslack.LoseFirst)
	late := x.reply(root, "only a retry")
	x.waitUntil("the retry", func() bool { clock.Advance(4 * time.Second); return x.recorder.has("heard " + late) })
	for _, fault := range []localslack.DeliveryFault{localslack.Duplicate, localslack.DuplicateNewEnvelope} {
		x.Faults().InjectDelivery("message.channels", 1, fault)
		ts := x.reply(root, "twice")
		x.waitUntil("both copies", func() bool { return x.recorder.count("heard "+ts) == 2 })
	}
}

// bolt-js#820, openclaw#72808: acks while the connection is down neither hang nor stop anything.
func TestAcksWhileDownDoNotHang(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	s := x.connectAndWait()
	root := x.postRoot()
	x.Faults().DropAfter(60)
	var all []string
	for i := range 120 {
		all = append(all, x.reply(root, fmt.Sprint(i)))
	}
	x.waitUntil("a new connection", func() bool { return s.State().Reconnects >= 1 && s.State().Connected })
	x.nextReplyArrives(root)
	if !slices.IsSortedFunc(all, chat.CompareTS) {
		t.Error("timestamps are not in order")
	}
}

// slack-go#1125, and the 400-event burst that stops the library for good when its reader stalls. openclaw#82310: the
// handler of one event may be slow; nothing else waits for it but what comes after.
func TestASlowHandlerStopsNoAcks(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	release := make(chan struct{})
	blocked := make(chan struct{})
	s := x.connectAndWait()
	s.enqueue(func(ctx context.Context) {
		close(blocked)
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	<-blocked
	root := x.postRoot()
	var all []string
	for i := range 400 {
		all = append(all, x.reply(root, fmt.Sprint(i)))
	}
	x.waitUntil("all acked", func() bool { return x.Pending() == 0 })
	if x.recorder.count("heard") != 0 {
		t.Error("something overtook the slow handler")
	}
	close(release)
	x.waitUntil("all heard", func() bool { return x.recorder.count("heard") == len(all) })
	var got []string
	for _, w := range x.recorder.all() {
		if ts, ok := strings.CutPrefix(w, "heard "); ok {
			got = append(got, ts)
		}
	}
	if !slices.Equal(got, all) {
		t.Error("the order was lost")
	}
}

// slackapi/bolt-js#2327, #1263: two bots on one app split the events; each says so.
func TestAnotherBotOnTheAppIsNoticed(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.connectAndWait()
	s := x.connectAndWait()
	if n := s.State().Connections; n != 2 || !strings.Contains(x.logs.String(), "another bot runs on it") {
		t.Errorf("%d connections; log:\n%s", n, x.logs)
	}
}

// n8n-slack-socket-mode#11: pings that come late, but in time, are no reason to reconnect.
func TestLatePingsAreNoReasonToReconnect(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.Faults().PingEvery(250 * time.Millisecond)
	s := x.connectAndWait(func(o *Options) { o.PingTimeout, o.SilenceTimeout = 500*time.Millisecond, time.Second })
	seen := func() int {
		n := 0
		for _, f := range x.Frames() {
			if f.Kind == "ping" && f.Dir == "out" {
				n++
			}
		}
		return n
	}
	x.waitUntil("eight pings", func() bool { return seen() >= 8 })
	if st := s.State(); st.Reconnects != 0 || !st.Connected {
		t.Errorf("state %+v", st)
	}
}

func TestAFullQueueIsFollowedByACatchUp(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	s, _ := x.socket()
	s.jobs.max = 3
	for range 5 {
		s.enqueue(func(context.Context) {})
	}
	ctx, cancel := context.WithCancel(x.ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.dispatch(ctx) }()
	x.waitUntil("the catch-up", func() bool { return x.recorder.has("catchupall") })
	cancel()
	<-done
}

// BenchmarkAckOfABurst measures how long the ack of each of 1,000 events takes, from the moment it was posted, over one
// loopback connection.
func BenchmarkAckOfABurst(b *testing.B) {
	for b.Loop() {
		took := postBurst(b)
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}

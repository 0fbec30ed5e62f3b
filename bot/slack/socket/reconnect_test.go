package socket

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/slack"
)

// However long a fault of the connection took, 15 s after its end there is a connection again, and what was written meanwhile
// was read. Slack's Retry-After is obeyed, and there is no hot loop.
func TestFifteenSecondsAfterAnyFaultTheSocketIsConnected(t *testing.T) {
	t.Parallel()
	for _, f := range faultKinds() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testRecovery(t, f) })
		})
	}
}

// testRecovery lets a fault last for 39 attempts, and then end at another moment each time.
func testRecovery(t *testing.T, f fault) {
	x := newReconnectEnv(t)
	x.connect()
	x.waitUntil("a connection that lives", time.Minute, func() bool { return time.Since(x.socket.State().Since) > x.socket.o.Stable })
	for round := range uint64(5) {
		before := x.attemptCount()
		f.begin(x)
		x.waitUntil("39 attempts", 39*time.Minute, func() bool { return x.attemptCount() >= before+39 })
		during, err := x.ann.Reply(x.ch, x.root, "during")
		if err != nil {
			t.Fatal(err)
		}
		x.advance(jitter(round, 12*time.Second))
		if x.socket.State().Connected {
			t.Fatal("it says that it is connected")
		}
		x.Faults().Clear()
		x.network.setFail(nil)
		ended := time.Now()
		x.waitUntil("a connection", 15*time.Second+f.retryAfter, func() bool { return x.socket.State().Connected })
		x.waitUntil("the reply that was written meanwhile", 15*time.Second+f.retryAfter-time.Since(ended), func() bool { return x.hasRead(during) })
	}
	if n := x.busiestMinute(); n > 30 {
		t.Errorf("%d attempts within a minute", n)
	}
	if gap := x.shortestAfter(39); gap < f.retryAfter {
		t.Errorf("Slack asked for %s, and was asked again after %s", f.retryAfter, gap)
	}
}

// A connection that breaks again and again as soon as it is there is a hot loop as well.
func TestAFlappingConnectionIsNoHotLoop(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]time.Duration{"breaks at once": 0, "breaks after 9 s": 9 * time.Second, "breaks after 11 s": 11 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newReconnectEnv(t)
				x.connect()
				for range 39 {
					x.waitUntil("connected", 15*time.Second, func() bool { return x.socket.State().Connected })
					x.advance(lives)
					x.Faults().Drop()
					x.waitUntil("disconnected", time.Second, func() bool { return !x.socket.State().Connected || lives > 10*time.Second })
				}
				if n := x.busiestMinute(); n > 30 {
					t.Errorf("%d attempts within a minute", n)
				}
			})
		})
	}
}

// A connection that the network forgot tells nobody: the other end is asked for a sign of life.
func TestALostConnectionIsReplacedWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newReconnectEnv(t)
		x.connect()
		for round := range uint64(20) {
			x.advance(12*time.Second + jitter(round, 6*time.Second))
			reconnects := x.socket.State().Reconnects
			x.Faults().Stall()
			x.waitUntil("another connection", 15*time.Second, func() bool {
				s := x.socket.State()
				return s.Connected && s.Reconnects > reconnects
			})
		}
	})
}

// A connection on which Slack's own pings are seldom, and nothing else happens, stays.
func TestAQuietConnectionIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newReconnectEnv(t)
		x.Faults().PingEvery(25 * time.Second)
		x.connect()
		x.advance(10 * time.Minute)
		if s := x.socket.State(); !s.Connected || s.Reconnects != 0 {
			t.Errorf("state %+v", s)
		}
	})
}

// A token that worked is tried on for an hour, more and more slowly, and that is said.
func TestATokenThatWorkedIsRetriedForAnHour(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_auth", "not_authed", "account_inactive"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testTokenRecovery(t, code) })
		})
	}
}

func testTokenRecovery(t *testing.T, code string) {
	x := newReconnectEnv(t)
	x.connect()
	x.Faults().InjectAPI(slack.MethodOpen, 1, localslack.Error(code)) // a single one
	x.Faults().Drop()
	x.waitUntil("refused", 10*time.Second, func() bool { return !x.socket.State().Connected })
	x.waitUntil("connected again", 10*time.Second, func() bool { return x.socket.State().Connected })

	before := x.attemptCount()
	x.Faults().InjectAPI(slack.MethodOpen, -1, localslack.Error(code))
	x.Faults().Drop()
	x.advance(50 * time.Minute)
	if s := x.socket.State(); s.Connected || !containsAll(s.Problem, code, "app token", "it accepted before", "retrying until") {
		t.Errorf("state %+v", s)
	}
	if n := x.attemptCount() - before; n < 10 || n > 25 {
		t.Errorf("%d attempts in 50 minutes", n)
	}
	if !containsAll(x.log.String(), code) {
		t.Errorf("log:\n%s", x.log)
	}
	x.Faults().Clear()
	x.waitUntil("connected again", 6*time.Minute, func() bool { return x.socket.State().Connected })

	x.Faults().InjectAPI(slack.MethodOpen, -1, localslack.Error(code))
	x.Faults().Drop()
	began := time.Now()
	var f *slack.FatalError
	if err := <-x.done; !errors.As(err, &f) || f.Code != code || time.Since(began) < time.Hour || time.Since(began) > 66*time.Minute {
		t.Errorf("ended after %s with %v", time.Since(began), err)
	}
	x.done <- nil
}

// A network that fails as well does not begin the hour anew.
func TestTheHourOfARefusedTokenIsOneHour(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	wait, now := newBackoff(o), time.Now()
	wait.markAccepted()
	refusal := &slack.FatalError{Token: "app token", Code: "invalid_auth"}
	for at := time.Duration(0); at < time.Hour; at += 10 * time.Minute {
		for _, err := range []error{refusal, errClosed} {
			if shown, over := wait.assess(err, now.Add(at)); over {
				t.Fatalf("over after %s: %v", at, shown)
			}
		}
		if d := wait.nextDelay(false, errClosed); d > o.BackoffMax {
			t.Errorf("after a fault of the network it waits %s", d)
		}
	}
	if _, over := wait.assess(refusal, now.Add(time.Hour)); !over {
		t.Error("after an hour it goes on")
	}
	wait.markAccepted()
	if _, over := wait.assess(refusal, now.Add(2*time.Hour)); over {
		t.Error("a token that was taken meanwhile has no hour of its own")
	}
	if _, over := wait.assess(&slack.FatalError{Token: "app token", Code: "token_revoked"}, now); !over {
		t.Error("a token that was revoked is tried on")
	}
}

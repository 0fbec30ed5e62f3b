package localslack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack/socketmode"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
	"the-loop/bot/localslack/wiretest"
)

// envelope reads an envelope without acking it.
func envelope(s *wiretest.Socket) (id, eventID string, attempt float64, reason string) {
	env := s.Next()
	payload, _ := env["payload"].(map[string]any)
	attempt, _ = env["retry_attempt"].(float64)
	return blockkit.Str(env["envelope_id"]), blockkit.Str(payload["event_id"]), attempt, blockkit.Str(env["retry_reason"])
}

func TestHelloCountsConnections(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	for n := 1.0; n <= 2; n++ {
		h := f.Dial().Next()
		if h["type"] != "hello" || h["num_connections"] != n {
			t.Errorf("hello %v", h)
		}
		info := h["debug_info"].(map[string]any)
		if info["approximate_connection_time"] != 18060.0 || h["connection_info"].(map[string]any)["app_id"] != f.AppID() {
			t.Errorf("hello %v", h)
		}
	}
}

func TestATicketIsGoodForOneSocketAndHalfAMinute(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	open := func() string {
		out, _ := f.CallAs(f.AppToken(), "apps.connections.open", nil)
		return blockkit.Str(out["url"])
	}
	u := open()
	must[*wiretest.Socket](t)(f.DialURL(u)).Next()
	if _, err := f.DialURL(u); err == nil {
		t.Error("a ticket was used twice")
	}
	u = open()
	f.clock.Advance(webapi.TicketTTL + time.Second)
	if _, err := f.DialURL(u); err == nil {
		t.Error("an old ticket was taken")
	}
}

func TestTheEleventhSocketIsOneTooMany(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	for range socket.MaxConnections {
		f.DialReady()
	}
	if d := f.Dial().Next(); d["type"] != "disconnect" || d["reason"] != "too_many_websockets" {
		t.Errorf("got %v", d)
	}
	if n := f.Connections(); n != socket.MaxConnections {
		t.Errorf("%d connections", n)
	}
}

func TestAnEventIsRetriedAtOnceAfterAMinuteAndAfterFive(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.post("x")
	id, event, attempt, reason := envelope(s)
	if attempt != 0 || reason != "" {
		t.Fatalf("attempt %v, %q", attempt, reason)
	}
	first := id
	for i, delay := range socket.RetryDelays {
		f.clock.Advance(socket.AckDeadline)
		if delay > 0 {
			f.waitScheduled(delay)
			f.clock.Advance(delay)
		}
		nextID, nextEvent, attempt, reason := envelope(s)
		if nextEvent != event || attempt != float64(i+1) || reason != "timeout" {
			t.Fatalf("retry %d: event %s, attempt %v, %q", i+1, nextEvent, attempt, reason)
		}
		id = nextID
	}
	if id == first {
		t.Error("gugu91/pinet#226: a later retry has a new envelope id")
	}
	f.clock.Advance(socket.AckDeadline)
	f.waitUntil("given up", func() bool { return f.Pending() == 0 })
}

// waitScheduled waits until something is scheduled for that long from now, and nothing earlier.
func (f *fixture) waitScheduled(d time.Duration) {
	f.t.Helper()
	for {
		f.Sched.Mu.Lock()
		var next time.Time
		for _, task := range f.Sched.Tasks {
			if !task.Cancelled && (next.IsZero() || task.Due.Before(next)) {
				next = task.Due
			}
		}
		f.Sched.Mu.Unlock()
		if next.Equal(f.clock.Now().Add(d)) {
			return
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("nothing is scheduled in %s, but at %s", d, next)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAnAckInTimeEndsTheDelivery(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.post("x")
	s.Event()
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
	f.clock.Advance(time.Hour / 2)
	f.post("y")
	if _, ev := s.Event(); ev["text"] != "y" {
		t.Errorf("after an ack came %v", ev)
	}
}

func TestTheFirstRetryRepeatsTheEnvelope(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.post("x")
	a := s.Next()
	f.clock.Advance(socket.AckDeadline)
	b := s.Next()
	if a["envelope_id"] != b["envelope_id"] {
		t.Error("slackapi/bolt-js#2487: the same envelope comes twice")
	}
	s.Ack(b)
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
}

func TestAnAckOf20KBIsDropped(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.post("x")
	env := s.Next()
	s.Send(map[string]any{"envelope_id": env["envelope_id"], "payload": map[string]string{"text": strings.Repeat("x", 20_000)}})
	f.waitUntil("seen", func() bool {
		for _, fr := range f.Frames() {
			if strings.HasPrefix(fr.Note, "dropped") {
				return true
			}
		}
		return false
	})
	if f.Pending() != 1 {
		t.Error("slack-go/slack#1196: the ack counted")
	}
	s.Ack(env)
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
}

func TestEachPayloadGoesToOneSocketByChance(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	sockets := []*wiretest.Socket{f.DialReady(), f.DialReady()}
	const n = 60
	for range n {
		f.post("x")
	}
	got := make(chan int, n)
	for i, s := range sockets {
		go func() {
			for {
				data, err := s.Read()
				if err != nil {
					return
				}
				var env map[string]any
				if json.Unmarshal(data, &env) == nil && s.Write([]byte(`{"envelope_id":"`+blockkit.Str(env["envelope_id"])+`"}`)) == nil {
					got <- i
				}
			}
		}()
	}
	count := [2]int{}
	for range n {
		select {
		case i := <-got:
			count[i]++
		case <-f.ctx.Done():
			t.Fatalf("got %v", count)
		}
	}
	if count[0] < n/6 || count[1] < n/6 {
		t.Errorf("slackapi/bolt-js#2225: shared out as %v", count)
	}
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
}

func TestEventsWithoutAConnectionFollowTheSameSchedule(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.post("x")
	f.waitScheduled(time.Minute)
	s := f.DialReady()
	f.clock.Advance(time.Minute)
	if _, _, attempt, _ := envelope(s); attempt != 2 {
		t.Errorf("attempt %v", attempt)
	}
}

func TestEventsThatNobodyAcksAreGivenUp(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.post("x")
	f.waitScheduled(time.Minute)
	f.clock.Advance(time.Minute)
	f.waitScheduled(5 * time.Minute)
	f.clock.Advance(5 * time.Minute)
	f.waitUntil("given up", func() bool { return f.Pending() == 0 })
	s := f.DialReady()
	f.post("y")
	if _, ev := s.Event(); ev["text"] != "y" {
		t.Errorf("got %v", ev)
	}
}

func TestAConnectionIsRefreshedAtTheEndOfItsLife(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.clock.Advance(18060*time.Second - socket.WarnBefore)
	if d := s.Next(); d["reason"] != "warning" {
		t.Errorf("got %v", d)
	}
	if f.Connections() != 1 {
		t.Error("a warning ended it")
	}
	f.clock.Advance(socket.WarnBefore)
	if d := s.Next(); d["type"] != "disconnect" || d["reason"] != "refresh_requested" {
		t.Errorf("got %v", d)
	}
	if f.Connections() != 0 {
		t.Error("it still gets payloads")
	}
	f.clock.Advance(socket.CloseAfterWarn)
	s.WaitClosed()
}

func TestEventsAreTurnedOffWhenNothingIsAcked(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.AutoDisable = true })
	for range 20 {
		f.post("x")
	}
	f.waitUntil("turned off", f.EventsDisabled)
	f.waitScheduled(time.Minute) // what failed at once was tried again, and counts as well
	f.EnableEvents()
	s := f.DialReady()
	f.post("y")
	if _, ev := s.Event(); ev["text"] != "y" {
		t.Errorf("got %v", ev)
	}
}

func TestFramesAreRecordedInBothDirections(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	seen := make(chan store.Frame, 100)
	watching := make(chan struct{})
	ctx, stop := context.WithCancel(f.ctx)
	go func() { defer close(watching); f.WatchFrames(ctx, func(fr store.Frame) { seen <- fr }) }()
	t.Cleanup(func() { stop(); <-watching })
	f.post("x")
	s.Event()
	f.waitUntil("acked", func() bool { return f.Pending() == 0 })
	var out, in bool
	for _, fr := range f.Frames() {
		out = out || fr.Dir == "out" && strings.Contains(string(fr.Data), `"events_api"`)
		in = in || fr.Dir == "in" && fr.Note == "ack"
	}
	if !out || !in {
		t.Errorf("out %v, in %v", out, in)
	}
	f.post("y")
	for {
		select {
		case fr := <-seen:
			if strings.Contains(string(fr.Data), `"text":"y"`) {
				return
			}
		case <-f.ctx.Done():
			t.Fatal("the watcher saw nothing")
		}
	}
}

func TestClosingTakesLessThanASecond(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	s := f.DialReady()
	f.Faults().NeverFinishClosing()
	f.Faults().Stall()
	f.Faults().InjectAPI("auth.test", 1, faults.Hang())
	hung := make(chan error, 1)
	go func() { _, err := f.api.AuthTestContext(f.ctx); hung <- err }()
	f.waitUntil("a call hangs", func() bool { return len(f.RequestsOf("auth.test")) == 1 })
	began := time.Now()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("it took %s", d)
	}
	s.WaitClosed()
	if err := <-hung; err == nil {
		t.Error("a hanging call was answered")
	}
}

func TestTheWorkspaceListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	if err := New(store.Options{Host: "0.0.0.0:0"}).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
}

func TestTheRealClientSurvivesABurst(t *testing.T) {
	t.Parallel()
	f := startFixture(t, noRates)
	got := f.collectEvents()
	const n = 1000
	for range n {
		f.post("x")
	}
	for range n {
		f.nextMessage(got)
	}
	f.waitUntil("all acked", func() bool { return f.Pending() == 0 })
}

func TestTheRealClientGivesUpOnABadToken(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.RevokeToken(f.AppToken(), "invalid_auth")
	client := socketmode.New(f.api)
	go func() {
		for range client.Events {
		}
	}()
	err := client.RunContext(f.ctx)
	close(client.Events)
	if err == nil || errors.Is(err, f.ctx.Err()) || err.Error() != "invalid_auth" {
		t.Errorf("Abilityai/trinity#215: got %v", err)
	}
}

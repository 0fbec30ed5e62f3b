package socket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
)

// API is what a socket needs of the client of Slack's Web API.
type API interface {
	EnsureIdentified(ctx context.Context) error
	// OpenConnection asks for the address of a Socket Mode connection.
	OpenConnection(ctx context.Context) (address string, err error)
	// ScrubAck removes secrets from the payload of an ack.
	ScrubAck(payload []byte) []byte
	// Close closes idle connections.
	Close()
}

// Router handles envelopes, one at a time. It does nothing slow.
type Router interface {
	Route(ctx context.Context, e slack.Envelope)
}

// CatchUps has threads read again, because something may have been missed. Neither method may block.
type CatchUps interface {
	Connected(alone bool) // events flow (again); alone: Slack counts no other connection that some of them may go to
	CatchUpAll()
}

// Recorder records connections.
type Recorder interface {
	Connected(ctx context.Context, st State)
	Disconnected(ctx context.Context, reason string, after time.Duration)
}

// Options are what a [Socket] is made of. API, Router, CatchUps and Recorder are required; the durations have defaults.
type Options struct {
	API      API
	Router   Router
	CatchUps CatchUps
	Recorder Recorder
	Log      *slog.Logger

	Changed func() // called when the state has changed; may be nil, must not block

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // opens what is under a WebSocket; nil: a [network.Dialer]

	PingTimeout    time.Duration // Slack's pings must come at least this often; default 30 s
	SilenceTimeout time.Duration // without a single byte for so long, a connection is given up; it is pinged before; default 12 s
	StepTimeout    time.Duration // for each step of opening a connection: asking for it, dialling, the hello; default 7 s
	Stable         time.Duration // a connection that lived so long is followed by the next one at once; default 10 s
	BackoffMin     time.Duration // after the first failure; doubles with each; default 500 ms
	BackoffMax     time.Duration // default 4 s: with StepTimeout 11 s, so that 15 s after a fault there is a connection
	Grace          time.Duration // how long a token that worked and is refused now is tried again; default one hour
	GraceMax       time.Duration // the longest wait between two such tries; default 5 minutes
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.PingTimeout, 30 * time.Second}, {&o.SilenceTimeout, 12 * time.Second}, {&o.StepTimeout, 7 * time.Second}, {&o.Stable, 10 * time.Second},
		{&o.BackoffMin, 500 * time.Millisecond}, {&o.BackoffMax, 4 * time.Second}, {&o.Grace, time.Hour}, {&o.GraceMax, 5 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// State is the state of the connection. Its health is the age of LastFrame: a connection can look open and be dead.
type State struct {
	Connected   bool      `json:"connected"`
	Since       time.Time `json:"since"`       // of being connected or not
	LastFrame   time.Time `json:"lastFrame"`   // when the last byte came in, pings included
	Connections int       `json:"connections"` // open on this app, by the last hello; more than 1: another bot runs on it
	Reconnects  int       `json:"reconnects"`
	App         string    `json:"app"`               // A…, by the last hello
	Problem     string    `json:"problem,omitempty"` // why it is not connected
}

// Socket keeps one Socket Mode connection to Slack. Run owns all of its goroutines: one reads a connection's envelopes,
// queues and acks them; one hands them to the [Router], so that their order is kept; one watches that the connection lives. The Slack library opens connections and does not keep them: it parses every event before it can be
// acked, which takes four fifths of the time until the ack in a burst, keeps Slack's reason for a disconnect to itself,
// and waits forever when its reader stalls.
type Socket struct {
	o          Options
	jobs       *queue[func(context.Context)]
	overflowed atomic.Bool // the queue was full
	lastFrame  atomic.Int64

	tokenAccepted atomic.Int64 // how often Slack accepted the app token

	mu     sync.Mutex // guards the fields that follow
	state  State
	hellos int
}

// maxJobs bounds the queue. What does not fit is found by reading the threads.
const maxJobs = 100_000

// New returns a socket; Run opens it.
func New(o Options) *Socket {
	return &Socket{o: o.withDefaults(), jobs: newQueue[func(context.Context)](maxJobs)}
}

// State is the present state of the connection.
func (s *Socket) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	if at := s.lastFrame.Load(); at != 0 {
		st.LastFrame = time.Unix(0, at)
	}
	return st
}

// Run stays connected until ctx ends (then it returns nil) or Slack refuses us for good (then a [*slack.FatalError]).
func (s *Socket) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.dispatch(ctx) })
	err := s.keepConnected(ctx)
	cancel()
	wg.Wait()
	return err
}

// dispatch runs the jobs, one after the other.
func (s *Socket) dispatch(ctx context.Context) {
	for {
		jobs, ok := s.jobs.takeAll(ctx)
		if !ok {
			return
		}
		for _, job := range jobs {
			if ctx.Err() != nil {
				return
			}
			job(ctx)
		}
		if s.overflowed.Swap(false) {
			s.o.Log.Error("too many events at once; reading all threads again", "waiting", maxJobs)
			s.o.CatchUps.CatchUpAll()
		}
	}
}

func (s *Socket) enqueue(job func(context.Context)) {
	if !s.jobs.push(job) {
		s.overflowed.Store(true)
	}
}

// Identify asks Slack who we are until it says so. It returns nil when it did, ctx's error when ctx ended first, and otherwise a
// [*slack.FatalError]: a token that Slack refuses here has never worked.
func (s *Socket) Identify(ctx context.Context) error {
	for wait := newBackoff(s.o); ; {
		err := s.identifyOnce(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return s.stopped(ctx)
		}
		err, over := wait.assess(err, time.Now())
		s.onDisconnected(ctx, err)
		if over {
			return err
		}
		s.o.API.Close()
		d := wait.nextDelay(false, err)
		if wait.failures == 1 || wait.shouldLog() {
			s.o.Log.Warn("cannot reach Slack", "next", d.Round(time.Millisecond), "because", err)
		}
		if !pause(ctx, d) {
			return s.stopped(ctx)
		}
	}
}

func (s *Socket) identifyOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.StepTimeout)
	defer cancel()
	return s.o.API.EnsureIdentified(ctx)
}

// stopped records that the bot is stopping, and returns ctx's error.
func (s *Socket) stopped(ctx context.Context) error {
	s.onDisconnected(context.WithoutCancel(ctx), errStopped)
	return ctx.Err()
}

// keepConnected connects, again and again.
func (s *Socket) keepConnected(ctx context.Context) error {
	for wait := newBackoff(s.o); ; {
		began, taken := time.Now(), s.tokenAccepted.Load()
		err := s.connectOnce(ctx)
		if ctx.Err() != nil {
			_ = s.stopped(ctx) // that is no failure
			return nil
		}
		if s.tokenAccepted.Load() > taken {
			wait.markAccepted()
		}
		err, over := wait.assess(err, time.Now())
		connected := s.onDisconnected(ctx, err)
		if over {
			return err
		}
		s.o.API.Close() // a dead connection among the idle ones would fail the next try as well
		d := wait.nextDelay(connected && time.Since(began) >= s.o.Stable, err)
		if wait.shouldLog() {
			s.o.Log.Warn("cannot keep a connection to Slack", "tries", wait.failures, "next", d.Round(time.Millisecond), "because", err)
		}
		if !pause(ctx, d) {
			_ = s.stopped(ctx)
			return nil
		}
	}
}

// connectOnce holds one connection and returns why it ended.
func (s *Socket) connectOnce(ctx context.Context) error {
	if err := s.identifyOnce(ctx); err != nil {
		return err
	}
	return newConnection(s).run(ctx)
}

// pause waits, and reports false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// onConnected records a hello.
func (s *Socket) onConnected(ctx context.Context, connections int, app string) {
	s.mu.Lock()
	s.state.Reconnects = s.hellos
	s.hellos++
	s.state.Connected, s.state.Since, s.state.Problem = true, time.Now(), ""
	s.state.Connections, s.state.App = connections, cmp.Or(app, s.state.App)
	st := s.state
	s.mu.Unlock()
	s.o.Changed()
	if connections > 1 {
		s.o.Log.Warn("Slack counts more than one connection on this app: another bot runs on it, and each gets a part of the "+
			"events (end it, or give each its own app), or Slack still counts an old one", "connections", connections)
	}
	s.o.Recorder.Connected(ctx, st)
	s.enqueue(func(context.Context) { s.o.CatchUps.Connected(connections <= 1) })
}

// onDisconnected records the end of a connection and reports whether there had been one.
func (s *Socket) onDisconnected(ctx context.Context, why error) bool {
	s.mu.Lock()
	was, since := s.state.Connected, s.state.Since
	if was || since.IsZero() {
		s.state.Since = time.Now()
	}
	s.state.Connected, s.state.Problem = false, why.Error()
	s.mu.Unlock()
	s.o.Changed()
	if was {
		s.o.Log.Info("disconnected from Slack", "after", time.Since(since).Round(time.Second), "because", why)
		s.o.Recorder.Disconnected(ctx, why.Error(), time.Since(since))
	}
	return was
}

// Why a connection ended, where Slack did not say so.
var (
	errClosed     = errors.New("the connection to Slack broke")
	errNoResponse = errors.New("no answer from Slack while connecting")
	errStopped    = errors.New("the bot is stopping")
)

// closedError is a connection that Slack closed, with Slack's reason.
type closedError struct{ reason string }

func (e closedError) Error() string {
	text := "Slack closed the connection: " + cmp.Or(e.reason, "it gave no reason")
	switch e.reason {
	case "link_disabled":
		return text + "; Socket Mode is switched off in the app's settings"
	case "too_many_websockets":
		return text + "; ten connections are open on this app: end the other bots that run on it"
	}
	return text
}

// silentError says that a connection was open and something did not come.
type silentError struct {
	what  string
	after time.Duration
}

func (e silentError) Error() string {
	return fmt.Sprintf("%s came from Slack for %s", e.what, e.after.Round(time.Millisecond))
}

// needsAckPayload reports whether an envelope's ack carries its handler's answer.
func needsAckPayload(kind string, payload json.RawMessage) bool {
	return kind == slack.EnvelopeInteractive && lenientjson.Parse(payload).Str("type") == "view_submission"
}

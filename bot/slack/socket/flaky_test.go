package socket

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

// memoryNet is a network in memory, so that its time can be a synctest bubble's. It is the workspace's listener too.
type memoryNet struct {
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once

	mu   sync.Mutex // guards the field that follows
	fail func(ctx context.Context, path string) error
}

func newMemoryNet() *memoryNet {
	return &memoryNet{incoming: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *memoryNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.incoming:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *memoryNet) Close() error { n.once.Do(func() { close(n.closed) }); return nil }

func (n *memoryNet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// setFail makes dialling fail with that from now on; nil: it works again.
func (n *memoryNet) setFail(fail func(ctx context.Context, what string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = fail
}

// What is dialled for.
const (
	forAPI    = "api"
	forSocket = "socket"
)

func (n *memoryNet) dialer(what string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		fail := n.fail
		n.mu.Unlock()
		if fail != nil {
			if err := fail(ctx, what); err != nil {
				return nil, err
			}
		}
		ours, theirs := net.Pipe()
		select {
		case n.incoming <- theirs:
			return ours, nil
		case <-n.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reconnectEnv is a socket with its default waits, in a bubble's time.
type reconnectEnv struct {
	*localslack.Workspace
	t       *testing.T
	network *memoryNet
	client  *slack.Client
	socket  *Socket
	ann     *localslack.Person
	ch      string
	root    string
	log     *logBuffer
	done    chan error

	mu          sync.Mutex // guards the fields that follow
	attempts    []time.Time
	readAt      map[string]time.Time // replies, by when they were read
	connectedAt []time.Time          // when it was connected
}

// RoundTrip counts attempts: each one asks for a connection once.
func (x *reconnectEnv) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, slack.MethodOpen) {
		x.mu.Lock()
		x.attempts = append(x.attempts, time.Now())
		x.mu.Unlock()
	}
	return x.transport().RoundTrip(r)
}

// transport has no idle connections, so that each call meets the network as it is.
func (x *reconnectEnv) transport() *http.Transport {
	return &http.Transport{DialContext: x.network.dialer(forAPI), DisableKeepAlives: true}
}

// Connected reads the thread, as catching up does.
func (x *reconnectEnv) Connected(bool) {
	x.mu.Lock()
	x.connectedAt = append(x.connectedAt, time.Now())
	x.mu.Unlock()
	page, err := x.client.Replies(context.Background(), x.ch, x.root, x.root, "")
	if err != nil {
		x.t.Error(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range page.Replies {
		if x.readAt[r.TS].IsZero() {
			x.readAt[r.TS] = time.Now()
		}
	}
}

func (x *reconnectEnv) CatchUpAll() {}

// newReconnectEnv returns a flaky with its workspace started. The caller is in a bubble.
func newReconnectEnv(t *testing.T) *reconnectEnv {
	t.Helper()
	x := &reconnectEnv{t: t, network: newMemoryNet(), log: new(logBuffer), done: make(chan error, 1), readAt: map[string]time.Time{}}
	x.Workspace = localslack.New(localslack.Options{RateLimits: localslack.RateLimitsOff, Listener: x.network, Log: slog.New(slog.DiscardHandler)})
	if err := x.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	x.ann = x.AddUser("ann")
	x.ch = x.AddChannel("agents", localslack.Members(x.ann.ID, x.BotUserID())).ID
	var err error
	if x.client, err = newClient(slack.ClientOptions{BotToken: x.BotToken(), AppToken: x.AppToken(), APIURL: x.APIURL(), HTTP: &http.Client{Transport: x}}); err != nil {
		t.Fatal(err)
	}
	heard := newRecorder()
	router := slack.NewEventRouter(slack.EventRouterOptions{Client: x.client, Threads: heard, CatchUpAll: x.CatchUpAll, Log: x.log.logger()})
	x.socket = New(Options{API: x.client, Router: router, CatchUps: x, Recorder: connections{heard}, Log: x.log.logger(), Dial: x.network.dialer(forSocket)})
	return x
}

// up connects. The socket runs until the test ends.
func (x *reconnectEnv) connect() {
	x.t.Helper()
	root, err := x.client.Post(x.t.Context(), chat.Post{Channel: x.ch, Text: "root", Nonce: "n"})
	if err != nil {
		x.t.Fatal(err)
	}
	x.root = root
	go func() { x.done <- x.socket.Run(x.t.Context()) }()
	x.t.Cleanup(x.stop)
	x.waitUntil("connected", time.Minute, func() bool { return x.socket.State().Connected })
}

// waitUntil waits until cond holds, for at most a time.
func (x *reconnectEnv) waitUntil(what string, most time.Duration, cond func() bool) {
	x.t.Helper()
	for began := time.Now(); !cond(); {
		if time.Since(began) > most {
			x.t.Fatalf("waiting for %s in vain for %s; %+v; log:\n%s", what, most, x.socket.State(), x.log)
		}
		x.advance(50 * time.Millisecond)
	}
}

// advance waits for d in the bubble's time.
func (x *reconnectEnv) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (x *reconnectEnv) attemptCount() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.attempts)
}

// busiestMinute is how many attempts there were in the busiest minute.
func (x *reconnectEnv) busiestMinute() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	most := 0
	for i, from := range x.attempts {
		n := 0
		for _, at := range x.attempts[i:] {
			if at.Sub(from) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// fault is one kind of trouble.
type fault struct {
	name       string
	begin      func(x *reconnectEnv)
	retryAfter time.Duration // how long Slack asks to wait
}

// apiFault is a fault of each request for a connection.
func apiFault(name string, f localslack.APIFault, asks time.Duration) fault {
	return fault{name: name, retryAfter: asks, begin: func(x *reconnectEnv) {
		x.Faults().InjectAPI(slack.MethodOpen, -1, f)
		x.Faults().Drop()
	}}
}

// connectFault is a fault of each new connection.
func connectFault(name string, f localslack.ConnectFault) fault {
	return fault{name: name, begin: func(x *reconnectEnv) {
		x.Faults().InjectConnect(-1, f)
		x.Faults().Drop()
	}}
}

// netFault is a fault of dialling.
func netFault(name string, fail func(ctx context.Context, what string) error) fault {
	return fault{name: name, begin: func(x *reconnectEnv) {
		x.network.setFail(fail)
		x.Faults().Drop()
	}}
}

// dialHangs ends with the dialler's own patience as well: package http goes on dialling for who comes next.
func dialHangs(ctx context.Context, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

var errDialRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// faultKinds are the ways in which a connection cannot be had.
func faultKinds() []fault {
	return []fault{
		netFault("TCP refused", func(context.Context, string) error { return errDialRefused }),
		netFault("TCP refused for the socket alone", func(_ context.Context, what string) error {
			if what == forSocket {
				return errDialRefused
			}
			return nil
		}),
		netFault("no such host", func(context.Context, string) error {
			return &net.DNSError{Err: "no such host", Name: "slack.com", IsNotFound: true}
		}),
		netFault("dialling hangs", dialHangs),
		netFault("dialling the socket hangs", func(ctx context.Context, what string) error {
			if what == forSocket {
				return dialHangs(ctx, what)
			}
			return nil
		}),
		netFault("reset during the upgrade", func(_ context.Context, what string) error {
			if what == forSocket {
				return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
			}
			return nil
		}),
		connectFault("the upgrade is refused", localslack.RejectUpgrade(http.StatusServiceUnavailable)),
		connectFault("no hello", localslack.NoHello()),
		connectFault("refresh_requested before hello", localslack.DisconnectFirst("refresh_requested")),
		connectFault("link_disabled", localslack.DisconnectFirst("link_disabled")),
		connectFault("too_many_websockets", localslack.DisconnectFirst("too_many_websockets")),
		apiFault("429, 20 s", localslack.RateLimited("20"), 20*time.Second),
		apiFault("429 without a number", localslack.RateLimited(""), 0),
		apiFault("503", localslack.HTML(http.StatusServiceUnavailable), 0),
		apiFault("internal_error", localslack.Error("internal_error"), 0),
		apiFault("a page at 200", localslack.HTML(http.StatusOK), 0),
		apiFault("half a JSON", localslack.BadJSON(), 0),
		apiFault("asking for a connection hangs", localslack.Hang(), 0),
		apiFault("asking for a connection is cut off", localslack.CutBefore(), 0),
	}
}

// jitter is the moment within the waits at which a fault ends, another one each time.
func jitter(seed uint64, most time.Duration) time.Duration {
	return time.Duration(rand.New(rand.NewPCG(seed, 1)).Int64N(int64(most)))
}

// hasRead reports whether the reply was read.
func (x *reconnectEnv) hasRead(ts string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.readAt[ts].IsZero()
}

// shortestAfter is the shortest time between an attempt and the next one within the first n of a fault.
func (x *reconnectEnv) shortestAfter(n int) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	shortest := time.Hour
	for i := 2; i < n && i < len(x.attempts); i++ { // the first is the one that worked
		shortest = min(shortest, x.attempts[i].Sub(x.attempts[i-1]))
	}
	return shortest
}

// stop ends everything that the bubble has.
func (x *reconnectEnv) stop() {
	if err := <-x.done; err != nil {
		x.t.Errorf("the socket ended with %v", err)
	}
	x.client.Close()
	x.advance(30 * time.Second) // what still dials has ended
	if err := x.Close(); err != nil {
		x.t.Error(err)
	}
}

// containsAll reports whether a text has all of the parts.
func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

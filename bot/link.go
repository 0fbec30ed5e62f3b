package bot

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

const (
	// maxFrame bounds one frame from Slack.
	maxFrame = 16 << 20
	// writeBuffer holds the largest ack: Slack does not put fragments together.
	writeBuffer = 32 << 10
	// ackTime is how long an ack waits for a connection that does not take it; Slack sends the envelope again.
	ackTime = 5 * time.Second
	// abandonAfter is how long the Slack library gets to notice that it was told to stop.
	abandonAfter = 3 * time.Second
)

// link is one connection. run owns its goroutines.
type link struct {
	s     *Socket
	sm    *socketmode.Client
	acks  *queue[ack]
	end   context.CancelCauseFunc
	began time.Time

	mu    sync.Mutex // guards the fields that follow
	hello bool
	conns []net.Conn
}

type ack struct {
	id      string
	payload any
}

func newLink(s *Socket) *link {
	l := &link{s: s, acks: newQueue[ack](maxJobs), began: time.Now()}
	dialer := &websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: s.o.Hello, WriteBufferSize: writeBuffer,
		NetDialContext: l.dial}
	l.sm = socketmode.New(s.o.Client.apiOver(&openOnce{wire: s.o.Client.wire}), socketmode.OptionPingInterval(s.o.Ping), socketmode.OptionReadLimit(maxFrame),
		socketmode.OptionDialer(dialer))
	return l
}

// run holds the connection until it ends, and returns why.
func (l *link) run(parent context.Context) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	l.end = end
	ended := make(chan error, 1)
	go func() { ended <- l.sm.RunContext(ctx) }() // waited for below, unless it hangs
	pumped := make(chan struct{})
	stop := make(chan struct{})
	go func() { defer close(pumped); l.pump(ctx, stop) }()
	var acker sync.WaitGroup
	acker.Go(func() { l.sendAcks(ctx) })

	err, returned := l.watch(ctx, ended)
	end(err)
	l.closeAll()
	if !returned {
		select {
		case <-ended:
		case <-time.After(abandonAfter):
			l.s.o.Log.Error("the Slack library does not stop; leaving it behind")
		}
	}
	close(stop)
	<-pumped
	acker.Wait()
	return err
}

// watch returns when the connection has ended or should; returned says that the library's loop is over already.
func (l *link) watch(ctx context.Context, ended <-chan error) (err error, returned bool) {
	tick := time.NewTicker(max(time.Millisecond, min(time.Second, l.s.o.Silent/8, l.s.o.Hello/8)))
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if cause := context.Cause(ctx); cause != nil {
				return cause, true
			}
			return classify(methodOpen, appTokenName, false, err), true
		case <-ctx.Done():
			return context.Cause(ctx), false
		case <-tick.C:
			if err := l.health(); err != nil {
				return err, false
			}
		}
	}
}

// health is an error when the connection should be given up.
func (l *link) health() error {
	l.mu.Lock()
	hello := l.hello
	l.mu.Unlock()
	if !hello {
		if time.Since(l.began) > l.s.o.Hello {
			return errNoLife
		}
		return nil
	}
	if quiet := time.Since(time.Unix(0, l.s.lastFrame.Load())); quiet > l.s.o.Silent {
		return silentError{after: quiet}
	}
	return nil
}

// pump takes the library's events. It never blocks: a stalled reader of these would stop the library for good.
func (l *link) pump(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case e := <-l.sm.Events:
			l.event(ctx, e)
		case <-stop:
			return
		}
	}
}

func (l *link) event(ctx context.Context, e socketmode.Event) {
	switch data := e.Data.(type) {
	case *slack.ConnectingEvent:
		if data.ConnectionCount > 0 {
			l.end(l.whyClosed())
		}
	case *slack.ConnectionErrorEvent:
		l.end(classify(methodOpen, appTokenName, false, data.ErrorObj))
	case *slack.IncomingEventError:
		l.incomingError(data.ErrorObj)
	case *socketmode.ErrorBadMessage:
		envelope := readEnvelope(data.Message)
		envelope.Broken = true
		l.take(envelope)
	case *socketmode.ErrorWriteFailed:
		l.s.o.Log.Warn("an ack was not sent; Slack will send the event again", "error", data.Cause)
	default:
		l.request(ctx, e)
	}
}

func (l *link) request(ctx context.Context, e socketmode.Event) {
	switch {
	case e.Request == nil:
	case e.Type == socketmode.EventTypeHello:
		l.mu.Lock()
		l.hello = true
		l.mu.Unlock()
		l.s.connected(ctx, e.Request.NumConnections, e.Request.ConnectionInfo.AppID)
	default:
		l.take(Envelope{Type: e.Request.Type, ID: e.Request.EnvelopeID, Payload: e.Request.Payload})
	}
}

// whyClosed is what can be said of a connection that Slack closed: the library keeps Slack's reason to itself.
func (l *link) whyClosed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hello {
		return errClosed
	}
	return errEarly
}

// take puts an envelope in line and acks it.
func (l *link) take(e Envelope) {
	if e.ID != "" && needsAnswer(e.Type, e.Payload) {
		e.Answer = func(payload any) { l.acks.push(ack{id: e.ID, payload: payload}) }
	}
	l.s.enqueue(func(ctx context.Context) { l.s.o.Inbound.Route(ctx, e) })
	if e.ID != "" && e.Answer == nil {
		l.acks.push(ack{id: e.ID})
	}
}

// incomingError has threads read again after a frame that was no JSON. Errors of the connection itself end it anyway.
func (l *link) incomingError(err error) {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		l.s.o.Log.Warn("a frame from Slack was not JSON; reading all threads again", "error", err)
		l.s.enqueue(func(context.Context) { l.s.o.CatchUps.CatchUpAll() })
	}
}

// sendAcks sends acks in order. A connection that takes none costs Slack's redelivery, never a standstill.
func (l *link) sendAcks(ctx context.Context) {
	for {
		acks, ok := l.acks.take(ctx)
		if !ok {
			return
		}
		for _, a := range acks {
			l.sendAck(ctx, a)
		}
	}
}

func (l *link) sendAck(ctx context.Context, a ack) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	err := l.sm.AckCtx(ctx, a.id, a.payload)
	if err != nil && a.payload != nil && ctx.Err() == nil {
		l.s.o.Log.Error("an answer was too long for an ack", "error", err)
		err = l.sm.AckCtx(ctx, a.id, nil)
	}
	if err != nil {
		l.s.o.Log.Warn("an event was not acked; Slack will send it again", "error", err)
	}
}

// openOnce lets the library open one connection. It would open the next one at once when Slack closes the first, several
// times a second where Slack refuses; the second try waits here until this link is ended for it.
type openOnce struct {
	wire *wire
	used atomic.Bool
}

// Do sends the request, or waits for its context to end.
func (o *openOnce) Do(req *http.Request) (*http.Response, error) {
	if o.used.Swap(true) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return o.wire.Do(req)
}

// dial opens the TCP connection under a WebSocket, to see when something comes in and to be able to close it.
func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn)
	l.mu.Unlock()
	return &watchedConn{Conn: conn, seen: func() { l.s.lastFrame.Store(time.Now().UnixNano()) }}, nil
}

func (l *link) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close() // closed before, in most cases
	}
}

// watchedConn tells of everything that comes in.
type watchedConn struct {
	net.Conn
	seen func()
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.seen()
	}
	return n, err
}

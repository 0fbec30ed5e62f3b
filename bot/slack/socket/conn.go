package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
)

const (
	// maxFrame bounds one frame from Slack.
	maxFrame = 16 << 20
	// maxAck is where Slack drops an ack without a word (slack-go#1196).
	maxAck = 20 << 10
	// readBuffer takes many events of a burst at once.
	readBuffer = 64 << 10
	// writeBuffer holds the largest ack: Slack does not put fragments together.
	writeBuffer = 32 << 10
	// writeTimeout is how long a write may take before the connection is given up.
	writeTimeout = 10 * time.Second
)

// connection is one connection. Its run owns the goroutines: one reads, one sends acks, one watches.
type connection struct {
	s      *Socket
	acks   *queue[ack]
	cancel context.CancelCauseFunc

	mu             sync.Mutex // guards the fields that follow
	stepStarted    time.Time  // when the present step of opening it began
	conn           *websocket.Conn
	helloReceived  bool
	eventsReceived bool      // some have come
	lastPing       time.Time // when the last ping came
}

type ack struct {
	id      string
	payload any
}

func newConnection(s *Socket) *connection {
	return &connection{s: s, acks: newQueue[ack](maxJobs), stepStarted: time.Now()}
}

// run holds the connection until it ends, and returns why.
func (l *connection) run(parent context.Context) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	l.cancel = end
	var wg sync.WaitGroup
	wg.Go(func() { l.watch(ctx) })
	conn, err := l.open(ctx)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // a second close is harmless
		wg.Go(func() { l.sendAcks(ctx, conn) })
		err = l.read(ctx, conn)
		stop()
		_ = conn.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	end(err)
	wg.Wait()
	return err
}

// open asks Slack for a connection and makes it.
func (l *connection) open(ctx context.Context) (*websocket.Conn, error) {
	to, err := l.s.o.API.OpenConnection(ctx)
	if err != nil {
		return nil, err
	}
	l.s.tokenAccepted.Add(1)
	l.beginStep(nil)
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: l.s.o.StepTimeout, ReadBufferSize: readBuffer,
		WriteBufferSize: writeBuffer, NetDialContext: l.dial}
	conn, resp, err := dialer.DialContext(ctx, to, nil)
	if err != nil && resp != nil {
		err = fmt.Errorf("%w (%s)", err, resp.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("open the connection: %w", err)
	}
	conn.SetReadLimit(maxFrame)
	conn.SetPingHandler(func(data string) error {
		l.mu.Lock()
		l.lastPing = time.Now()
		l.mu.Unlock()
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
	})
	l.beginStep(conn)
	return conn, nil
}

// beginStep records that the next step of opening the connection has begun; conn is nil before there is one.
func (l *connection) beginStep(conn *websocket.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stepStarted, l.conn = time.Now(), conn
}

// read handles frames until the connection ends.
func (l *connection) read(ctx context.Context, conn *websocket.Conn) error {
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return fmt.Errorf("%w: %w", errClosed, err)
		}
		if err := l.handleFrame(ctx, data); err != nil {
			return err
		}
	}
}

func (l *connection) handleFrame(ctx context.Context, data []byte) error {
	o := lenientjson.Parse(data)
	switch e := (slack.Envelope{Type: o.Str("type"), ID: o.Str("envelope_id"), Payload: o["payload"], Retry: o.Num("retry_attempt")}); e.Type {
	case "hello":
		l.mu.Lock()
		l.helloReceived, l.lastPing = true, time.Now()
		l.mu.Unlock()
		l.s.onConnected(ctx, o.Num("num_connections"), o.Obj("connection_info").Str("app_id"))
	case "disconnect":
		return closedError{reason: o.Str("reason")}
	default:
		l.catchUpBeforeHello()
		l.enqueueAndAck(e)
	}
	return nil
}

// catchUpBeforeHello has the threads read when events come before the hello: what was missed earlier comes first.
func (l *connection) catchUpBeforeHello() {
	l.mu.Lock()
	first := !l.helloReceived && !l.eventsReceived
	l.eventsReceived = true
	l.mu.Unlock()
	if first {
		l.s.enqueue(func(context.Context) { l.s.o.CatchUps.CatchUpAll() })
	}
}

// watch ends the connection when it does not open or falls silent, and pings it before that: a network that lost the connection
// does not say so.
func (l *connection) watch(ctx context.Context) {
	tick := time.NewTicker(max(time.Millisecond, min(time.Second, l.s.o.SilenceTimeout/8, l.s.o.StepTimeout/8, l.s.o.PingTimeout/8)))
	defer tick.Stop()
	var pinged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.checkHealth(); err != nil {
			l.cancel(err)
		}
		if quiet := l.s.o.SilenceTimeout / 3; l.idleFor() > quiet && time.Since(pinged) > quiet {
			pinged = time.Now()
			l.ping()
		}
	}
}

// idleFor is how long nothing was received.
func (l *connection) idleFor() time.Duration { return time.Since(time.Unix(0, l.s.lastFrame.Load())) }

// ping pings the other end. A failed write shows in the silence that follows.
func (l *connection) ping() {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	}
}

// checkHealth returns an error when the connection should be closed.
func (l *connection) checkHealth() error {
	l.mu.Lock()
	hello, step, pings := l.helloReceived, l.stepStarted, l.lastPing
	l.mu.Unlock()
	switch {
	case !hello && time.Since(step) > l.s.o.StepTimeout:
		return errNoResponse
	case hello && time.Since(pings) > l.s.o.PingTimeout:
		return silentError{what: "no ping", after: time.Since(pings)}
	case hello && l.idleFor() > l.s.o.SilenceTimeout:
		return silentError{what: "nothing", after: l.s.o.SilenceTimeout}
	}
	return nil
}

// enqueueAndAck queues an envelope and acks it, unless its ack is left to its handler.
func (l *connection) enqueueAndAck(e slack.Envelope) {
	if e.ID != "" && needsAckPayload(e.Type, e.Payload) {
		e.AckWith = func(payload any) { l.acks.push(ack{id: e.ID, payload: payload}) }
	}
	l.s.enqueue(func(ctx context.Context) { l.s.o.Router.Route(ctx, e) })
	if e.ID != "" && e.AckWith == nil {
		l.acks.push(ack{id: e.ID})
	}
}

// sendAcks sends acks in order.
func (l *connection) sendAcks(ctx context.Context, conn *websocket.Conn) {
	for {
		acks, ok := l.acks.takeAll(ctx)
		if !ok {
			return
		}
		for _, a := range acks {
			if err := l.sendAck(conn, a); err != nil {
				l.cancel(fmt.Errorf("send an ack: %w", err))
				return
			}
		}
	}
}

func (l *connection) sendAck(conn *websocket.Conn, a ack) error {
	frame := map[string]any{"envelope_id": a.id}
	if a.payload != nil {
		frame["payload"] = a.payload
	}
	raw, err := json.Marshal(frame)
	if a.payload != nil {
		raw = l.s.o.API.ScrubAck(raw)
	}
	if err != nil || len(raw) >= maxAck {
		l.s.o.Log.Error("an answer was left out of its ack: it is too long, or is not JSON", "bytes", len(raw), "error", err)
		return l.sendAck(conn, ack{id: a.id})
	}
	return errors.Join(conn.SetWriteDeadline(time.Now().Add(writeTimeout)), conn.WriteMessage(websocket.TextMessage, raw))
}

// dial opens the TCP connection under a WebSocket and records when something is received.
func (l *connection) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := l.s.o.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn, onRead: func() { l.s.lastFrame.Store(time.Now().UnixNano()) }}, nil
}

// watchedConn calls onRead whenever something is received.
type watchedConn struct {
	net.Conn
	onRead func()
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.onRead()
	}
	return n, err
}

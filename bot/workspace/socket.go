package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	maxConnections = 10
	writeTimeout   = 10 * time.Second
	warnBefore     = 10 * time.Second // a connection's end is announced that long before
	closeAfterWarn = 5 * time.Second  // after refresh_requested Slack closes the socket itself
)

// conn is one socket. serve owns it: it runs the reader, and waits for writer and pinger.
type conn struct {
	w      *Workspace
	id     int
	ws     *websocket.Conn
	wire   *wire
	ctx    context.Context
	cancel context.CancelFunc

	greeted  bool // guarded by the workspace's mu, like draining
	draining bool // was told to disconnect: gets no more payloads

	mu    sync.Mutex // guards the fields that follow
	queue [][]byte
	ready chan struct{}
}

// serveLink is the WebSocket URL of apps.connections.open.
func (w *Workspace) serveLink(rw http.ResponseWriter, r *http.Request) {
	seq := w.logRequest("link", map[string]string{})
	if !w.redeem(r.URL.Query().Get("ticket")) {
		http.Error(rw, "invalid ticket", http.StatusForbidden)
		w.settleRequest(seq, http.StatusForbidden, false, "invalid_ticket", "")
		return
	}
	fault := w.fault.takeConnect()
	if fault.rejected(rw) {
		w.settleRequest(seq, fault.reject, false, "", "rejected upgrade")
		return
	}
	w.settleRequest(seq, http.StatusSwitchingProtocols, true, "", "")
	c, err := w.accept(rw, r)
	if err != nil {
		w.log.Info("a socket was not accepted", "err", err)
		return
	}
	c.serve(fault)
}

// redeem uses a ticket up. Each is good for one socket and for half a minute.
func (w *Workspace) redeem(ticket string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.tickets[ticket]
	delete(w.tickets, ticket)
	return ok && !w.clock.Now().After(until)
}

func (w *Workspace) accept(rw http.ResponseWriter, r *http.Request) (*conn, error) {
	c := &conn{w: w, ready: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(w.ctx)
	tap := &wireTap{ResponseWriter: rw}
	ws, err := websocket.Accept(tap, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // clients send Slack's own Origin
		OnPingReceived: func(_ context.Context, data []byte) bool {
			w.note(Frame{Conn: c.id, Dir: "in", Kind: "ping", Data: data})
			return true
		},
	})
	if err != nil {
		c.cancel()
		return nil, err
	}
	ws.SetReadLimit(1 << 20)
	c.ws, c.wire = ws, tap.wire
	return c, nil
}

// note keeps a frame.
func (w *Workspace) note(f Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record(f)
}

func (c *conn) serve(fault ConnectFault) {
	defer c.cancel()
	c.open(fault)
	var wg sync.WaitGroup
	wg.Go(c.write)
	wg.Go(c.ping)
	c.read()
	c.leave()
	c.cancel()
	_ = c.ws.CloseNow()
	wg.Wait()
	c.linger()
	_ = c.wire.sever()
}

// open registers the socket and greets it.
func (c *conn) open(fault ConnectFault) {
	w := c.w
	if w.fault.neverCloses() {
		c.wire.neverClose()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connSeq++
	c.id = w.connSeq
	w.conns = append(w.conns, c)
	w.record(Frame{Conn: c.id, Dir: "in", Kind: "open"})
	switch {
	case fault.first != "":
		c.sayGoodbye(fault.first)
	case w.live() >= maxConnections:
		c.sayGoodbye("too_many_websockets")
	default:
		c.greeted = true
		if !fault.noHello {
			c.send(w.encode(w.hello()))
		}
		c.plan()
	}
	w.notify()
}

func (w *Workspace) hello() reply {
	return reply{"type": "hello", "num_connections": w.live(),
		"debug_info": reply{"host": "applink-local", "build_number": 1,
			"approximate_connection_time": int(w.opts.ConnectionLife / time.Second)},
		"connection_info": reply{"app_id": w.appID}}
}

// live counts sockets that take payloads. The caller holds mu.
func (w *Workspace) live() int {
	n := 0
	for _, c := range w.conns {
		if c.greeted && !c.draining {
			n++
		}
	}
	return n
}

// pick chooses the socket for one payload, as unpredictably as Slack. The caller holds mu.
func (w *Workspace) pick() *conn {
	var open []*conn
	for _, c := range w.conns {
		if c.greeted && !c.draining {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[w.rng.IntN(len(open))]
}

// plan refreshes the connection at the end of its life: a warning, then the request.
func (c *conn) plan() {
	w := c.w
	during := func(fn func()) func() {
		return func() {
			if c.ctx.Err() == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				fn()
			}
		}
	}
	warn := w.sched.after(w.opts.ConnectionLife-warnBefore, during(func() { c.send(w.goodbye("warning")) }))
	end := w.sched.after(w.opts.ConnectionLife, during(func() { c.sayGoodbye("refresh_requested") }))
	context.AfterFunc(c.ctx, func() { warn(); end() })
}

func (w *Workspace) goodbye(reason string) []byte {
	return w.encode(reply{"type": "disconnect", "reason": reason, "debug_info": reply{"host": "applink-local"}})
}

// sayGoodbye sends disconnect; the socket gets nothing more and is closed a little later. The caller holds mu.
func (c *conn) sayGoodbye(reason string) {
	c.send(c.w.goodbye(reason))
	c.draining = true
	cancel := c.w.sched.after(closeAfterWarn, c.cancel)
	context.AfterFunc(c.ctx, cancel)
	c.w.notify()
}

// Disconnect tells every socket to go: reason is warning, refresh_requested, link_disabled or too_many_websockets.
// After a warning the socket keeps working for a while, as with Slack.
func (w *Workspace) Disconnect(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		switch {
		case c.draining:
		case reason == "warning":
			c.send(w.goodbye(reason))
		default:
			c.sayGoodbye(reason)
		}
	}
}

// send queues a text frame. It never blocks.
func (c *conn) send(data []byte) {
	c.mu.Lock()
	c.queue = append(c.queue, data)
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *conn) write() {
	for {
		select {
		case <-c.ready:
		case <-c.ctx.Done():
			return
		}
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, data := range batch {
			if c.writeFrame(data) != nil {
				return
			}
		}
	}
}

func (c *conn) writeFrame(data []byte) error {
	ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
	defer cancel()
	c.w.note(Frame{Conn: c.id, Dir: "out", Kind: "text", Data: data})
	err := c.ws.Write(ctx, websocket.MessageText, data)
	if c.w.fault.frameSent() {
		return errors.Join(err, c.wire.sever())
	}
	return err
}

// ping keeps the client sure that somebody is there.
func (c *conn) ping() {
	every := c.w.fault.pings(c.w.opts.PingEvery)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		c.w.note(Frame{Conn: c.id, Dir: "out", Kind: "ping"})
		ctx, cancel := context.WithTimeout(c.ctx, 6*every)
		err := c.ws.Ping(ctx)
		cancel()
		if err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *conn) read() {
	for {
		kind, data, err := c.ws.Read(c.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText {
			c.w.receive(c, data)
		}
	}
}

// receive takes one frame from the app, which can only be an ack.
func (w *Workspace) receive(c *conn, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ack struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	note := ""
	switch err := json.Unmarshal(data, &ack); {
	case len(data) >= maxAck:
		note = "dropped: an ack of 20 KB or more"
	case err != nil || ack.EnvelopeID == "":
		note = "not an ack"
	case w.fault.swallowsAck():
		note = "ack ignored by a fault"
	default:
		note = w.acked(ack.EnvelopeID, ack.Payload)
	}
	w.record(Frame{Conn: c.id, Dir: "in", Kind: "text", Data: data, Note: note})
}

// leave takes the socket out of the choice.
func (c *conn) leave() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range w.conns {
		if o == c {
			w.conns = append(w.conns[:i:i], w.conns[i+1:]...)
			break
		}
	}
	w.record(Frame{Conn: c.id, Dir: "in", Kind: "close"})
}

// linger keeps TCP open after the end when a fault says that closing never finishes, until the peer has had enough.
func (c *conn) linger() {
	c.wire.mu.Lock()
	keep := c.wire.keepOpen
	c.wire.mu.Unlock()
	if !keep {
		return
	}
	stop := context.AfterFunc(c.w.ctx, func() { _ = c.wire.sever() })
	defer stop()
	_, _ = io.Copy(io.Discard, c.wire.Conn) // ends with the connection
}

// drop ends the socket now, whatever the faults say.
func (c *conn) drop() {
	c.cancel()
	_ = c.wire.sever()
}

func (f *Faults) neverCloses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noClosing
}

func (f *Faults) pings(usual time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pingEvery > 0 {
		return f.pingEvery
	}
	return usual
}

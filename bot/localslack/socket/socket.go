package socket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/store"
)

const (
	// MaxConnections is how many sockets an app can have.
	MaxConnections = 10
	writeTimeout   = 10 * time.Second
	WarnBefore     = 10 * time.Second // a connection's end is announced that long before
	CloseAfterWarn = 5 * time.Second  // after refresh_requested Slack closes the socket itself
)

// Conn is one socket. serve owns it: it runs the reader, and waits for writer and pinger.
type Conn struct {
	store    *store.Store
	script   *faults.Script
	received func(*Conn, []byte) // takes a text frame from the app

	id     int
	ws     *websocket.Conn
	tcp    *faultyConn
	ctx    context.Context
	cancel context.CancelFunc

	active   bool // guarded by the store's Mu, like draining
	draining bool // was told to disconnect: gets no more payloads

	mu     sync.Mutex // guards the fields that follow
	queue  [][]byte
	queued chan struct{}
}

// ServeWebSocket is the WebSocket URL of apps.connections.open.
func (w *Hub) ServeWebSocket(rw http.ResponseWriter, r *http.Request) {
	seq := w.LogRequest("link", map[string]string{})
	if !w.redeemTicket(r.URL.Query().Get("ticket")) {
		http.Error(rw, "invalid ticket", http.StatusForbidden)
		w.FinishRequest(seq, http.StatusForbidden, false, "invalid_ticket", "")
		return
	}
	fault := w.Script.TakeConnect()
	if fault.RejectUpgrade(rw) {
		w.FinishRequest(seq, fault.RejectStatus, false, "", "rejected upgrade")
		return
	}
	w.FinishRequest(seq, http.StatusSwitchingProtocols, true, "", "")
	c, err := w.acceptConn(rw, r)
	if err != nil {
		w.Log.Info("a socket was not accepted", "err", err)
		return
	}
	w.serve(c, fault)
}

// redeemTicket uses a ticket up. Each is good for one socket and for half a minute.
func (w *Hub) redeemTicket(ticket string) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	until, ok := w.Tickets[ticket]
	delete(w.Tickets, ticket)
	return ok && !w.Clock.Now().After(until)
}

func (w *Hub) acceptConn(rw http.ResponseWriter, r *http.Request) (*Conn, error) {
	c := &Conn{store: w.Store, script: w.Script, received: w.handleFrame, queued: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(w.Ctx)
	tap := &hijacker{ResponseWriter: rw}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // clients send Slack's own Origin
	ws, err := upgrader.Upgrade(tap, r, nil)
	if err != nil {
		c.cancel()
		return nil, err
	}
	ws.SetReadLimit(1 << 20)
	ws.SetPingHandler(func(data string) error {
		w.RecordFrame(store.Frame{Conn: c.id, Dir: "in", Kind: "ping", Data: []byte(data)})
		_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout)) // the reader sees the end
		return nil
	})
	c.ws, c.tcp = ws, tap.conn
	context.AfterFunc(c.ctx, func() { _ = ws.Close() })
	return c, nil
}

// serve runs a socket from its greeting to its end.
func (w *Hub) serve(c *Conn, fault faults.ConnectFault) {
	defer c.cancel()
	w.register(c, fault)
	var wg sync.WaitGroup
	wg.Go(c.writeLoop)
	wg.Go(c.pingLoop)
	c.readLoop()
	w.unregister(c)
	c.cancel()
	_ = c.ws.Close()
	wg.Wait()
	c.linger()
	_ = c.tcp.closeTCP()
}

// register registers the socket and greets it.
func (w *Hub) register(c *Conn, fault faults.ConnectFault) {
	if w.Script.ClosingNeverFinishes() {
		c.tcp.disableClose()
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.connSeq++
	c.id = w.connSeq
	w.Conns = append(w.Conns, c)
	w.RecordFrameLocked(store.Frame{Conn: c.id, Dir: "in", Kind: "open"})
	switch {
	case fault.DisconnectReason != "":
		w.disconnect(c, fault.DisconnectReason)
	case w.countActive() >= MaxConnections:
		w.disconnect(c, "too_many_websockets")
	default:
		c.active = true
		if !fault.NoHello {
			c.send(w.EncodeJSON(w.helloFrame()))
		}
		w.scheduleRefresh(c)
	}
	w.Notify()
}

func (w *Hub) helloFrame() store.Object {
	return store.Object{"type": "hello", "num_connections": w.countActive(),
		"debug_info": store.Object{"host": "applink-local", "build_number": 1,
			"approximate_connection_time": int(w.Opts.ConnectionLifetime / time.Second)},
		"connection_info": store.Object{"app_id": w.AppID()}}
}

// countActive counts sockets that take payloads. The caller holds Mu.
func (w *Hub) countActive() int {
	n := 0
	for _, c := range w.Conns {
		if c.active && !c.draining {
			n++
		}
	}
	return n
}

// pickConn chooses the socket for one payload, as unpredictably as Slack. The caller holds Mu.
func (w *Hub) pickConn() *Conn {
	var open []*Conn
	for _, c := range w.Conns {
		if c.active && !c.draining {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[w.rng.IntN(len(open))]
}

// scheduleRefresh refreshes the connection at the end of its life: a warning, then the request.
func (w *Hub) scheduleRefresh(c *Conn) {
	during := func(fn func()) func() {
		return func() {
			if c.ctx.Err() == nil {
				w.Mu.Lock()
				defer w.Mu.Unlock()
				fn()
			}
		}
	}
	warn := w.Sched.After(w.Opts.ConnectionLifetime-WarnBefore, during(func() { c.send(w.disconnectFrame("warning")) }))
	end := w.Sched.After(w.Opts.ConnectionLifetime, during(func() { w.disconnect(c, "refresh_requested") }))
	context.AfterFunc(c.ctx, func() { warn(); end() })
}

func (w *Hub) disconnectFrame(reason string) []byte {
	return w.EncodeJSON(store.Object{"type": "disconnect", "reason": reason, "debug_info": store.Object{"host": "applink-local"}})
}

// disconnect sends disconnect; the socket gets nothing more and is closed a little later. The caller holds Mu.
func (w *Hub) disconnect(c *Conn, reason string) {
	c.send(w.disconnectFrame(reason))
	c.draining = true
	cancel := w.Sched.After(CloseAfterWarn, c.cancel)
	context.AfterFunc(c.ctx, cancel)
	w.Notify()
}

// Disconnect tells every socket to go: reason is warning, refresh_requested, link_disabled or too_many_websockets.
// After a warning the socket keeps working for a while, as with Slack.
func (w *Hub) Disconnect(reason string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, c := range w.Conns {
		switch {
		case c.draining:
		case reason == "warning":
			c.send(w.disconnectFrame(reason))
		default:
			w.disconnect(c, reason)
		}
	}
}

// send queues a text frame. It never blocks.
func (c *Conn) send(data []byte) {
	c.mu.Lock()
	c.queue = append(c.queue, data)
	c.mu.Unlock()
	select {
	case c.queued <- struct{}{}:
	default:
	}
}

func (c *Conn) writeLoop() {
	for {
		select {
		case <-c.queued:
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

func (c *Conn) writeFrame(data []byte) error {
	c.store.RecordFrame(store.Frame{Conn: c.id, Dir: "out", Kind: "text", Data: data})
	err := errors.Join(c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)), c.ws.WriteMessage(websocket.TextMessage, data))
	if c.script.CountSentFrame() {
		return errors.Join(err, c.tcp.closeTCP())
	}
	return err
}

// pingLoop keeps the client sure that somebody is there.
func (c *Conn) pingLoop() {
	every := c.script.PingInterval(c.store.Opts.PingEvery)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		c.store.RecordFrame(store.Frame{Conn: c.id, Dir: "out", Kind: "ping"})
		if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *Conn) readLoop() {
	for {
		kind, data, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			c.received(c, data)
		}
	}
}

// handleFrame takes one frame from the app, which can only be an ack.
func (w *Hub) handleFrame(c *Conn, data []byte) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
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
	case w.Script.TakeIgnoredAck():
		note = "ack ignored by a fault"
	default:
		note = w.handleAck(ack.EnvelopeID, ack.Payload)
	}
	w.RecordFrameLocked(store.Frame{Conn: c.id, Dir: "in", Kind: "text", Data: data, Note: note})
}

// unregister takes the socket out of the choice.
func (w *Hub) unregister(c *Conn) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for i, o := range w.Conns {
		if o == c {
			w.Conns = append(w.Conns[:i:i], w.Conns[i+1:]...)
			break
		}
	}
	w.RecordFrameLocked(store.Frame{Conn: c.id, Dir: "in", Kind: "close"})
}

// linger keeps TCP open after the end when a fault says that closing never finishes, until the peer has had enough.
func (c *Conn) linger() {
	c.tcp.mu.Lock()
	keep := c.tcp.keepOpen
	c.tcp.mu.Unlock()
	if !keep {
		return
	}
	stop := context.AfterFunc(c.store.Ctx, func() { _ = c.tcp.closeTCP() })
	defer stop()
	_, _ = io.Copy(io.Discard, c.tcp.Conn) // ends with the connection
}

// Terminate ends the socket now, whatever the faults say.
func (c *Conn) Terminate() {
	c.cancel()
	_ = c.tcp.closeTCP()
}

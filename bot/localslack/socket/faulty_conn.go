package socket

import (
	"bufio"
	"net"
	"net/http"
	"sync"
)

// faultyConn is the TCP connection under a socket, with what faults do to it.
type faultyConn struct {
	net.Conn
	mu            sync.Mutex // guards the fields that follow
	discardReads  bool
	discardWrites bool
	keepOpen      bool
	closed        bool
}

func newFaultyConn(c net.Conn) *faultyConn { return &faultyConn{Conn: c} }

// Read of a deaf wire throws away what comes, until the peer closes.
func (c *faultyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if deaf, _ := c.discarding(); err != nil || !deaf {
			return n, err
		}
	}
}

func (c *faultyConn) discarding() (deaf, mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.discardReads, c.discardWrites
}

// Write swallows everything when the wire is mute, and close frames when it never closes.
func (c *faultyConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	swallow := c.discardWrites || c.keepOpen && len(b) > 0 && b[0] == 0x88
	c.mu.Unlock()
	if swallow {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close is what the WebSocket library calls; a wire that never closes ignores it.
func (c *faultyConn) Close() error {
	c.mu.Lock()
	keep := c.keepOpen
	c.mu.Unlock()
	if keep {
		return nil
	}
	return c.closeTCP()
}

func (c *faultyConn) stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discardReads, c.discardWrites, c.keepOpen = true, true, true
}

func (c *faultyConn) disableClose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepOpen = true
}

// cutMidFrame sends the header of a text frame of 4,096 bytes with a few of them, and closes.
func (c *faultyConn) cutMidFrame() {
	c.mu.Lock()
	c.discardWrites = true
	c.mu.Unlock()
	_, _ = c.Conn.Write(append([]byte{0x81, 126, 0x10, 0x00}, `{"envelope_id":"cut","type":"events`...))
	_ = c.closeTCP()
}

// closeTCP closes TCP whatever the faults say.
func (c *faultyConn) closeTCP() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// hijacker hands the WebSocket library a wire instead of the bare connection.
type hijacker struct {
	http.ResponseWriter
	conn *faultyConn
}

// Hijack implements http.Hijacker.
func (t *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.conn = newFaultyConn(c)
	return t.conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(t.conn)), nil
}

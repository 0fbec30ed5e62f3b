package workspace

import (
	"bufio"
	"net"
	"net/http"
	"sync"
)

// wire is the TCP connection under a socket, with what faults do to it.
type wire struct {
	net.Conn
	mu       sync.Mutex // guards the fields that follow
	deaf     bool
	mute     bool
	keepOpen bool
	closed   bool
}

func newWire(c net.Conn) *wire { return &wire{Conn: c} }

// Read of a deaf wire throws away what comes, until the peer closes.
func (c *wire) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if deaf, _ := c.state(); err != nil || !deaf {
			return n, err
		}
	}
}

func (c *wire) state() (deaf, mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaf, c.mute
}

// Write swallows everything when the wire is mute, and close frames when it never closes.
func (c *wire) Write(b []byte) (int, error) {
	c.mu.Lock()
	swallow := c.mute || c.keepOpen && len(b) > 0 && b[0] == 0x88
	c.mu.Unlock()
	if swallow {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close is what the WebSocket library calls; a wire that never closes ignores it.
func (c *wire) Close() error {
	c.mu.Lock()
	keep := c.keepOpen
	c.mu.Unlock()
	if keep {
		return nil
	}
	return c.sever()
}

func (c *wire) stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf, c.mute, c.keepOpen = true, true, true
}

func (c *wire) neverClose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepOpen = true
}

// cut sends the header of a text frame of 4,096 bytes with a few of them, and closes.
func (c *wire) cut() {
	c.mu.Lock()
	c.mute = true
	c.mu.Unlock()
	_, _ = c.Conn.Write(append([]byte{0x81, 126, 0x10, 0x00}, `{"envelope_id":"cut","type":"events`...))
	_ = c.sever()
}

// sever closes TCP whatever the faults say.
func (c *wire) sever() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// wireTap hands the WebSocket library a wire instead of the bare connection.
type wireTap struct {
	http.ResponseWriter
	wire *wire
}

// Hijack implements http.Hijacker.
func (t *wireTap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.wire = newWire(c)
	return t.wire, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(t.wire)), nil
}

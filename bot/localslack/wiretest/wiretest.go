// Package wiretest speaks to a local Slack workspace without a client library, for tests of what goes over the wire.
package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// maxFrame is the size in bytes of the largest frame that is read.
const maxFrame = 1 << 20

// Client calls the Web API and dials sockets. What fails ends the test.
type Client struct {
	t                  *testing.T
	ctx                context.Context
	api                string
	botToken, appToken string
}

// New is a client of the Web API at an address that ends in a slash.
func New(ctx context.Context, t *testing.T, api, botToken, appToken string) *Client {
	return &Client{t: t, ctx: ctx, api: api, botToken: botToken, appToken: appToken}
}

// Call calls a method as the bot.
func (c *Client) Call(method string, args url.Values) (map[string]any, *http.Response) {
	c.t.Helper()
	return c.CallAs(c.botToken, method, args)
}

// CallAs calls a method with a token; with none when it is empty.
func (c *Client) CallAs(token, method string, args url.Values) (map[string]any, *http.Response) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.api+method, strings.NewReader(args.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return c.Do(req)
}

// Do sends a request and returns the JSON of the answer.
func (c *Client) Do(req *http.Request) (map[string]any, *http.Response) {
	c.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		c.t.Fatalf("%s: %v", req.URL, err)
	}
	return out, res
}

// CallFails checks the error that a call gets.
func (c *Client) CallFails(want, method string, args url.Values) {
	c.t.Helper()
	if out, _ := c.Call(method, args); out["error"] != want {
		c.t.Errorf("%s: got %v, want %s", method, out["error"], want)
	}
}

// CallOK checks that a call succeeds, and returns the answer.
func (c *Client) CallOK(method string, args url.Values) map[string]any {
	c.t.Helper()
	out, _ := c.Call(method, args)
	if out["ok"] != true {
		c.t.Errorf("%s: got %v", method, out)
	}
	return out
}

// Form is url.Values from pairs.
func Form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// Socket is a Socket Mode client that does only what it is told.
type Socket struct {
	Conn *websocket.Conn
	t    *testing.T
}

// Dial opens a socket.
func (c *Client) Dial() *Socket {
	c.t.Helper()
	s, err := c.TryDial()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// TryDial opens a socket, if the workspace lets it.
func (c *Client) TryDial() (*Socket, error) {
	c.t.Helper()
	out, _ := c.CallAs(c.appToken, "apps.connections.open", nil)
	address, _ := out["url"].(string)
	return c.DialURL(address)
}

// DialURL opens the socket of an address. It is closed when the test ends.
func (c *Client) DialURL(address string) (*Socket, error) {
	ws, res, err := websocket.DefaultDialer.DialContext(c.ctx, address, nil)
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("%w: %s", err, res.Status)
		}
		return nil, err
	}
	ws.SetReadLimit(maxFrame)
	stop := context.AfterFunc(c.ctx, func() { _ = ws.Close() })
	c.t.Cleanup(func() { stop(); _ = ws.Close() })
	return &Socket{Conn: ws, t: c.t}, nil
}

// DialReady opens a socket and reads the hello.
func (c *Client) DialReady() *Socket {
	c.t.Helper()
	s := c.Dial()
	if h := s.Next(); h["type"] != "hello" {
		c.t.Fatalf("got %v instead of hello", h)
	}
	return s
}

// Read reads a frame.
func (s *Socket) Read() ([]byte, error) {
	_, data, err := s.Conn.ReadMessage()
	return data, err
}

// Write sends a text frame.
func (s *Socket) Write(data []byte) error { return s.Conn.WriteMessage(websocket.TextMessage, data) }

// Next reads a frame of JSON.
func (s *Socket) Next() map[string]any {
	s.t.Helper()
	data, err := s.Read()
	if err != nil {
		s.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		s.t.Fatalf("%s: %v", data, err)
	}
	return out
}

// Event reads an envelope, acks it and returns its payload and inner event.
func (s *Socket) Event() (payload, inner map[string]any) {
	s.t.Helper()
	env := s.Next()
	s.Ack(env)
	payload, _ = env["payload"].(map[string]any)
	inner, _ = payload["event"].(map[string]any)
	return payload, inner
}

// Ack acks an envelope.
func (s *Socket) Ack(env map[string]any) { s.Send(map[string]any{"envelope_id": env["envelope_id"]}) }

// Send sends a frame of JSON.
func (s *Socket) Send(v any) {
	s.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Write(data); err != nil {
		s.t.Fatal(err)
	}
}

// WaitClosed reads until the socket is over.
func (s *Socket) WaitClosed() {
	for {
		if _, err := s.Read(); err != nil {
			return
		}
	}
}

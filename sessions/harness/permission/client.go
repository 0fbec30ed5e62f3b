package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"the-loop/sessions"
)

// dialTimeout bounds an exchange with a waiting hook, which answers in a millisecond.
const dialTimeout = 5 * time.Second

// Client reaches the hooks that wait for a decision.
type Client struct {
	Dir string // absolute; the folder of the hooks' sockets
}

// WaitResolved waits until the permission request is resolved, and calls open once it knows that it is open. It holds a
// connection to the hook, whose end ends the wait.
func (c Client) WaitResolved(ctx context.Context, token string, open func()) error {
	hook, err := c.connect(ctx, token)
	if errors.Is(err, sessions.ErrPermissionEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer hook.close()
	open()
	_ = hook.decoder.Decode(&message{}) // nothing more comes: this waits for the end
	return ctx.Err()
}

// Decide hands the hook a decision. [sessions.ErrPermissionEnded] when it did not take it, [sessions.ErrInDoubt] when it may have.
func (c Client) Decide(ctx context.Context, d sessions.PermissionDecision) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	hook, err := c.connect(ctx, d.Token)
	if err != nil {
		return err
	}
	defer hook.close()
	var reply message
	if err := errors.Join(hook.encoder.Encode(message{Verdict: d.Verdict, Reason: d.Reason, Answers: d.Answers, Edits: d.AcceptEdits}), hook.decoder.Decode(&reply)); err != nil {
		return fmt.Errorf("answer the agent: %w: %w", sessions.ErrInDoubt, err)
	}
	if !reply.Accepted {
		return sessions.ErrPermissionEnded
	}
	return nil
}

// hookConn is a connection that a hook accepted.
type hookConn struct {
	decoder *json.Decoder
	encoder *json.Encoder
	close   func()
}

// connect connects to the hook and shows it the token. The end of ctx ends what is under way.
func (c Client) connect(ctx context.Context, token string) (hookConn, error) {
	conn, err := dial(ctx, SocketPath(c.Dir, token))
	if err != nil {
		return hookConn{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	hook := hookConn{decoder: json.NewDecoder(conn), encoder: json.NewEncoder(conn), close: func() { stop(); _ = conn.Close() }}
	var reply message
	if err := errors.Join(hook.encoder.Encode(message{Token: token}), hook.decoder.Decode(&reply)); err != nil || !reply.Open {
		hook.close()
		if ctx.Err() != nil {
			return hookConn{}, fmt.Errorf("reach the hook that waits: %w", ctx.Err())
		}
		return hookConn{}, sessions.ErrPermissionEnded // it ended just now
	}
	return hook, nil
}

// dial connects to a hook's socket. [sessions.ErrPermissionEnded] when no hook listens; the socket of a killed one is removed.
func dial(ctx context.Context, path string) (net.Conn, error) {
	name, dir, err := shortSocketPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sessions.ErrPermissionEnded
	}
	if err != nil {
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	defer func() { _ = dir.Close() }()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sessions.ErrPermissionEnded
	case errors.Is(err, syscall.ECONNREFUSED): // its token is known only since the hook listened
		_ = os.Remove(path)
		return nil, sessions.ErrPermissionEnded
	case err != nil:
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	return conn, nil
}

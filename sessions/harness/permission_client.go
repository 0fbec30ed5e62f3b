package harness

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

// hookDialTimeout bounds what is asked of a hook that waits; it answers in a millisecond.
const hookDialTimeout = 5 * time.Second

// WaitResolved holds a connection to the hook that waits for the ask's answer. The hook's end ends it.
func (r Reports) WaitResolved(ctx context.Context, _, token string, open func()) error {
	t, err := r.connectHook(ctx, token)
	if errors.Is(err, sessions.ErrPermissionEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.close()
	open()
	_ = t.decoder.Decode(&hookMessage{}) // nothing more comes: it waits for the end
	return ctx.Err()
}

// AnswerPermission hands the hook an answer and hears whether it was the first.
func (r Reports) AnswerPermission(ctx context.Context, _ string, a sessions.PermissionDecision) error {
	ctx, cancel := context.WithTimeout(ctx, hookDialTimeout)
	defer cancel()
	t, err := r.connectHook(ctx, a.Token)
	if err != nil {
		return err
	}
	defer t.close()
	var is hookMessage
	if err := errors.Join(t.encoder.Encode(hookMessage{Verdict: a.Verdict, Reason: a.Reason}), t.decoder.Decode(&is)); err != nil {
		return fmt.Errorf("answer the agent: %w: %w", sessions.ErrInDoubt, err)
	}
	if !is.Accepted {
		return sessions.ErrPermissionEnded
	}
	return nil
}

// hookConn is a connection to a hook that let it in.
type hookConn struct {
	decoder *json.Decoder
	encoder *json.Encoder
	close   func()
}

// enter connects to the hook and shows it the token. The end of ctx ends what is under way.
func (r Reports) connectHook(ctx context.Context, token string) (hookConn, error) {
	c, err := dialHookSocket(ctx, permissionSocket(r.PermissionDir, token))
	if err != nil {
		return hookConn{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	t := hookConn{decoder: json.NewDecoder(c), encoder: json.NewEncoder(c), close: func() { stop(); _ = c.Close() }}
	var is hookMessage
	if err := errors.Join(t.encoder.Encode(hookMessage{Token: token}), t.decoder.Decode(&is)); err != nil || !is.Open {
		t.close()
		if ctx.Err() != nil {
			return hookConn{}, fmt.Errorf("reach the hook that waits: %w", ctx.Err())
		}
		return hookConn{}, sessions.ErrPermissionEnded // it ended just now
	}
	return t, nil
}

// dialHookSocket connects to a hook. [sessions.ErrPermissionEnded] when there is none any more; what one that was killed left is removed.
func dialHookSocket(ctx context.Context, path string) (net.Conn, error) {
	name, dir, err := shortSocketPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sessions.ErrPermissionEnded
	}
	if err != nil {
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	defer func() { _ = dir.Close() }()
	dialer := net.Dialer{Timeout: hookDialTimeout}
	c, err := dialer.DialContext(ctx, "unix", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sessions.ErrPermissionEnded
	case errors.Is(err, syscall.ECONNREFUSED): // its token is known only since the hook listened
		_ = os.Remove(path)
		return nil, sessions.ErrPermissionEnded
	case err != nil:
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	return c, nil
}

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

// askTimeout bounds what is asked of a hook that waits; it answers in a millisecond.
const askTimeout = 5 * time.Second

// Attend holds a connection to the hook that waits for the ask's answer. The hook's end ends it.
func (r Reports) Attend(ctx context.Context, _, token string, open func()) error {
	t, err := r.enter(ctx, token)
	if errors.Is(err, sessions.ErrAskOver) {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.leave()
	open()
	_ = t.in.Decode(&askLine{}) // nothing more comes: it waits for the end
	return ctx.Err()
}

// Answer hands the hook an answer and hears whether it was the first.
func (r Reports) Answer(ctx context.Context, _ string, a sessions.Answer) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, err := r.enter(ctx, a.Token)
	if err != nil {
		return err
	}
	defer t.leave()
	var is askLine
	if err := errors.Join(t.out.Encode(askLine{Verdict: a.Verdict, Reason: a.Reason}), t.in.Decode(&is)); err != nil {
		return fmt.Errorf("answer the agent: %w: %w", sessions.ErrInDoubt, err)
	}
	if !is.Taken {
		return sessions.ErrAskOver
	}
	return nil
}

// askTalk is a connection to a hook that let it in.
type askTalk struct {
	in    *json.Decoder
	out   *json.Encoder
	leave func()
}

// enter connects to the hook and shows it the token. The end of ctx ends what is under way.
func (r Reports) enter(ctx context.Context, token string) (askTalk, error) {
	c, err := dialSocket(ctx, askSocket(r.Asks, token))
	if err != nil {
		return askTalk{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	t := askTalk{in: json.NewDecoder(c), out: json.NewEncoder(c), leave: func() { stop(); _ = c.Close() }}
	var is askLine
	if err := errors.Join(t.out.Encode(askLine{Token: token}), t.in.Decode(&is)); err != nil || !is.Open {
		t.leave()
		if ctx.Err() != nil {
			return askTalk{}, fmt.Errorf("reach the hook that waits: %w", ctx.Err())
		}
		return askTalk{}, sessions.ErrAskOver // it ended just now
	}
	return t, nil
}

// dialSocket connects to a hook. [sessions.ErrAskOver] when there is none any more; what one that was killed left is removed.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	name, dir, err := reachable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sessions.ErrAskOver
	}
	if err != nil {
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	defer func() { _ = dir.Close() }()
	dialer := net.Dialer{Timeout: askTimeout}
	c, err := dialer.DialContext(ctx, "unix", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sessions.ErrAskOver
	case errors.Is(err, syscall.ECONNREFUSED): // its token is known only since the hook listened
		_ = os.Remove(path)
		return nil, sessions.ErrAskOver
	case err != nil:
		return nil, fmt.Errorf("reach the hook that waits: %w", err)
	}
	return c, nil
}

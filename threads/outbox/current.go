package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/threads/chat"
)

// Chat posts messages, edits them and finds them again: parts of [chat.Poster] and [chat.History].
type Chat interface {
	Post(ctx context.Context, p chat.Post) (ts string, err error)
	Update(ctx context.Context, ts string, p chat.Post) error
	FindPost(ctx context.Context, channel, root, nonce string, since time.Time) (ts string, err error)
}

// State is what is known of a message that is posted once. Its owner stores it.
type State struct {
	TS          string    // of the message; empty: it is not known to be there
	Since       time.Time // it was not posted before, by the chat service's clock; zero: not known
	MaybePosted bool      // it may be there: look before posting
	Shown       string    // the [Fingerprint] of what it shows; empty: not known
}

// Current is one message that is posted once, and edited until it shows its Post. It is used by one goroutine at a time.
type Current struct {
	Chat  Chat
	Post  chat.Post // what the message should show; the nonce identifies it and must not change
	State State
	// Store stores the state before and after each step; an error ends the step. What is on disk when it returns is
	// what the next run continues from.
	Store func(ctx context.Context, s State) error
}

// Find looks for a message that may be there. Afterwards State.TS is set, or State.MaybePosted is false.
func (c *Current) Find(ctx context.Context) error {
	if c.State.TS != "" || !c.State.MaybePosted {
		return nil
	}
	ts, err := c.Chat.FindPost(ctx, c.Post.Channel, c.Post.Root, c.Post.Nonce, c.State.Since)
	if err != nil {
		return fmt.Errorf("look whether it was posted: %w", err)
	}
	if ts == "" {
		c.State.MaybePosted = false // posting stores it, or needs it no more
		return nil
	}
	c.State.TS, c.State.Shown = ts, ""
	return c.Store(ctx, c.State)
}

// Ensure posts the message, unless it is there. After an error it may be there where State.MaybePosted says so.
func (c *Current) Ensure(ctx context.Context) error {
	if err := c.Find(ctx); err != nil || c.State.TS != "" {
		return err
	}
	c.State.MaybePosted = true
	if err := c.Store(ctx, c.State); err != nil {
		c.State.MaybePosted = false
		return err
	}
	ts, err := c.Chat.Post(ctx, c.Post)
	switch {
	case err == nil:
		c.State.TS, c.State.Shown = ts, Fingerprint(c.Post)
		return c.Store(ctx, c.State)
	case !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		c.State.MaybePosted = false
		return errors.Join(err, c.Store(ctx, c.State))
	}
	return err
}

// Show edits the message, which is there, unless it shows the post already. [chat.ErrReplyGone] when somebody deleted it.
func (c *Current) Show(ctx context.Context) error {
	shows := Fingerprint(c.Post)
	if c.State.Shown == shows {
		return nil
	}
	if c.State.Shown != "" { // after a crash in between it may show the one or the other
		c.State.Shown = ""
		if err := c.Store(ctx, c.State); err != nil {
			return err
		}
	}
	if err := c.Chat.Update(ctx, c.State.TS, c.Post); err != nil {
		return err
	}
	c.State.Shown = shows
	return c.Store(ctx, c.State)
}

// Fingerprint is a short sum of what a message shows.
func Fingerprint(p chat.Post) string {
	p.Channel, p.Root, p.Nonce, p.Session = "", "", "", ""
	data, _ := json.Marshal(p) // a struct of strings always encodes
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// PlainFallback is a [Chat] that posts and edits a message as a plain text where the service refuses it as it should be.
type PlainFallback struct {
	Chat
	Log *slog.Logger
}

// Post implements [Chat].
func (f PlainFallback) Post(ctx context.Context, p chat.Post) (ts string, err error) {
	err = f.try(p, func(p chat.Post) error {
		ts, err = f.Chat.Post(ctx, p)
		return err
	})
	return ts, err
}

// Update implements [Chat].
func (f PlainFallback) Update(ctx context.Context, ts string, p chat.Post) error {
	return f.try(p, func(p chat.Post) error { return f.Chat.Update(ctx, ts, p) })
}

func (f PlainFallback) try(p chat.Post, call func(chat.Post) error) error {
	err := call(p)
	if !errors.Is(err, chat.ErrRefused) || p.Plain {
		return err
	}
	f.Log.Warn("a message is refused and posted as a plain text", "channel", p.Channel, "session", p.Session, "err", err)
	p.Plain = true
	return call(p)
}

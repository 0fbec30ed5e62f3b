package sessions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keyBytes are the keys that may be pressed by name, as a terminal sends them.
var keyBytes = map[string]string{
	"escape": "\x1b", "enter": "\r", "tab": "\t", "backtab": "\x1b[Z", "space": " ", "backspace": "\x7f",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "c-c": "\x03", "c-u": "\x15",
}

// KeysRequest asks for keys to be pressed in a session, past everything that waits. With Interrupt it is the harness's
// own key that stops a running turn.
type KeysRequest struct {
	Ref       Ref
	ID        string
	Keys      []string // names, e.g. "Escape"; see [KeyNames]
	Interrupt bool
}

// KeyNames are the names of the keys that [Core.Keys] knows.
func KeyNames() []string { return slices.Sorted(maps.Keys(keyBytes)) }

// Keys presses keys. Enter and Space are refused while the agent asks a question: they would answer it.
func (c *Core) Keys(ctx context.Context, q KeysRequest) error {
	rec, err := c.running(ctx, q.Ref, q.ID)
	if err != nil {
		return err
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	bytes, err := keySequence(q, h.Traits())
	if err != nil {
		return err
	}
	release, err := c.lockID(ctx, rec.ID, "keys")
	if err != nil {
		return err
	}
	defer release()
	if strings.ContainsAny(bytes, "\r ") {
		if err := c.mayAnswer(ctx, h, rec); err != nil {
			return err
		}
	}
	if err := c.terminal(rec).Press(ctx, rec.Target(), bytes); err != nil {
		return c.typingFailed(rec, err)
	}
	return nil
}

func keySequence(q KeysRequest, t Traits) (string, error) {
	if q.Interrupt {
		if t.Interrupt != "" {
			return t.Interrupt, nil
		}
		return keyBytes["escape"], nil
	}
	var b strings.Builder
	for _, k := range q.Keys {
		bytes, ok := keyBytes[strings.ToLower(k)]
		if !ok {
			return "", &Refusal{Cause: ErrRefused, What: fmt.Sprintf("there is no key %q", k),
				Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
		}
		b.WriteString(bytes)
	}
	if b.Len() == 0 {
		return "", &Refusal{Cause: ErrRefused, What: "no key is named", Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
	}
	return b.String(), nil
}

func (c *Core) mayAnswer(ctx context.Context, h Harness, rec Record) error {
	view, err := c.view(ctx, h, rec)
	if err != nil {
		return err
	}
	if view.State == ViewDialog || view.State == ViewMenu {
		return &Refusal{Cause: ErrRefused, What: "the agent asks a question, and these keys would answer it",
			Remedy: "answer it in the terminal"}
	}
	return nil
}

package sessions

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The names of keys that a harness's facts are about, see [Capabilities].
const (
	KeyEscape  = "escape"
	KeyUp      = "up"
	KeyDown    = "down"
	KeyTab     = "tab"
	KeyBackTab = "backtab"
)

// keyBytes are the keys that may be pressed by name, as a terminal sends them.
var keyBytes = map[string]string{
	KeyEscape: "\x1b", "enter": "\r", KeyTab: "\t", KeyBackTab: "\x1b[Z", "space": " ", "backspace": "\x7f",
	KeyUp: "\x1b[A", KeyDown: "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "c-c": "\x03", "c-u": "\x15",
}

// KeysRequest asks for keys to be pressed in a session, past everything that waits. With Interrupt it is the harness's
// own key that stops a running turn.
type KeysRequest struct {
	Ref       Ref
	ID        string
	Keys      []string // names, e.g. "Escape"; see [KeyNames]
	Interrupt bool
	Actor     string // who presses them, as their surface knows them; empty: nobody who may answer the agent
}

// KeysEffect is what keys did beside moving something on the screen.
type KeysEffect string

// The effects of keys. All but the first are answers: they are recorded with who gave them.
const (
	KeysNone KeysEffect = ""
	KeysDeny KeysEffect = "deny" // the agent's question was turned down, or its menu closed
	KeysMode KeysEffect = "mode" // what the agent may do without asking was switched
)

// KeyNames are the names of the keys that [Core.Keys] knows.
func KeyNames() []string { return slices.Sorted(maps.Keys(keyBytes)) }

// Keys presses keys, and tells what they did. While the agent asks a question or shows a menu only those go in that are
// known to say yes to nothing there, see [Capabilities]. Who turns a question down or switches a mode has to be named.
func (c *Core) Keys(ctx context.Context, q KeysRequest) (KeysEffect, error) {
	rec, err := c.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return KeysNone, err
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return KeysNone, &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	names, bytes, err := keySequence(q, h.Capabilities())
	if err != nil {
		return KeysNone, err
	}
	release, err := c.lockID(ctx, rec.ID, "keys")
	if err != nil {
		return KeysNone, err
	}
	defer release()
	effect, err := c.checkKeys(ctx, h, rec, names)
	switch {
	case err != nil:
		return KeysNone, err
	case effect != KeysNone && q.Actor == "":
		return KeysNone, &Refusal{Cause: ErrRefused, What: "these keys answer the agent, and nobody is named who presses them"}
	}
	return effect, c.press(ctx, rec, q, names, bytes, effect)
}

// checkKeys tells what keys would do now, and refuses those that might say yes.
func (c *Core) checkKeys(ctx context.Context, h Harness, rec Record, names []string) (KeysEffect, error) {
	state, err := c.stateForKeys(ctx, h, rec)
	if err != nil {
		return KeysNone, err
	}
	effect, refused := classifyKeys(names, h.Capabilities(), state)
	if refused == nil {
		return effect, nil
	}
	if err := c.checkAlive(ctx, rec); err != nil {
		return KeysNone, err
	}
	return KeysNone, refused
}

// press gives the keys, and records who gave which.
func (c *Core) press(ctx context.Context, rec Record, q KeysRequest, names []string, bytes string, effect KeysEffect) error {
	err := c.terminal(rec).Press(ctx, rec.Target(), bytes)
	fields := map[string]any{"keys": strings.Join(names, " "), "actor": q.Actor}
	if effect != KeysNone {
		fields["answer"] = string(effect)
	}
	if err != nil {
		err = c.typingError(rec, err)
		fields["error"] = err.Error() // they may have been pressed all the same
	}
	c.emit(ctx, EventKeys, slog.LevelInfo, rec, fields)
	return err
}

// keySequence are the names of the keys that are asked for, and their bytes.
func keySequence(q KeysRequest, t Capabilities) (names []string, bytes string, err error) {
	if q.Interrupt {
		if t.Interrupt != "" {
			return []string{keyInterrupt}, t.Interrupt, nil
		}
		return []string{keyInterrupt}, keyBytes[KeyEscape], nil
	}
	var b strings.Builder
	for _, k := range q.Keys {
		name := strings.ToLower(k)
		bytes, ok := keyBytes[name]
		if !ok {
			return nil, "", &Refusal{Cause: ErrRefused, What: fmt.Sprintf("there is no key %q", k),
				Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
		}
		names = append(names, name)
		b.WriteString(bytes)
	}
	if len(names) == 0 {
		return nil, "", &Refusal{Cause: ErrRefused, What: "no key is named", Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
	}
	return names, b.String(), nil
}

// keyInterrupt stands for the harness's own key that stops a turn.
const keyInterrupt = "interrupt"

// stateForKeys is the state of the screen that keys would meet. A question that the agent's hook tells of, and that the screen
// may be just about to show, counts as open: see look.
func (c *Core) stateForKeys(ctx context.Context, h Harness, rec Record) (ViewState, error) {
	if c.permissions.hasPendingDialog(rec.ID) {
		return ViewDialog, nil
	}
	view, err := c.readScreen(ctx, h, rec)
	if err != nil {
		return "", err
	}
	if c.permissions.hasPendingDialog(rec.ID) { // reported during the look
		return ViewDialog, nil
	}
	return view.State, nil
}

// classifyKeys tells what keys do to a screen in that state. It refuses those that might say yes.
func classifyKeys(names []string, t Capabilities, state ViewState) (KeysEffect, error) {
	closed := state == ViewDialog || state == ViewMenu || state == ViewStarting
	effect := KeysNone
	for _, name := range names {
		switch {
		case closed && (name == keyInterrupt || slices.Contains(t.DenyKeys, name)):
			if state != ViewStarting { // nothing is known to be asked yet
				effect = KeysDeny
			}
		case closed && !slices.Contains(t.MoveKeys, name):
			return KeysNone, mightAnswerError(name, t, state)
		case slices.Contains(t.ModeKeys, name):
			effect = KeysMode
		}
	}
	return effect, nil
}

// mightAnswerError refuses a key that might answer what the screen shows.
func mightAnswerError(name string, t Capabilities, state ViewState) error {
	what := "the agent asks a question or shows a menu, and %s might answer it"
	if state == ViewStarting {
		what = "the agent is starting and may be about to ask, and %s might answer it"
	}
	remedy := "answer it in the terminal"
	if safe := slices.Concat(t.MoveKeys, t.DenyKeys); len(safe) > 0 {
		remedy += "; from here only " + strings.Join(safe, ", ") + " can be pressed now"
	}
	return &Refusal{Cause: ErrRefused, What: fmt.Sprintf(what, name), Remedy: remedy}
}

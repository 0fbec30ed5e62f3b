package core

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"the-loop/sessions"
)

// keyBytes are the keys that may be pressed by name, as a terminal sends them.
var keyBytes = map[string]string{
	sessions.KeyEscape: "\x1b", "enter": "\r", sessions.KeyTab: "\t", sessions.KeyBackTab: "\x1b[Z", "space": " ", "backspace": "\x7f",
	sessions.KeyUp: "\x1b[A", sessions.KeyDown: "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "c-c": "\x03", "c-u": "\x15",
}

// KeyNames are the names of the keys that [Core.Keys] knows.
func KeyNames() []string { return slices.Sorted(maps.Keys(keyBytes)) }

// Keys presses keys, and tells what they did. While the agent asks a question or shows a menu only those go in that are
// known to say yes to nothing there, see [Capabilities]. Who turns a question down or switches a mode has to be named.
func (in *Input) Keys(ctx context.Context, q sessions.KeysRequest) (sessions.KeysEffect, error) {
	rec, err := in.records.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.KeysNone, err
	}
	h, err := in.agents.harness(rec.Definition.Harness)
	if err != nil {
		return sessions.KeysNone, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	names, bytes, err := keySequence(q, h.Capabilities())
	if err != nil {
		return sessions.KeysNone, err
	}
	release, err := in.records.lockID(ctx, rec.ID, "keys")
	if err != nil {
		return sessions.KeysNone, err
	}
	defer release()
	effect, err := in.checkKeys(ctx, h, rec, names)
	switch {
	case err != nil:
		return sessions.KeysNone, err
	case effect != sessions.KeysNone && q.Actor == "":
		return sessions.KeysNone, &sessions.Refusal{Cause: sessions.ErrRefused, What: "these keys answer the agent, and nobody is named who presses them"}
	}
	return effect, in.press(ctx, rec, q, names, bytes, effect)
}

// checkKeys tells what keys would do now, and refuses those that might say yes.
func (in *Input) checkKeys(ctx context.Context, h sessions.Harness, rec sessions.Record, names []string) (sessions.KeysEffect, error) {
	state, err := in.stateForKeys(ctx, h, rec)
	if err != nil {
		return sessions.KeysNone, err
	}
	effect, refused := classifyKeys(names, h.Capabilities(), state)
	if refused == nil {
		return effect, nil
	}
	if err := in.agents.checkAlive(ctx, rec); err != nil {
		return sessions.KeysNone, err
	}
	return sessions.KeysNone, refused
}

// press gives the keys, and records who gave which.
func (in *Input) press(ctx context.Context, rec sessions.Record, q sessions.KeysRequest, names []string, bytes string, effect sessions.KeysEffect) error {
	err := in.panes.terminalOf(rec).Press(ctx, rec.Target(), bytes)
	fields := map[string]any{"keys": strings.Join(names, " "), "actor": q.Actor}
	if effect != sessions.KeysNone {
		fields["answer"] = string(effect)
	}
	if err != nil {
		err = typingError(rec, err)
		fields["error"] = err.Error() // they may have been pressed all the same
	}
	in.events.emit(ctx, sessions.EventKeys, slog.LevelInfo, rec, fields)
	return err
}

// keySequence are the names of the keys that are asked for, and their bytes.
func keySequence(q sessions.KeysRequest, t sessions.Capabilities) (names []string, bytes string, err error) {
	if q.Interrupt {
		if t.Interrupt != "" {
			return []string{keyInterrupt}, t.Interrupt, nil
		}
		return []string{keyInterrupt}, keyBytes[sessions.KeyEscape], nil
	}
	var b strings.Builder
	for _, k := range q.Keys {
		name := strings.ToLower(k)
		bytes, ok := keyBytes[name]
		if !ok {
			return nil, "", &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("there is no key %q", k),
				Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
		}
		names = append(names, name)
		b.WriteString(bytes)
	}
	if len(names) == 0 {
		return nil, "", &sessions.Refusal{Cause: sessions.ErrRefused, What: "no key is named", Remedy: "use one of " + strings.Join(KeyNames(), ", ")}
	}
	return names, b.String(), nil
}

// keyInterrupt stands for the harness's own key that stops a turn.
const keyInterrupt = "interrupt"

// stateForKeys is the state of the screen that keys would meet. A question that the agent's hook tells of, and that the screen
// may be just about to show, counts as open: see look.
func (in *Input) stateForKeys(ctx context.Context, h sessions.Harness, rec sessions.Record) (sessions.ViewState, error) {
	if in.permissions.hasPendingDialog(rec.ID) {
		return sessions.ViewDialog, nil
	}
	view, err := in.agents.readScreen(ctx, h, rec)
	if err != nil {
		return "", err
	}
	if in.permissions.hasPendingDialog(rec.ID) { // reported during the look
		return sessions.ViewDialog, nil
	}
	return view.State, nil
}

// classifyKeys tells what keys do to a screen in that state. It refuses those that might say yes.
func classifyKeys(names []string, t sessions.Capabilities, state sessions.ViewState) (sessions.KeysEffect, error) {
	closed := state == sessions.ViewDialog || state == sessions.ViewMenu || state == sessions.ViewStarting
	effect := sessions.KeysNone
	for _, name := range names {
		switch {
		case closed && (name == keyInterrupt || slices.Contains(t.DenyKeys, name)):
			if state != sessions.ViewStarting { // nothing is known to be asked yet
				effect = sessions.KeysDeny
			}
		case closed && !slices.Contains(t.MoveKeys, name):
			return sessions.KeysNone, mightAnswerError(name, t, state)
		case slices.Contains(t.ModeKeys, name):
			effect = sessions.KeysMode
		}
	}
	return effect, nil
}

// mightAnswerError refuses a key that might answer what the screen shows.
func mightAnswerError(name string, t sessions.Capabilities, state sessions.ViewState) error {
	what := "the agent asks a question or shows a menu, and %s might answer it"
	if state == sessions.ViewStarting {
		what = "the agent is starting and may be about to ask, and %s might answer it"
	}
	remedy := "answer it in the terminal"
	if safe := slices.Concat(t.MoveKeys, t.DenyKeys); len(safe) > 0 {
		remedy += "; from here only " + strings.Join(safe, ", ") + " can be pressed now"
	}
	return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf(what, name), Remedy: remedy}
}

package sessions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keyBytes are the keys that may be pressed by name, as a terminal sends them.
var keyBytes = map[string]string{
	KeyEscape: "\x1b", "enter": "\r", KeyTab: "\t", KeyBackTab: "\x1b[Z", "space": " ", "backspace": "\x7f",
	KeyUp: "\x1b[A", KeyDown: "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "c-c": "\x03", "c-u": "\x15",
}

// KeyNames returns the names of the keys that can be pressed.
func KeyNames() []string { return slices.Sorted(maps.Keys(keyBytes)) }

// KeySequence returns the names of the requested keys and the bytes that a terminal sends for them. An unknown key is a [*Refusal].
func KeySequence(q KeysRequest, t Capabilities) (names []string, bytes string, err error) {
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

// keyInterrupt is the name of the harness's own key that stops a turn.
const keyInterrupt = "interrupt"

// ClassifyKeys returns what keys do to a screen in that state. Keys that might answer yes are a [*Refusal].
func ClassifyKeys(names []string, t Capabilities, state ViewState) (KeysEffect, error) {
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

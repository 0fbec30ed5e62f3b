package command

import (
	"errors"
	"fmt"
	"strings"

	"the-loop/threads/chat"
)

// args are what follows the verb of a command.
type args struct {
	positional []string
	flags      map[string]string // without the hyphens; the value is empty where a flag takes none
	brief      string            // what follows a "--", as it was typed
}

// errUsage says that a command was not understood; the answer shows how it is used.
var errUsage = errors.New("not understood")

// parseArgs reads the text after a command's verb. takes are the known flags, and whether each takes a value. What keyboards make of
// quotes and hyphens is undone, but not in the brief.
func parseArgs(text string, takes map[string]bool) (args, error) {
	text, brief := cutAtDashes(text)
	a := args{flags: map[string]string{}, brief: brief}
	list := chat.SplitWords(chat.NormalizeTyping(text))
	for len(list) > 0 {
		word := list[0]
		list = list[1:]
		name, isFlag := strings.CutPrefix(word, "--")
		if !isFlag {
			a.positional = append(a.positional, word)
			continue
		}
		name, value, given := strings.Cut(name, "=")
		valued, known := takes[name]
		switch {
		case !known:
			return a, fmt.Errorf("%w: there is no --%s here", errUsage, name)
		case valued && !given && len(list) == 0:
			return a, fmt.Errorf("%w: --%s needs a value", errUsage, name)
		case !valued && given:
			return a, fmt.Errorf("%w: --%s takes no value", errUsage, name)
		case valued && !given:
			value, list = list[0], list[1:]
		}
		a.flags[name] = value
	}
	return a, nil
}

// cutAtDashes cuts a text at the first word that is "--", or what a keyboard made of it.
func cutAtDashes(text string) (before, brief string) {
	for at := 0; at < len(text); {
		rest := text[at:]
		word := rest
		if end := strings.IndexAny(rest, whitespace); end >= 0 {
			word = rest[:end]
		}
		if word != "" && chat.NormalizeTyping(word) == "--" {
			return text[:at], strings.Trim(rest[len(word):], whitespace)
		}
		at += len(word) + 1
	}
	return text, ""
}

const whitespace = " \t\r\n\u00a0"

// hasFlag reports whether a flag was given.
func (a args) hasFlag(flag string) bool {
	_, ok := a.flags[flag]
	return ok
}

// sessionName is the one argument of a command on a session.
func (a args) sessionName() (string, error) {
	if len(a.positional) != 1 {
		return "", fmt.Errorf("%w: it takes one name", errUsage)
	}
	return a.positional[0], nil
}

// isEmpty reports whether nothing follows the verb.
func (a args) isEmpty() bool { return len(a.positional) == 0 && len(a.flags) == 0 && a.brief == "" }

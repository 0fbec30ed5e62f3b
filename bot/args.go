package bot

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"the-loop/bot/render"
	"the-loop/threads/chat"
)

// words are what follows the verb of a command: its arguments, its flags, and what stands behind a "--" as it was typed.
type words struct {
	positional []string
	flags      map[string]string // without the hyphens; the value is empty where a flag takes none
	brief      string
}

// errUsage says that a command was not understood; who gave it is shown how it is used.
var errUsage = errors.New("not understood")

// parseArgs reads the text after a command's verb. takes are the flags that there are, and whether each takes a value.
// What keyboards make of quotes and hyphens is undone, but for the brief.
func parseArgs(text string, takes map[string]bool) (words, error) {
	text, brief := cutAtDashes(text)
	w := words{flags: map[string]string{}, brief: brief}
	list := chat.SplitWords(chat.NormalizeTyping(text))
	for len(list) > 0 {
		word := list[0]
		list = list[1:]
		name, isFlag := strings.CutPrefix(word, "--")
		if !isFlag {
			w.positional = append(w.positional, word)
			continue
		}
		name, value, given := strings.Cut(name, "=")
		valued, known := takes[name]
		switch {
		case !known:
			return w, fmt.Errorf("%w: there is no --%s here", errUsage, name)
		case valued && !given && len(list) == 0:
			return w, fmt.Errorf("%w: --%s needs a value", errUsage, name)
		case !valued && given:
			return w, fmt.Errorf("%w: --%s takes no value", errUsage, name)
		case valued && !given:
			value, list = list[0], list[1:]
		}
		w.flags[name] = value
	}
	return w, nil
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
func (w words) hasFlag(flag string) bool {
	_, ok := w.flags[flag]
	return ok
}

// sessionName is the one argument of a command on a session.
func (w words) sessionName() (string, error) {
	if len(w.positional) != 1 {
		return "", fmt.Errorf("%w: it takes one name", errUsage)
	}
	return w.positional[0], nil
}

// usages are the verbs of the slash command, in the order of its help.
var usages = []struct{ verb, words, what string }{
	{"help", "", "this text"},
	{"status", "", "tell the channel how the bot and the sessions are"},
	{"list", "", "the sessions"},
	{"create", "[NAME [--harness HARNESS] [--cwd FOLDER] [--no-start] [-- BRIEF]]", "make a session; without a name a form opens"},
	{"delete", "NAME", "stop a session that was created and forget it; you are asked first"},
	{"start", "NAME", "bring a session up, in its conversation"},
	{"stop", "NAME", "take it down; the conversation stays"},
	{"restart", "NAME | --all [--dry-run]", "bring it up anew in its terminal and conversation, with what the env file declares now; --all does that to every session that runs"},
	{"say", "NAME TEXT", "tell its agent something, as a reply in its thread does"},
	{"peek", "NAME [--share]", "what its terminal shows, for you, or for its thread"},
}

// usageHint is what Slack shows beside the command: at most 1,000 characters.
func usageHint() string {
	verbs := make([]string, 0, len(usages))
	for _, u := range usages {
		verbs = append(verbs, u.verb)
	}
	return strings.Join(verbs, " | ")
}

func helpText(command string) string {
	lines := []string{"What works here:"}
	for _, u := range usages {
		lines = append(lines, "• "+render.Code(strings.TrimSpace(command+" "+u.verb+" "+u.words))+" – "+u.what)
	}
	return strings.Join(append(lines, "To talk to a session, reply in the thread under its announcement. There, mention me in place of "+
		render.Code(command)+", or use the buttons, or the shortcut “Session” in a message's menu."), "\n")
}

// usageText is how one verb is used.
func usageText(command, verb string) string {
	i := slices.IndexFunc(usages, func(u struct{ verb, words, what string }) bool { return u.verb == verb })
	if i < 0 {
		return helpText(command)
	}
	return "Use it like this: " + render.Code(strings.TrimSpace(command+" "+verb+" "+usages[i].words))
}

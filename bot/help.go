package bot

import (
	"context"
	"strings"

	"the-loop/bot/render"
)

// Help is the least that slash commands answer: what works. Its functions return text with Slack's marks, and those
// that are nil are not offered.
type Help struct {
	List   func(ctx context.Context) (string, error)
	Status func(ctx context.Context) (string, error)
}

// Command implements [Commands]. Anything unknown gets the help.
func (h Help) Command(ctx context.Context, a Act) (string, error) {
	c := parseCommand(a.Text)
	switch {
	case c.Verb == "list" && h.List != nil:
		return h.List(ctx)
	case c.Verb == "status" && h.Status != nil:
		return h.Status(ctx)
	}
	return h.text(a.Name), nil
}

func (h Help) text(command string) string {
	lines := []string{"What works here:", line(command, "help", "this text")}
	if h.List != nil {
		lines = append(lines, line(command, "list", "the sessions"))
	}
	if h.Status != nil {
		lines = append(lines, line(command, "status", "how the bot and the sessions are"))
	}
	return strings.Join(append(lines, "To talk to a session, reply in the thread under its announcement."), "\n")
}

func line(command, verb, what string) string {
	return "• " + render.Code(command+" "+verb) + " – " + what
}

package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// commander runs what a member tells the bot in a session's thread, by a leading mention.
type commander struct{ b *Bot }

// threadHelp is what works in a session's thread.
const threadHelp = "What works in this thread, after a mention of me:\n" +
	"• `status` – how this session is\n" +
	"• `start`, `stop`, `restart` – bring it up, take it down, or both; the conversation stays\n" +
	"• `interrupt` – stop what the agent is doing now\n" +
	"• `keys KEY …` – press keys in its terminal, past everything that waits\n" +
	"• `raw /COMMAND` – give the agent a command of its own; it waits its turn like a reply\n" +
	"Anything that does not begin with a mention of me goes to the agent."

// Command implements [threads.Commander]. What it answers has Slack's marks.
func (c commander) Command(ctx context.Context, q threads.CommandRequest) string {
	switch q.Command.Verb {
	case "status":
		return c.status(ctx, q)
	case "start", "stop", "restart":
		return c.change(ctx, q)
	case "interrupt":
		return done(c.b.o.Core.Keys(ctx, sessions.KeysRequest{Ref: q.Ref, ID: q.ID, Interrupt: true}), "Interrupted.")
	case "keys":
		err := c.b.o.Core.Keys(ctx, sessions.KeysRequest{Ref: q.Ref, ID: q.ID, Keys: q.Command.Args})
		return done(err, "Pressed "+render.Code(strings.Join(q.Command.Args, " "))+".")
	case "", "help":
		return threadHelp
	}
	return "I do not know " + render.Code(q.Command.Verb) + ".\n" + threadHelp
}

func done(err error, answer string) string {
	if err != nil {
		return "Not done: " + render.Escape(err.Error())
	}
	return answer
}

func (c commander) status(ctx context.Context, q threads.CommandRequest) string {
	rows, err := c.b.o.Core.List(ctx)
	if err != nil {
		return done(err, "")
	}
	for _, r := range rows {
		if r.ID == q.ID {
			return render.Line(r)
		}
	}
	return "This session was deleted."
}

// change starts, stops or restarts the session, and has its announcement brought up to date.
func (c commander) change(ctx context.Context, q threads.CommandRequest) string {
	defer c.b.announcer.poke()
	var row sessions.Row
	var err error
	if q.Command.Verb != "start" {
		row, err = c.b.o.Core.Stop(ctx, sessions.StopRequest{Ref: q.Ref})
	}
	if err == nil && q.Command.Verb != "stop" {
		row, err = c.b.o.Core.Start(ctx, sessions.StartRequest{Ref: q.Ref})
	}
	if err != nil {
		return done(err, "")
	}
	return render.Line(row)
}

// list answers the slash command of that name.
func (b *Bot) list(ctx context.Context) (string, error) {
	rows, err := b.o.Core.List(ctx)
	if err != nil {
		return "", err
	}
	return render.List(rows), nil
}

// status answers the slash command of that name.
func (b *Bot) status(ctx context.Context) (string, error) {
	rows, err := b.o.Core.List(ctx)
	if err != nil {
		return "", err
	}
	s, t := b.socket.State(), b.threads.Status()
	lines := []string{fmt.Sprintf("Connected for %s, %d threads.", time.Since(s.Since).Round(time.Second), t.Bound)}
	if t.Unread > 0 {
		lines = append(lines, fmt.Sprintf("%d threads are still to be read.", t.Unread))
	}
	if s.Connections > 1 {
		lines = append(lines, fmt.Sprintf(":warning: %d connections are open on this app: another bot takes some of its events.", s.Connections))
	}
	if why := b.announcer.problem(); why != "" {
		lines = append(lines, ":warning: "+render.Escape(why))
	}
	return strings.Join(append(lines, render.List(rows)), "\n"), nil
}

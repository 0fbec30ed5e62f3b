package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// commander runs what a member tells the bot in a session's thread, by a leading mention.
type commander struct{ b *Bot }

// threadHelp is what works in a session's thread.
const threadHelp = "What works in this thread, after a mention of me:\n" +
	"• `status` – how this session is\n" +
	"• `peek` – what its terminal shows, for you; `peek --share` for the thread\n" +
	"• `start`, `stop`, `restart` – bring it up, take it down, or both; the conversation stays\n" +
	"• `restart --all`, with `--dry-run` to see what it would do – restart every session that runs, with what the env file declares now\n" +
	"• `delete` – stop a session that was created and forget it; I ask first\n" +
	"• `interrupt` – stop what the agent is doing now\n" +
	"• `keys KEY …` – press keys in its terminal, past everything that waits\n" +
	"• `raw /COMMAND` – give the agent a command of its own; it waits its turn like a reply\n" +
	"Anything that does not begin with a mention of me goes to the agent."

// Command implements [threads.Commander]. What it answers has Slack's marks. Where others must not read it, only who asked does.
func (c commander) Command(ctx context.Context, q threads.CommandRequest) string {
	answer := c.dispatch(ctx, q)
	var shared *SharedChannelError
	if answer != "" && errors.As(c.b.sharing.check(ctx, q.Channel), &shared) {
		return c.postEphemeral(ctx, q, answer)
	}
	return answer
}

func (c commander) dispatch(ctx context.Context, q threads.CommandRequest) string {
	switch q.Command.Verb {
	case "status":
		return c.status(ctx, q)
	case verbRestart:
		return c.restart(ctx, q)
	case verbStart, verbStop:
		return c.changeState(ctx, q)
	case "peek":
		return c.peek(ctx, q)
	case "delete":
		return c.confirmDelete(ctx, q)
	case "interrupt":
		return c.pressKeys(ctx, q, sessions.KeysRequest{Interrupt: true}, "Interrupted.")
	case "keys":
		return c.pressKeys(ctx, q, sessions.KeysRequest{Keys: q.Command.Args}, "Pressed "+render.Code(strings.Join(q.Command.Args, " "))+".")
	case "", "help":
		return threadHelp
	}
	return "I do not know " + render.Code(q.Command.Verb) + ".\n" + threadHelp
}

// pressKeys presses keys for who asked. Those that answer the agent are told to the thread with who gave them.
func (c commander) pressKeys(ctx context.Context, q threads.CommandRequest, keys sessions.KeysRequest, did string) string {
	keys.Ref, keys.ID, keys.Actor = q.Ref, q.ID, q.User
	effect, err := c.b.o.Core.Keys(ctx, keys)
	switch {
	case err != nil:
	case effect == sessions.KeysDeny:
		did += fmt.Sprintf(" <@%s> turned down what the agent asked, or closed its menu.", q.User)
	case effect == sessions.KeysMode:
		did += fmt.Sprintf(" <@%s> switched what the agent may do without asking. `peek` shows how it stands.", q.User)
	}
	return resultText(err, did)
}

func resultText(err error, answer string) string {
	if err != nil {
		return "Not done: " + render.Escape(err.Error())
	}
	return answer
}

func (c commander) status(ctx context.Context, q threads.CommandRequest) string {
	rows, err := c.b.o.Core.List(ctx)
	if err != nil {
		return resultText(err, "")
	}
	for _, r := range rows {
		if r.ID == q.ID {
			return render.WithDrift(render.Line(r), c.b.o.Core.Drift(ctx), q.ID)
		}
	}
	return "This session was deleted."
}

// change starts, stops or restarts the session, and has its announcement brought up to date.
func (c commander) changeState(ctx context.Context, q threads.CommandRequest) string {
	row, err := c.b.findSession(ctx, q.ID)
	if err == nil {
		row, err = c.b.changeState(ctx, q.Command.Verb, row.Ref, row.ID)
	}
	if err != nil {
		return resultText(err, "")
	}
	return render.Line(row)
}

// restart restarts this session, or with --all every one.
func (c commander) restart(ctx context.Context, q threads.CommandRequest) string {
	all, dry, err := parseRestartAll(q.Command.Rest)
	switch {
	case err != nil:
		return resultText(err, "")
	case !all:
		return c.changeState(ctx, q)
	}
	answer, err := c.b.driftNotice.handleCommand(ctx, q.User, dry)
	return resultText(err, answer)
}

// peek shows the screen to who asked, and with --share to the thread.
func (c commander) peek(ctx context.Context, q threads.CommandRequest) string {
	w, err := parseArgs(q.Command.Rest, map[string]bool{"share": false})
	if err != nil {
		return resultText(err, "")
	}
	row, err := c.b.findSession(ctx, q.ID)
	if err != nil {
		return resultText(err, "")
	}
	answer, err := c.b.peek(ctx, row.Ref, q.User, w.hasFlag("share"))
	if err != nil {
		return resultText(err, "")
	}
	return c.postEphemeral(ctx, q, answer)
}

// confirmDelete asks who wants it, with a button: a mention opens no modal.
func (c commander) confirmDelete(ctx context.Context, q threads.CommandRequest) string {
	row, err := c.b.findDeletable(ctx, q.ID)
	if err != nil {
		return resultText(err, "")
	}
	return c.postEphemeral(ctx, q, render.DeleteQuestion(row), render.Button{Label: "Delete it", Action: render.ActionDeleteNow,
		Value: render.Handle(row), Style: "danger"})
}

// postEphemeral tells only who asked.
func (c commander) postEphemeral(ctx context.Context, q threads.CommandRequest, text string, buttons ...render.Button) string {
	if err := c.b.o.Client.PostEphemeral(ctx, q.Channel, q.Root, q.User, text, buttons...); err != nil {
		return resultText(err, "")
	}
	return ""
}

// statusText answers the slash command of that name.
func (b *Bot) statusText(ctx context.Context) (string, error) {
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
	if why := b.problem(); why != "" {
		lines = append(lines, ":warning: "+render.Escape(why))
	}
	return render.WithDrift(strings.Join(append(lines, render.List(rows)), "\n"), b.o.Core.Drift(ctx), ""), nil
}

// postStatus tells the channel that the command was given in how everything is, where that is one in which sessions are
// announced; elsewhere, and where Slack does not take it, only who asked is told.
func (b *Bot) postStatus(ctx context.Context, channel string) (string, error) {
	text, err := b.statusText(ctx)
	if err != nil || !b.announcesIn(channel) {
		return text, err
	}
	if err := b.sharing.check(ctx, channel); err != nil {
		return text, nil // as before: it is for who asked
	}
	if _, err := b.o.Client.Post(ctx, chat.Post{Channel: channel, Text: text, Nonce: rand.Text()}); err != nil {
		b.o.Log.Info("the status could not be posted; only who asked is told", "channel", channel, "error", err)
		return text, nil
	}
	return "", nil
}

// announcesIn reports whether sessions are announced in the channel.
func (b *Bot) announcesIn(channel string) bool {
	if channel == b.o.Config().Channel {
		return true
	}
	for id := range b.threads.Sessions() {
		if at, _, bound := b.threads.ThreadOf(id); bound && at == channel {
			return true
		}
	}
	return false
}

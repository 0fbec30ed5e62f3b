package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"the-loop/bot/command"
	"the-loop/bot/interact"
	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
)

// newActions are the actions that members do to sessions, over the parts of the bot.
func (b *Bot) newActions() *command.Actions {
	core := b.o.Core
	return command.NewActions(command.ActionsOptions{Sessions: core, Lifecycle: core, Creator: core, Terminal: core,
		Threads: b.threads, Images: imagePoster{b.o.Client}, MemberName: b.memberName, AnnounceChannel: channels{b}.AnnounceChannel,
		Create: func() command.CreateOptions {
			cfg := b.o.Config()
			return command.CreateOptions{Limits: cfg.Create, DefaultHarness: cfg.DefaultHarness, DefaultCwd: cfg.DefaultCwd}
		},
		OnChange: func() { b.announcer.Wake() }, Scrub: b.scrub, Log: b.o.Log})
}

// newInteractions returns the handlers of slash commands, buttons, modals and the Home tab, over the parts of the bot.
func (b *Bot) newInteractions() (*interact.InteractionRouter, *interact.HomeTabs) {
	client := b.o.Client
	return interact.New(interact.Options{Slack: client, People: client.People(), Views: client, Actions: b.actions, Commands: b.commands,
		Permissions: b.threads, Resender: b.threads, Threads: b.threads, Restarter: b.driftNotice, Sessions: b.o.Core, Policy: b.Policy,
		CreateForm: func() render.CreateForm {
			cfg := b.o.Config()
			return render.CreateForm{Harnesses: cfg.Create.AllowedHarnesses(cfg.Harnesses), Harness: cfg.DefaultHarness, Cwd: cfg.DefaultCwd, Channel: cfg.Channel}
		},
		Problem: b.problem, Scrub: b.scrub, Sink: b.o.Sink, Log: b.o.Log})
}

// memberName is a member's display name; the id when Slack does not tell it.
func (b *Bot) memberName(ctx context.Context, user string) string {
	person, err := b.o.Client.People().Person(ctx, user)
	if err != nil {
		b.o.Log.Info("cannot look up a member's name", "member", user, "error", err)
	}
	return cmp.Or(sessions.DisplayName(person.Name), user)
}

// mentions runs the commands in threads, which are made after the threads.
type mentions struct{ b *Bot }

// Command implements [threads.Commander].
func (m mentions) Command(ctx context.Context, q threads.CommandRequest) string {
	return m.b.commands.Mentions().Command(ctx, q)
}

// imagePoster implements [runCommand.ImagePoster].
type imagePoster struct{ client *slack.Client }

func (p imagePoster) MayUpload() bool { return p.client.MayUpload() }

func (p imagePoster) PostFile(ctx context.Context, channel, root, name, title string, data []byte) error {
	err := p.client.PostFile(ctx, channel, root, name, title, data)
	if errors.Is(err, slack.ErrNoUpload) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// health is the state of the bot, for the status command.
func (b *Bot) health() string {
	s, t := b.socket.State(), b.threads.Status()
	lines := []string{fmt.Sprintf("Connected for %s, %d threads.", time.Since(s.Since).Round(time.Second), t.Bound)}
	if t.Unread > 0 {
		lines = append(lines, fmt.Sprintf("%d threads have not been read yet.", t.Unread))
	}
	if s.Connections > 1 {
		lines = append(lines, fmt.Sprintf(":warning: This app has %d connections: another bot receives some of its events.", s.Connections))
	}
	if why := b.problem(); why != "" {
		lines = append(lines, ":warning: "+render.Escape(why))
	}
	return strings.Join(lines, "\n")
}

// scrub removes the values of the environment from a text.
func (b *Bot) scrub(text string) string {
	if b.o.Scrub == nil {
		return text
	}
	return b.o.Scrub(text)
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"the-loop/bot"
	slackapp "the-loop/bot/slack/app"
	"the-loop/sessions/eventlog"
	"the-loop/threads"
)

func slackCommand(c *cli) *cobra.Command {
	return newGroupCommand("slack", "Set up and check the Slack app", slackManifestCommand(c), slackCheckCommand(c))
}

func slackManifestCommand(c *cli) *cobra.Command {
	var name, command string
	cmd := &cobra.Command{Use: "manifest", Short: "Print the manifest to create the Slack app from", Args: cobra.NoArgs,
		Long: `Print the manifest to create the Slack app from, with exactly the scopes, events, commands and shortcuts that the-loop uses:
at api.slack.com/apps choose "Create New App", "From a manifest", and paste it as YAML.`}
	cmd.Flags().StringVar(&name, "name", "the-loop", "the bot's name in Slack")
	cmd.Flags().StringVar(&command, "command", "", "the slash command (default: channels.slack.command, or /the-loop)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if command == "" {
			command = c.slashCommand()
		}
		manifest, err := bot.AppManifest(command, name)
		if err != nil {
			return usageError(err)
		}
		_, err = cmd.OutOrStdout().Write(manifest)
		return err
	}
	return cmd
}

// slashCommand is the configured one. The manifest is wanted before there is a configuration, too.
func (c *cli) slashCommand() string {
	if cfg, _, err := c.loadConfig(); err == nil {
		return cfg.Slack.Command
	}
	return "/the-loop"
}

func slackCheckCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "check", Short: "Check tokens, scopes, channel, users and event delivery", Args: cobra.NoArgs,
		Long: `Check the tokens, their scopes, the channel, the authorized users and event delivery: a message that the bot posts in a thread of its
own must come back over the connection. For each problem, a remedy is printed. The messages are deleted afterwards.`}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := c.openApp()
		if err != nil {
			return err
		}
		defer a.close()
		client, err := newSlackClient(a.cfg(), c.env.getenv)
		if err != nil {
			return err
		}
		defer client.Close()
		o := slackapp.CheckOptions{Client: client, Channel: a.cfg().Slack.Channel, AllowShared: a.cfg().Slack.AllowSharedChannels,
			Users: a.cfg().Slack.AuthorizedUsers, Log: a.log}
		if _, alive, err := a.registry.BotRunning(); err != nil {
			return err
		} else if alive {
			if o.AwaitDrop, err = a.newDropWaiter(); err != nil {
				return err
			}
		}
		return c.printFindings(cmd, format, slackapp.Check(cmd.Context(), o))
	}
	return cmd
}

// errDropFound ends the watch.
var errDropFound = errors.New("seen")

// newDropWaiter waits, from now on, for the running bot to record that it heard a message of its own.
func (a *app) newDropWaiter() (func(ctx context.Context, channel, ts string) error, error) {
	path := a.cfg().EventLog.Path
	from, err := eventlog.End(path)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, channel, ts string) error {
		err := eventlog.Follow(ctx, path, from, func(e eventlog.Entry) error {
			if e.Name == threads.EventDropped && e.Fields["channel"] == channel && e.Fields["ts"] == ts {
				return errDropFound
			}
			return nil
		})
		if errors.Is(err, errDropFound) {
			return nil
		}
		return err
	}, nil
}

func (c *cli) printFindings(cmd *cobra.Command, format string, findings []slackapp.Finding) error {
	ok := true
	for _, f := range findings {
		ok = ok && f.OK
		if format == "json" {
			continue
		}
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s  %-14s %s\n", mark, f.Name, f.Detail)
		if f.Remedy != "" {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "      %s\n", f.Remedy)
		}
	}
	if format == "json" {
		if err := printJSON(cmd.OutOrStdout(), findings); err != nil {
			return err
		}
	}
	if !ok {
		return &exitError{code: exitFailed}
	}
	return nil
}

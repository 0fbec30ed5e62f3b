package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"the-loop/sessions"
)

func standingCreateCommand(c *cli) *cobra.Command {
	var q sessions.CreateRequest
	var format string
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a session that is not in the configuration, and start it", Args: cobra.ExactArgs(1),
		Long: `Create a session that is not in the configuration, and start it. Its definition is kept in its record, so "the-loop start" starts it
like a declared one. Defaults come from routing in the configuration.`}
	f := cmd.Flags()
	f.StringVar(&q.Description, "description", "", "its purpose, in one line")
	f.StringVar(&q.Harness, "harness", "", "the agent program (default routing.defaultHarness)")
	f.StringArrayVar(&q.HarnessArgs, "harness-arg", nil, "an argument for the agent program; repeatable (default routing.harnessArgs)")
	f.StringVar(&q.Cwd, "cwd", "", "the folder it works in (default routing.spawnWorkdir)")
	f.StringVar(&q.Prompt, "prompt", "", "its first instructions, after those that every session gets")
	f.StringVar(&q.PromptFile, "prompt-file", "", "a file with its first instructions, read for each new conversation")
	f.BoolVar(&q.Chat.Enabled, "slack", true, "announce it in Slack, if Slack is enabled; --slack=false: do not")
	f.StringVar(&q.Chat.Channel, "slack-channel", "", "the id of the channel, C… (default channels.slack.channel)")
	f.BoolVar(&q.NoAutoStart, "no-auto-start", false, "do not start it with the-loop start")
	f.BoolVar(&q.NoStart, "no-start", false, "create it without starting it")
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Prompt != "" && q.PromptFile != "" {
			return usageError(errors.New("use --prompt or --prompt-file, not both"))
		}
		q.Name = args[0]
		if q.Cwd != "" {
			q.Cwd = c.env.abs(q.Cwd)
		}
		if q.PromptFile != "" {
			q.PromptFile = c.env.abs(q.PromptFile)
		}
		return c.withStandingSession(cmd.Context(), q.Name, func(a *app, _ sessions.Ref) error {
			row, err := a.core.Create(cmd.Context(), q)
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), format, []sessions.Row{row})
		})
	}
	return cmd
}

func standingDeleteCommand(c *cli) *cobra.Command {
	var yes bool
	var format string
	cmd := &cobra.Command{Use: "delete NAME", Short: "Stop a created session and remove its record", Args: cobra.ExactArgs(1),
		Long: `Stop a session and remove its record. A declared session cannot be deleted, since the configuration would create it again: remove it
there. Asks for confirmation; --yes skips that.`}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withStandingSession(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			if err := a.core.CheckDeletable(sessions.DeleteRequest{Ref: ref}); err != nil {
				return err // before anybody is asked
			}
			if !yes {
				if err := c.confirm(fmt.Sprintf("Delete %s and forget its conversation?", ref)); err != nil {
					return err
				}
			}
			row, err := a.core.Delete(cmd.Context(), sessions.DeleteRequest{Ref: ref})
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), format, []sessions.Row{row})
		})
	}
	return cmd
}

// confirm asks on the terminal. Without one there is nobody to ask.
func (c *cli) confirm(question string) error {
	if !term.IsTerminal(int(c.env.in.Fd())) { // /dev/null is a device too
		return usageError(errors.New("there is no terminal to ask for confirmation: use --yes"))
	}
	if _, err := fmt.Fprintf(c.env.err, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c.env.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed, so nothing was deleted")
}

func standingPeekCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "peek NAME", Short: "Print what a session's terminal shows", Args: cobra.ExactArgs(1),
		Long: `Print what a session's terminal shows, or showed last if its agent has ended.`}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withStandingSession(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			seen, err := a.core.Peek(cmd.Context(), sessions.PeekRequest{Ref: ref})
			if err != nil {
				return err
			}
			if format == "json" {
				return printJSON(cmd.OutOrStdout(), seen)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), seen.Text)
			return err
		})
	}
	return cmd
}

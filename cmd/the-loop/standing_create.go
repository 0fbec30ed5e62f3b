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

func (c *cli) standingCreateCommand() *cobra.Command {
	var q sessions.CreateRequest
	var format string
	cmd := &cobra.Command{Use: "create NAME", Short: "Make a session that the configuration does not declare, and start it", Args: cobra.ExactArgs(1),
		Long: `Make a session that the configuration does not declare, and start it. Its definition is kept in its record, so it comes back with
"the-loop start" like a declared one. What is not given comes from routing in the configuration.`}
	f := cmd.Flags()
	f.StringVar(&q.Description, "description", "", "what it is for, in a line")
	f.StringVar(&q.Harness, "harness", "", "the agent program (default routing.defaultHarness)")
	f.StringArrayVar(&q.HarnessArgs, "harness-arg", nil, "an argument for it; may be repeated (default routing.harnessArgs of it)")
	f.StringVar(&q.Cwd, "cwd", "", "the folder it works in (default routing.spawnWorkdir)")
	f.StringVar(&q.Prompt, "prompt", "", "its brief, after what every session is told first")
	f.StringVar(&q.PromptFile, "prompt-file", "", "the file that holds its brief, read at each fresh start")
	f.BoolVar(&q.Chat.Enabled, "slack", true, "announce it in Slack when Slack is enabled; --slack=false does not")
	f.StringVar(&q.Chat.Channel, "slack-channel", "", "the id of the channel, C… (default channels.slack.channel)")
	f.BoolVar(&q.NoAutoStart, "no-auto-start", false, "do not bring it back with the-loop start")
	f.BoolVar(&q.NoStart, "no-start", false, "only record it")
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Prompt != "" && q.PromptFile != "" {
			return usageError(errors.New("--prompt and --prompt-file have no order between them: give one of the two"))
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

func (c *cli) standingDeleteCommand() *cobra.Command {
	var yes bool
	var format string
	cmd := &cobra.Command{Use: "delete NAME", Short: "Stop a created session and remove its record", Args: cobra.ExactArgs(1),
		Long: `Stop a session and remove its record, so that it does not come back. A declared session is refused: the configuration would
make it again. It asks first; --yes answers.`}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
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
		return usageError(errors.New("there is no terminal to ask on: say --yes"))
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
	return errors.New("nothing was deleted; --yes deletes without asking")
}

func (c *cli) standingPeekCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "peek NAME", Short: "Print what a session's terminal shows", Args: cobra.ExactArgs(1),
		Long: `Print what a session's terminal shows; of an agent that ended, what it showed last.`}
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"the-loop/sessions"
)

// withWorkItem opens the core for a verb on the session of one work item. No standing session is one.
func (c *cli) withWorkItem(ctx context.Context, name string, verb func(*app, sessions.Ref) error) error {
	ref, err := sessions.ParseWorkItem(name)
	if err != nil {
		return err
	}
	return c.withApp(ctx, c.openApp, func(a *app) error { return verb(a, a.registeredRef(ctx, ref)) })
}

// registeredRef is the spelling under which a work item's session is shown; of one that nothing knows, the given one.
func (a *app) registeredRef(ctx context.Context, ref sessions.Ref) sessions.Ref {
	if rec, err := a.registry.Load(ctx, ref); err == nil {
		return rec.Ref
	}
	return ref
}

func sessionsRegisterCommand(c *cli) *cobra.Command {
	var q sessions.RegisterRequest
	var format string
	cmd := &cobra.Command{Use: "register REF", Short: "Register a work item's session; its first event starts it", Args: cobra.ExactArgs(1),
		Long: `Register the session of a work item; REF is github:OWNER/REPO#N. Nothing is started until the first event is delivered. With
--session-id, the session continues an existing conversation of the harness. Defaults come from routing in the configuration.`}
	f := cmd.Flags()
	f.StringVar(&q.Harness, "harness", "", "the agent program (default routing.defaultHarness)")
	f.StringVar(&q.Cwd, "cwd", "", "the folder it works in (default routing.spawnWorkdir)")
	f.StringVar(&q.Conversation, "session-id", "", "the harness's `ID` of the conversation to continue")
	f.BoolVar(&q.Chat.Enabled, "slack", true, "announce it in Slack, if Slack is enabled; --slack=false: do not")
	f.StringVar(&q.Chat.Channel, "slack-channel", "", "the id of the channel, C… (default channels.slack.channel)")
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Cwd != "" {
			q.Cwd = c.env.abs(q.Cwd)
		}
		return c.withWorkItem(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			q.Ref = ref
			row, err := a.core.Register(cmd.Context(), q)
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), format, []sessions.Row{row})
		})
	}
	return cmd
}

// listableStates are the states by which sessions can be listed.
var listableStates = []sessions.State{sessions.StateNew, sessions.StateRunning, sessions.StateEnded, sessions.StateStopped, sessions.StateUnknown, sessions.StateBroken}

func sessionsListCommand(c *cli) *cobra.Command {
	var format, status string
	cmd := &cobra.Command{Use: "list", Short: "List the sessions of work items", Args: cobra.NoArgs,
		Long: `List the sessions of work items, with the deliveries that may or may not have arrived. For standing sessions, see the-loop standing
list.`}
	cmd.Flags().StringVar(&status, "status", "", "only sessions in this state: new, running, ended, stopped, unknown or broken")
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := sessions.ListRequest{Kind: sessions.KindWorkItem}
		if status != "" {
			if q.States = []sessions.State{sessions.State(status)}; !slices.Contains(listableStates, q.States[0]) {
				return usageError(fmt.Errorf("--status must be one of %s, not %q", joinStates(listableStates), status))
			}
		}
		a, err := c.openApp()
		if err != nil {
			return err
		}
		defer a.close()
		rows, err := a.core.ListFiltered(cmd.Context(), q)
		if err != nil {
			return err
		}
		return printRows(cmd.OutOrStdout(), format, rows)
	}
	return cmd
}

func joinStates(states []sessions.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

func sessionsAttachCommand(c *cli) *cobra.Command {
	return newAttachCommand(c, "attach REF", "Show the terminal of a work item's session", c.withWorkItem)
}

func sessionsDeliverCommand(c *cli) *cobra.Command {
	var q sessions.DeliverRequest
	var format string
	cmd := &cobra.Command{Use: "deliver REF --text TEXT", Short: "Deliver an event to a work item's session, exactly once", Args: cobra.ExactArgs(1),
		Long: `Deliver an event to a work item's session. If its agent runs, the text is typed like a reply. Otherwise the agent is started with it: in
its conversation, or in a new one if that cannot be resumed. With --text - the text is read from standard input.

An id is processed only once; the ids of the last 500 deliveries to a work item are remembered. If it is not known whether a delivery
arrived, the command says so, and that id is never typed again. The command waits for an agent that is starting. While the agent asks a
question or its input box holds unsent text, nothing is typed: the command waits for up to --wait and then fails, and the same delivery
can be sent again.`}
	cmd.Flags().StringVar(&q.DeliveryID, "delivery-id", "", "the `ID` of the event; without one, it counts as a new event")
	cmd.Flags().DurationVar(&q.Wait, "wait", 0, "how long to wait until the agent can take text")
	text := addTextFlag(cmd)
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if q.Text, err = text(); err != nil {
			return err
		}
		if q.Wait < 0 || q.Wait > time.Hour {
			return usageError(errors.New("--wait must be between 0s and 1h"))
		}
		return c.withWorkItem(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			q.Ref = ref
			done, err := a.core.Deliver(cmd.Context(), q)
			var held *sessions.HeldError
			switch {
			case errors.As(err, &held):
				return fmt.Errorf("%w: nothing was typed; deliver it again later, or wait with --wait", err)
			case err != nil:
				return err
			case format == "json":
				return printJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s)\n", ref, done.Receipt, done.Row.Outcome)
			return err
		})
	}
	return cmd
}

func sessionsReplyCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "reply REF --text TEXT", Short: "Type a text into the running session of a work item", Args: cobra.ExactArgs(1),
		Long: `Type a text into the running session of a work item and submit it, once. It does not start the session; deliver does.
With --text - the text is read from standard input. The output is that of standing say.`}
	text := addTextFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words, err := text()
		if err != nil {
			return err
		}
		return c.withWorkItem(cmd.Context(), args[0], submitText(cmd, words))
	}
	return cmd
}

func sessionsCloseCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "close REF", Short: "Stop a work item's session and remove its record", Args: cobra.ExactArgs(1),
		Long: `Stop a work item's session and remove its record. The harness keeps the conversation; its id is in the event log. The
ids of its deliveries are kept.`}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withWorkItem(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			row, err := a.core.Delete(cmd.Context(), sessions.DeleteRequest{Ref: ref})
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), format, []sessions.Row{row})
		})
	}
	return cmd
}

// addTextFlag adds --text, and returns what reads what was given.
func addTextFlag(cmd *cobra.Command) (read func() (string, error)) {
	var text string
	cmd.Flags().StringVar(&text, "text", "", "the text, or - for standard input")
	return func() (string, error) {
		if !cmd.Flags().Changed("text") {
			return "", usageError(errors.New("--text is missing"))
		}
		if text == "-" {
			data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxTextBytes+1))
			if err != nil {
				return "", fmt.Errorf("read standard input: %w", err)
			}
			text = string(data)
		}
		if len(text) > maxTextBytes {
			return "", usageError(fmt.Errorf("the text is longer than %d bytes", maxTextBytes))
		}
		return text, nil
	}
}

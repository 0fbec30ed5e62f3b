package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"the-loop/sessions"
)

func standingCommand(c *cli) *cobra.Command {
	return newGroupCommand("standing", "Manage standing sessions",
		standingVerbCommand(c, "start", "Start a session, unless it is running", c.openApp, func(cmd *cobra.Command, a *app, ref sessions.Ref) (sessions.Row, error) {
			return a.core.Start(cmd.Context(), sessions.StartRequest{Ref: ref})
		}),
		standingVerbCommand(c, "stop", "Stop a session; its conversation is kept", c.openAppForStop, func(cmd *cobra.Command, a *app, ref sessions.Ref) (sessions.Row, error) {
			return a.core.Stop(cmd.Context(), sessions.StopRequest{Ref: ref})
		}),
		standingVerbCommand(c, "restart", "Restart a session; its conversation continues", c.openApp, func(cmd *cobra.Command, a *app, ref sessions.Ref) (sessions.Row, error) {
			return a.core.Restart(cmd.Context(), sessions.RestartRequest{Ref: ref})
		}),
		standingListCommand(c), standingCreateCommand(c), standingDeleteCommand(c), standingSayCommand(c), standingPeekCommand(c))
}

func standingVerbCommand(c *cli, use, short string, open func() (*app, error), verb func(*cobra.Command, *app, sessions.Ref) (sessions.Row, error)) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1)}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withStandingSessionFrom(cmd.Context(), args[0], open, func(a *app, ref sessions.Ref) error {
			row, err := verb(cmd, a, ref)
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), format, []sessions.Row{row})
		})
	}
	return cmd
}

func standingListCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "list", Short: "List standing sessions, declared and created", Args: cobra.NoArgs}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := c.openApp()
		if err != nil {
			return err
		}
		defer a.close()
		rows, err := a.core.ListFiltered(cmd.Context(), sessions.ListRequest{Kind: sessions.KindStanding})
		if err != nil {
			return err
		}
		return printRows(cmd.OutOrStdout(), format, rows)
	}
	return cmd
}

func standingSayCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "say NAME --text TEXT", Short: "Type a text into a session and submit it", Args: cobra.ExactArgs(1),
		Long: `Type a text into a running session and submit it, once. With --text - the text is read from standard input.

The receipt is printed: "accepted" if the agent's transcript shows the text, "typed" if the agent cannot confirm it. A text that the
agent would run as a command (usually one that begins with ! or /) gets a name in front, so that it is plain text. Nothing is typed
while the agent asks a question or its input box holds unsent text.`}
	text := addTextFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words, err := text()
		if err != nil {
			return err
		}
		return c.withStandingSession(cmd.Context(), args[0], submitText(cmd, words))
	}
	return cmd
}

// submitText types a text into a session and prints how well it is known to have arrived.
func submitText(cmd *cobra.Command, text string) func(*app, sessions.Ref) error {
	return func(a *app, ref sessions.Ref) error {
		receipt, err := a.core.Submit(cmd.Context(), sessions.SubmitRequest{Ref: ref, Text: text})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", ref, receipt)
		return err
	}
}

// maxTextBytes is the longest text that is typed, in bytes.
const maxTextBytes = 4 << 20

func addFormatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "text", "text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "text" && *format != "json" {
			return usageError(fmt.Errorf("--format must be text or json, not %q", *format))
		}
		return nil
	}
}

func printRows(w io.Writer, format string, rows []sessions.Row) error {
	if format == "json" {
		return printJSON(w, rows)
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	return printLimitations(w, rows)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printTable(w io.Writer, rows []sessions.Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SESSION\tSTATE\tHARNESS\tTMUX\tCONVERSATION\tDETAIL")
	for _, r := range rows {
		state := string(r.State)
		if r.Outcome != "" {
			state += " (" + string(r.Outcome) + ")"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Ref, state, orDash(r.Harness), orDash(r.TmuxTarget), orDash(r.Conversation), orDash(r.Detail))
	}
	return t.Flush()
}

// printLimitations says below a list what its harnesses cannot do.
func printLimitations(w io.Writer, rows []sessions.Row) error {
	said := map[string]bool{}
	for _, r := range rows {
		if len(r.Limitations) == 0 || said[r.Harness] {
			continue
		}
		said[r.Harness] = true
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Harness, strings.Join(r.Limitations, "; ")); err != nil {
			return err
		}
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

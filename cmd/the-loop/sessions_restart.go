package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"the-loop/sessions"
)

func sessionsRestartCommand(c *cli) *cobra.Command {
	var format string
	var all, dry bool
	cmd := &cobra.Command{Use: "restart [REF|NAME ...]", Short: "Restart running sessions with the current env file", Args: cobra.ArbitraryArgs,
		Long: `Restart running sessions so that their agents get the current values of env.file. Each agent is stopped and its conversation is resumed
in the same pane; the tmux session stays, and so do attached clients. Replies from Slack wait meanwhile. Sessions that are not running
or cannot be resumed are skipped. The bot need not run.

The outcome of each session is "verified" (read back from the process), "verified-stale" with the names of the variables that still
differ, "unverified" (the process cannot be read), "skipped" or "failed". The exit code is 1 if a session failed or is stale, and 2 if
there is no env file. Values are never shown.`}
	addFormatFlag(cmd, &format)
	cmd.Flags().BoolVar(&all, "all", false, "all sessions")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print which sessions would be restarted, without restarting them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := parseRestartRequest(args, all, dry)
		if err != nil {
			return err
		}
		return c.withApp(cmd.Context(), c.openApp, func(a *app) error {
			rolled, err := a.core.RollingRestart(cmd.Context(), q)
			if err != nil {
				return err
			}
			return c.printRestartResult(cmd.OutOrStdout(), format, rolled)
		})
	}
	return cmd
}

func parseRestartRequest(args []string, all, dry bool) (sessions.RollingRestartRequest, error) {
	q := sessions.RollingRestartRequest{All: all, DryRun: dry}
	switch {
	case all && len(args) > 0:
		return q, usageError(errors.New("use session names or --all, not both"))
	case !all && len(args) == 0:
		return q, usageError(errors.New("give session names, or use --all"))
	}
	for _, arg := range args {
		ref, err := parseSessionRef(arg)
		if err != nil {
			return q, err
		}
		q.Refs = append(q.Refs, ref)
	}
	return q, nil
}

// parseSessionRef takes a standing session's name, or a ref of any kind.
func parseSessionRef(arg string) (sessions.Ref, error) {
	if sessions.ValidName(arg) {
		return sessions.StandingRef(arg), nil
	}
	return sessions.ParseRef(arg)
}

// printRestartResult prints the rows, and beside the result what is to be said of the env file.
func (c *cli) printRestartResult(w io.Writer, format string, rolled sessions.RestartResult) error {
	for _, note := range rolled.Notes() {
		_, _ = fmt.Fprintln(c.env.err, "the-loop:", note)
	}
	print := printRestartTable
	if format == "json" {
		print = func(w io.Writer, r sessions.RestartResult) error { return printJSON(w, r) }
	}
	if err := print(w, rolled); err != nil {
		return err
	}
	if rolled.Failed() > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func printRestartTable(w io.Writer, rolled sessions.RestartResult) error {
	if len(rolled.Rows) == 0 {
		_, err := fmt.Fprintln(w, "there are no sessions")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SESSION\tTMUX\tOUTCOME\tSTALE\tDETAIL")
	for _, r := range rolled.Rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Ref, orDash(r.TmuxTarget), r.Outcome, orDash(strings.Join(r.Stale, ",")), orDash(r.Detail))
	}
	return t.Flush()
}

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

func (c *cli) sessionsRestart() *cobra.Command {
	var format string
	var all, dry bool
	cmd := &cobra.Command{Use: "restart [REF|NAME ...]", Short: "Restart running sessions onto what the env file declares now", Args: cobra.ArbitraryArgs,
		Long: `Restart running sessions in their tmux panes and conversations, so that their agents hold what env.file declares now. Each agent
is asked to end, and resumed in the same pane: its tmux session and those who are attached to it stay. Replies from Slack
wait meanwhile. What is not running, or cannot be resumed, is skipped and not touched. The bot need not run.

Of each session is said what became of it: "verified" (it was read back from the process), "verified-stale" with the names of
the variables that are not as the file declares them, "unverified" where the process cannot be read, "skipped" or "failed". The
exit code is 1 when one failed or is stale, and 2 when there is no env file to restart onto. No value is ever shown.`}
	formatFlag(cmd, &format)
	cmd.Flags().BoolVar(&all, "all", false, "every session")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say which sessions would be restarted, and restart none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := rollOf(args, all, dry)
		if err != nil {
			return err
		}
		return c.with(cmd.Context(), c.open, func(a *app) error {
			rolled, err := a.core.RollingRestart(cmd.Context(), q)
			if err != nil {
				return err
			}
			return c.printRolled(cmd.OutOrStdout(), format, rolled)
		})
	}
	return cmd
}

func rollOf(args []string, all, dry bool) (sessions.RollRequest, error) {
	q := sessions.RollRequest{All: all, DryRun: dry}
	switch {
	case all && len(args) > 0:
		return q, usage(errors.New("either name sessions or say --all"))
	case !all && len(args) == 0:
		return q, usage(errors.New("name the sessions, or say --all"))
	}
	for _, arg := range args {
		ref, err := anyRef(arg)
		if err != nil {
			return q, err
		}
		q.Refs = append(q.Refs, ref)
	}
	return q, nil
}

// anyRef takes a standing session's name, or a ref of any kind.
func anyRef(arg string) (sessions.Ref, error) {
	if sessions.ValidName(arg) {
		return sessions.StandingRef(arg), nil
	}
	return sessions.ParseRef(arg)
}

// printRolled prints the rows, and beside the result what is to be said of the env file.
func (c *cli) printRolled(w io.Writer, format string, rolled sessions.Rolled) error {
	for _, note := range rolled.Notes() {
		_, _ = fmt.Fprintln(c.env.err, "the-loop:", note)
	}
	print := printRollTable
	if format == "json" {
		print = func(w io.Writer, r sessions.Rolled) error { return printJSON(w, r) }
	}
	if err := print(w, rolled); err != nil {
		return err
	}
	if rolled.Failed() > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func printRollTable(w io.Writer, rolled sessions.Rolled) error {
	if len(rolled.Rows) == 0 {
		_, err := fmt.Fprintln(w, "there is no session")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SESSION\tTMUX\tOUTCOME\tSTALE\tDETAIL")
	for _, r := range rolled.Rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Ref, dash(r.TmuxTarget), r.Outcome, dash(strings.Join(r.Stale, ",")), dash(r.Detail))
	}
	return t.Flush()
}

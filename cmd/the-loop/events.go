package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"the-loop/sessions/eventlog"
)

func eventsCommand(c *cli) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "events", Short: "Print the event log, one JSON object per line", Args: cobra.NoArgs,
		Long: `Print the event log, one JSON object per line: every state change of a session and every reply with its outcome. It never contains
the text of a message or the value of an environment variable.`}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new events")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := c.loadConfig()
		if err != nil {
			return err
		}
		show := func(e eventlog.Entry) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), e.Line)
			return err
		}
		if !follow {
			_, err = eventlog.Read(cmd.Context(), cfg.EventLog.Path, eventlog.Position{}, show)
			return err
		}
		err = eventlog.Follow(cmd.Context(), cfg.EventLog.Path, eventlog.Position{}, show)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	return cmd
}

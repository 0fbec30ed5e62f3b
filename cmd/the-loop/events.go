package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"the-loop/sessions/eventlog"
)

func (c *cli) eventsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "events", Short: "Print the event log, one JSON object per line", Args: cobra.NoArgs,
		Long: `Print the event log, one JSON object a line: every transition of a session, every reply and what became of it. It never
holds the text of a message or a value of the environment.`}
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

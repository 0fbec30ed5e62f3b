package main

import (
	"context"

	"github.com/spf13/cobra"

	"the-loop/sessions/harness/smallagent"
)

func smallAgentCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "small-agent", Short: "Run the small agent that comes with the-loop, in this terminal",
		Hidden: true, DisableFlagParsing: true, RunE: func(cmd *cobra.Command, args []string) error {
			// It handles signals itself: some of its tests ask it to ignore them.
			code := smallagent.Main(context.WithoutCancel(cmd.Context()), args, c.env.in, c.env.outFile, cmd.ErrOrStderr(), c.env.getenv)
			if code != 0 {
				return &exitError{code: code}
			}
			return nil
		}}
}

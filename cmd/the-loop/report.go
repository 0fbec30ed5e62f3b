package main

import (
	"time"

	"github.com/spf13/cobra"

	"the-loop/sessions/harness"
)

// reportCommand is for agents: what they tell about themselves, they tell with it.
func (c *cli) reportCommand() *cobra.Command {
	cmd := group("report", "For agents: what they tell their session's thread", c.reportSay(), c.reportHook())
	return cmd
}

func (c *cli) reportHook() *cobra.Command {
	return &cobra.Command{Use: "hook FILE", Short: "Append what an agent's hook says on standard input to a report file", Args: cobra.ExactArgs(1),
		Hidden: true, Run: func(_ *cobra.Command, args []string) {
			// A hook that fails, or prints, would get in the agent's way: what is lost is evidence, and its absence is safe.
			_ = harness.RunHook(args[0], c.env.in, time.Now())
		}}
}

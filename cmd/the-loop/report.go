package main

import (
	"github.com/spf13/cobra"

	"the-loop/sessions/harness"
)

// reportCommand is for agents: what they tell about themselves, they tell with it.
func reportCommand(c *cli) *cobra.Command {
	cmd := newGroupCommand("report", "For agents: post to their session's thread", reportSayCommand(c), reportHookCommand(c), reportFileCommand(c))
	return cmd
}

func reportHookCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "hook FILE [ASKS]", Short: "Append the input of an agent's hook to a report file",
		Long: `Append what an agent's hook gets on standard input to a report file. For a permission request, wait for the decision on a socket in
the folder ASKS and print it for the agent.`, Args: cobra.RangeArgs(1, 2), Hidden: true,
		Run: func(cmd *cobra.Command, args []string) { harness.RunHook(cmd.Context(), args, c.env.in, c.env.outFile) }}
}

// isHookCommandLine reports a command line that is exactly the one that agents are given for their hooks.
func isHookCommandLine(args []string) bool {
	return len(args) >= 3 && len(args) <= 4 && args[0] == "report" && args[1] == "hook" && args[2] != "" && args[2][0] == '/'
}

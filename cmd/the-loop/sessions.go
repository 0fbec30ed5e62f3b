package main

import "github.com/spf13/cobra"

// sessionsCommand holds the verbs on the sessions of work items, and those on sessions of both kinds.
func sessionsCommand(c *cli) *cobra.Command {
	return newGroupCommand("sessions", "Manage the sessions of work items; restart sessions after the env file changed",
		sessionsRegisterCommand(c), sessionsListCommand(c), sessionsAttachCommand(c), sessionsDeliverCommand(c), sessionsFeedCommand(c), sessionsReplyCommand(c), sessionsCloseCommand(c), sessionsRestartCommand(c))
}

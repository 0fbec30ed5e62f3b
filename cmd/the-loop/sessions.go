package main

import "github.com/spf13/cobra"

// sessionsCommand holds the verbs on the sessions of work items, and those on sessions of both kinds.
func (c *cli) sessionsCommand() *cobra.Command {
	return newGroupCommand("sessions", "Register and talk to the sessions of work items; bring all sessions onto a changed environment",
		c.sessionsRegisterCommand(), c.sessionsListCommand(), c.sessionsAttachCommand(), c.sessionsDeliverCommand(), c.sessionsFeedCommand(), c.sessionsReplyCommand(), c.sessionsCloseCommand(), c.sessionsRestartCommand())
}

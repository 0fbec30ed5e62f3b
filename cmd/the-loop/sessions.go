package main

import "github.com/spf13/cobra"

// sessionsCommand holds the verbs on sessions of every kind.
func (c *cli) sessionsCommand() *cobra.Command {
	return group("sessions", "Bring running sessions onto a changed environment", c.sessionsRestart())
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"the-loop/sessions"
)

func attachCommand(c *cli) *cobra.Command {
	return newAttachCommand(c, "attach NAME", "Show a session's terminal", c.withStandingSession)
}

// newAttachCommand is attach for the kind of session that open opens the core for.
func newAttachCommand(c *cli, use, short string, open func(context.Context, string, func(*app, sessions.Ref) error) error) *cobra.Command {
	var readOnly, printOnly bool
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1),
		Long: `Attach to a session's terminal. Inside the-loop's own tmux server, switch to it instead. Detach with C-b d.`}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "watch only: nothing typed here reaches the agent")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the command instead of running it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return open(cmd.Context(), args[0], func(a *app, ref sessions.Ref) error {
			argv, err := a.core.Attach(cmd.Context(), sessions.AttachRequest{Ref: ref, ReadOnly: readOnly, InsideTmux: c.env.getenv("TMUX") != ""})
			if err != nil {
				return err
			}
			if printOnly {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), shellescape.QuoteCommand(argv))
				return err
			}
			return execProgram(argv)
		})
	}
	return cmd
}

// execProgram becomes the program, so that the terminal is its own.
func execProgram(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	return fmt.Errorf("attach: run %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness"
)

// Exit codes; README.md promises them.
const (
	exitOK       = 0
	exitFailed   = 1 // something failed or is not as it should be
	exitUsage    = 2 // the command line or the configuration was refused
	exitNoBot    = 3 // the bot is not running where the verb needs it
	exitInternal = exitFailed
)

// environment is what a command works with instead of the process's own.
type environment struct {
	in       *os.File
	out, err io.Writer
	outFile  *os.File // the terminal, for the small agent
	getenv   func(string) string
	unsetenv func(string) error
	workdir  string
	home     string
	self     string // this program
	pid      int    // of this process; 0: nobody asks who calls
}

// systemEnvironment is the environment of this process.
func systemEnvironment() environment {
	workdir, _ := os.Getwd() // empty: relative paths are refused where they are used
	home, _ := os.UserHomeDir()
	self, _ := os.Executable()
	return environment{in: os.Stdin, out: os.Stdout, err: os.Stderr, outFile: os.Stdout, getenv: os.Getenv, unsetenv: os.Unsetenv,
		workdir: workdir, home: home, self: self, pid: os.Getpid()}
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error // nil: everything was said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return "failed"
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks an error of the command line or of the configuration.
func usageError(err error) error { return &exitError{exitUsage, err} }

// run runs one command line and returns its exit code. Results go to out, everything else to err.
func run(ctx context.Context, args []string, env environment) int {
	if isHookCommandLine(args) { // an agent waits for it: nothing else is set up
		harness.RunHook(ctx, args[2:], env.in, env.outFile)
		return exitOK
	}
	c := &cli{env: env}
	c.env.out, c.env.err = scrubbingWriter{env.out, c.scrubKnown}, scrubbingWriter{env.err, c.scrubKnown}
	root := rootCommand(c)
	root.SetArgs(args)
	root.SetIn(env.in)
	root.SetOut(c.env.out)
	root.SetErr(c.env.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCodeFor(err)
	var exit *exitError
	if !errors.As(err, &exit) || exit.err != nil {
		_, _ = fmt.Fprintf(c.env.err, "the-loop: %v\n", err)
	}
	return code
}

func exitCodeFor(err error) int {
	var exit *exitError
	var refused *config.Error
	var token *config.TokenError
	var ref *sessions.RefError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &refused), errors.As(err, &token), errors.As(err, &ref),
		errors.Is(err, config.ErrUntrusted), errors.Is(err, config.ErrUnsafeFile), errors.Is(err, config.ErrNotFound),
		errors.Is(err, sessions.ErrEnvFile):
		return exitUsage
	}
	return exitFailed
}

// cli is what the commands share.
type cli struct {
	env           environment
	configPath    string // --config
	tmuxSocket    string // of a tmux server that is not the configured one; empty: the configured one
	fullSizePanes bool   // panes there are as large as everywhere; else as large as the demo's page shows well

	scrubber *scrubber // nil as long as there is no configuration

	detached      bool // the bot runs without a terminal
	tokensOnStdin bool // its tokens come on standard input
}

// newRootCommand is the command with all its subcommands.
func newRootCommand(env environment) *cobra.Command { return rootCommand(&cli{env: env}) }

func rootCommand(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "the-loop",
		Short: "Keep AI coding agents running in tmux and talk to them from Slack threads",
		Long: `the-loop keeps AI coding agents running in tmux. Each session announces itself in a Slack channel; what an
authorized member replies in its thread is typed into the agent's terminal, once, and a reaction shows whether it arrived.

Exit codes: 0 success, 1 failed or unhealthy, 2 invalid usage or configuration, 3 the bot is not running but the command needs it.`,
		SilenceErrors: true, SilenceUsage: true, Version: version(), Args: cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.checkCaller(cmd) },
	}
	root.SetVersionTemplate("the-loop {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err) })
	root.PersistentFlags().StringVar(&c.configPath, "config", "", "use this configuration `FILE` instead of searching for one")
	root.AddCommand(startCommand(c), stopCommand(c), restartCommand(c), statusCommand(c), serveCommand(c), standingCommand(c), sessionsCommand(c), attachCommand(c), eventsCommand(c),
		configCommand(c), slackCommand(c), allowAgents(demoCommand(c)), allowAgents(versionCommand(c)), allowAgents(smallAgentCommand(c)),
		allowAgents(reportCommand(c)))
	for _, cmd := range allCommands(root) {
		wrapArgsErrors(cmd)
	}
	return root
}

func allCommands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, allCommands(sub)...)
	}
	return all
}

// wrapArgsErrors makes wrong arguments an error of usage, with the words of the check.
func wrapArgsErrors(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		}
		return nil
	}
}

// newGroupCommand is a command that only holds others.
func newGroupCommand(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(12, len(s.Value))]
		}
	}
	if v == "" || v == "(devel)" {
		v = "development"
	}
	return v + " " + info.GoVersion
}

func versionCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, Run: func(cmd *cobra.Command, _ []string) {
		_, _ = fmt.Fprintln(cmd.OutOrStdout(), "the-loop", version())
	}}
}

// abs is a path from the working folder.
func (e environment) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.workdir, path)
}

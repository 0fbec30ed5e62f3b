package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"the-loop/sessions"
)

// lifecycleResult is what start and stop did.
type lifecycleResult struct {
	OK       bool           `json:"ok"`
	Config   string         `json:"config"`
	Root     string         `json:"root"`
	Services []service      `json:"services"`
	Disabled bool           `json:"sessionsDisabled"` // standingSessions.enabled is false
	Problem  string         `json:"problem,omitempty"`
	Sessions []sessions.Row `json:"sessions"`
}

func (a *app) newLifecycleResult() lifecycleResult {
	return lifecycleResult{Config: a.cfg().Path, Root: a.cfg().StateRoot, Services: []service{}, Sessions: []sessions.Row{}}
}

// addSessions takes in what became of the sessions.
func (r *lifecycleResult) addSessions(all sessions.BatchResult, err error) {
	r.Disabled = all.Disabled
	if all.Rows != nil {
		r.Sessions = all.Rows
	}
	if err != nil {
		r.Problem = err.Error()
	}
	r.OK = err == nil && all.Failed() == 0
	for _, s := range r.Services {
		r.OK = r.OK && s.Outcome != sessions.OutcomeFailed
	}
}

func (r lifecycleResult) write(w io.Writer, format string) error {
	if format == "json" {
		if err := printJSON(w, r); err != nil {
			return err
		}
	} else if err := r.writeText(w); err != nil {
		return err
	}
	if !r.OK {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (r lifecycleResult) writeText(w io.Writer) error {
	for _, s := range r.Services {
		if _, err := fmt.Fprintf(w, "%-9s %s\n", s.Name, s.describe()); err != nil {
			return err
		}
	}
	var err error
	switch {
	case r.Problem != "":
		_, err = fmt.Fprintf(w, "sessions  %s\n", r.Problem)
	case r.Disabled:
		_, err = fmt.Fprintln(w, "sessions  "+sessionsDisabledText)
	case len(r.Sessions) == 0:
		_, err = fmt.Fprintln(w, "sessions  none")
	default:
		err = printTable(w, r.Sessions)
	}
	return err
}

const sessionsDisabledText = "disabled (standingSessions.enabled is false)"

func startCommand(c *cli) *cobra.Command {
	var format string
	var foreground bool
	cmd := &cobra.Command{Use: "start", Short: "Start the bot and the sessions that start automatically", Args: cobra.NoArgs,
		Long: `If channels.slack.enabled is true, start the bot in the background and wait until it is ready. Then start the sessions that are declared
with autoStart or were created without --no-auto-start. What is running already is not touched. If the bot cannot be started, the
sessions are started all the same. The exit code is 1 if something could not be started.`}
	addFormatFlag(cmd, &format)
	cmd.Flags().BoolVar(&foreground, "foreground", false, "run the bot in this process and stay, for a service manager")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if foreground {
			_ = setUndumpable() // before anything is read; where it cannot be, the bot says so
		}
		return c.withApp(cmd.Context(), c.openApp, func(a *app) error {
			if foreground {
				return c.runForeground(cmd, a, format)
			}
			return c.start(cmd.Context(), a).write(cmd.OutOrStdout(), format)
		})
	}
	return cmd
}

func (c *cli) start(ctx context.Context, a *app) lifecycleResult {
	r := a.newLifecycleResult()
	r.Services = append(r.Services, c.startBot(ctx, a))
	r.addSessions(a.core.StartAll(ctx))
	return r
}

// runForeground runs the bot in this process and starts the sessions as soon as it is ready. Without Slack it only stays.
func (c *cli) runForeground(cmd *cobra.Command, a *app, format string) error {
	sessionsUp := func() {
		r := a.newLifecycleResult()
		r.addSessions(a.core.StartAll(cmd.Context()))
		_ = r.write(cmd.OutOrStdout(), format) // what failed is in the rows; the bot stays
	}
	if !a.cfg().Slack.Enabled {
		sessionsUp()
		<-cmd.Context().Done()
		return nil
	}
	var once sync.Once
	var wg sync.WaitGroup
	defer wg.Wait()
	err := c.serve(cmd.Context(), func(line string) {
		_, _ = fmt.Fprintln(cmd.OutOrStdout(), line)
		once.Do(func() { wg.Go(sessionsUp) }) // its first line says that it is ready
	})
	once.Do(sessionsUp) // a bot that cannot start keeps no session from starting
	return err
}

func stopCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "stop", Short: "Stop all standing sessions, then the bot", Args: cobra.NoArgs,
		Long: `Stop all recorded standing sessions, even if they are no longer declared or enabled, then the bot. Conversations are kept and resumed
at the next start. Sessions of work items keep running; see the-loop sessions list. This works even if the configuration is invalid.`}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withApp(cmd.Context(), c.openAppForStop, func(a *app) error {
			return a.stop(cmd.Context()).write(cmd.OutOrStdout(), format)
		})
	}
	return cmd
}

func (a *app) stop(ctx context.Context) lifecycleResult {
	r := a.newLifecycleResult()
	all, err := a.core.StopAll(ctx)
	r.Services = append(r.Services, a.stopBot(ctx))
	r.addSessions(all, err)
	return r
}

func restartCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "restart", Short: "Restart the bot and all standing sessions; conversations continue", Args: cobra.NoArgs}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withApp(cmd.Context(), c.openApp, func(a *app) error {
			if down := a.stop(cmd.Context()); !down.OK {
				return down.write(cmd.OutOrStdout(), format)
			}
			return c.start(cmd.Context(), a).write(cmd.OutOrStdout(), format)
		})
	}
	return cmd
}

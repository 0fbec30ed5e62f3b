package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"the-loop/sessions"
	"the-loop/sessions/registry"
)

// What counts as silence. Slack pings an open connection about every ten seconds, and the bot says how it is every five and when that changes.
const (
	silentAfter = 75 * time.Second
	staleAfter  = 20 * time.Second
)

// status is what there is to say of everything at one moment.
type status struct {
	OK       bool           `json:"ok"`
	Config   string         `json:"config"`
	Root     string         `json:"root"`
	Bot      botStatus      `json:"bot"`
	Services []service      `json:"services"`
	Disabled bool           `json:"sessionsDisabled"` // standingSessions.enabled is false
	Sessions []sessions.Row `json:"sessions"`

	Environment sessions.Drift `json:"sessionEnvironment"` // whether the running sessions hold what the env file declares
}

// botStatus is how the bot is.
type botStatus struct {
	Enabled  bool              `json:"wanted"` // channels.slack.enabled
	Running  bool              `json:"running"`
	Problems []string          `json:"problems"`
	State    registry.BotState `json:"state"`

	LastError string `json:"lastWords,omitempty"` // why the last one in the background ended

	diskFull error // the disk of the state takes nothing, not even how the bot is
}

func statusCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "status", Short: "Show whether the bot and the sessions are healthy", Args: cobra.NoArgs,
		Long: `Show whether the bot and the sessions are healthy. The exit code is 0 if they are, and 1 if Slack is enabled and the bot is not running,
not connected or receives nothing, or if a session that should be running is not.`}
	addFormatFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := c.openApp()
		if err != nil {
			return err
		}
		defer a.close()
		s, err := a.status(cmd.Context())
		if err != nil {
			return err
		}
		if format == "json" {
			err = printJSON(cmd.OutOrStdout(), s)
		} else {
			err = s.writeText(cmd.OutOrStdout())
		}
		if err == nil && !s.OK {
			return &exitError{code: exitFailed}
		}
		return err
	}
	return cmd
}

func (a *app) status(ctx context.Context) (status, error) {
	cfg := a.cfg()
	s := status{Config: cfg.Path, Root: cfg.StateRoot, Disabled: !cfg.Standing.Enabled}
	survey, err := a.core.Survey(ctx)
	if err != nil {
		return s, err
	}
	s.Sessions, s.Environment = survey.Rows, survey.Drift
	state, alive, err := a.registry.BotRunning()
	s.Bot = botStatus{Enabled: cfg.Slack.Enabled, Running: alive, State: state, Problems: []string{}}
	if !alive {
		s.Bot.LastError = lastLine(botErrorPath(cfg.StateRoot))
	}
	if err != nil {
		s.Bot.Problems = append(s.Bot.Problems, err.Error())
	}
	if s.Bot.diskFull = checkDiskSpace(cfg.StateRoot); s.Bot.diskFull != nil {
		s.Bot.Problems = append(s.Bot.Problems, diskFullText(cfg.StateRoot, s.Bot.diskFull))
	}
	s.Bot.Problems = append(s.Bot.Problems, botProblems(s.Bot, time.Now())...)
	s.Services = []service{s.Bot.toService()}
	// What the environment differs in changes nothing of OK: a rotation is the operator's to finish.
	s.OK = len(s.Bot.Problems) == 0 && !slices.ContainsFunc(s.Sessions, isUnhealthy)
	return s, nil
}

// isUnhealthy reports a session that is not as it should be: a start would have started it and it does not run, or its record
// cannot be read.
func isUnhealthy(r sessions.Row) bool {
	return r.Expected && !r.Running || r.State == sessions.StateBroken
}

func (b botStatus) toService() service {
	s := service{Name: serviceBot, Enabled: b.Enabled, Running: b.Running, Detail: strings.Join(b.Problems, "; ")}
	if b.Running {
		s.PID = b.State.PID
	}
	return s
}

// isStale reports a bot that has its lock and says nothing: what it said last may not be so any more.
func (b botStatus) isStale(now time.Time) bool { return now.Sub(b.State.Written) > staleAfter }

// botProblems are what is not as it should be with the bot, each with what to do.
func botProblems(b botStatus, now time.Time) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	s := b.State
	switch {
	case !b.Running && b.Enabled && b.LastError != "":
		say("the bot exited: %s; fix that and run the-loop start", b.LastError)
		return all
	case !b.Running && b.Enabled:
		say("the bot is not running: run the-loop start")
		return all
	case !b.Running:
		return nil
	case b.isStale(now) && b.diskFull != nil: // what it said last is not how it is
		return all
	case b.isStale(now):
		say("the bot has not updated its status for %s and may hang: see logs/bot.log", now.Sub(s.Written).Round(time.Second))
	case !s.Connected:
		say("the bot is not connected to Slack: replies wait until it is; see logs/bot.log")
	case now.Sub(s.LastFrame) > silentAfter:
		say("the bot is connected but has received nothing for %s: see logs/bot.log", now.Sub(s.LastFrame).Round(time.Second))
	}
	if s.Connections > 1 {
		say("%d connections are open on this Slack app: another bot receives some of its events; stop it, or give it its own app", s.Connections)
	}
	if s.ConfigError != "" {
		say("the configuration is invalid, so requests are refused and replies wait until it is fixed: %s", s.ConfigError)
	}
	if s.Problem != "" {
		say("%s", s.Problem)
	}
	return all
}

func (s status) writeText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "config    %s\nstate     %s\nbot       %s\n", s.Config, s.Root, s.Bot.describe())
	for _, p := range s.Bot.Problems {
		fmt.Fprintf(&b, "          ! %s\n", p)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if s.Disabled {
		if _, err := fmt.Fprintln(w, "sessions  "+sessionsDisabledText); err != nil {
			return err
		}
	}
	if len(s.Sessions) == 0 {
		_, err := fmt.Fprintln(w, "sessions  none: declare one under standingSessions in the configuration, or run the-loop standing create NAME")
		return err
	}
	if err := printTable(w, s.Sessions); err != nil {
		return err
	}
	for _, note := range s.Environment.Notes() {
		if _, err := fmt.Fprintf(w, "          ! %s\n", note); err != nil {
			return err
		}
	}
	if line := s.Environment.StatusLine(); line != "" {
		_, err := fmt.Fprintln(w, line)
		return err
	}
	return nil
}

func (b botStatus) describe() string {
	switch {
	case !b.Running && !b.Enabled:
		return "disabled (channels.slack.enabled is false)"
	case !b.Running:
		return "not running"
	case b.isStale(time.Now()):
		return fmt.Sprintf("process %d, no status update for %s", b.State.PID, time.Since(b.State.Written).Round(time.Second))
	case !b.State.Connected:
		return fmt.Sprintf("process %d, not connected", b.State.PID)
	}
	return fmt.Sprintf("process %d, connected, %d threads, last event %s ago", b.State.PID, b.State.Bound,
		time.Since(b.State.LastFrame).Round(time.Second))
}

package config

import (
	"errors"
	"fmt"
	"path/filepath"

	"the-loop/bot"
	"the-loop/bot/command"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/envstate"
	"the-loop/sessions/eventlog"
	"the-loop/sessions/harness"
	"the-loop/threads"
	"the-loop/threads/binding"
	"the-loop/threads/relay"
)

// chatService is the name of the chat service that is enabled; empty: none is.
func (c *Config) chatService() string {
	if c.Slack.Enabled {
		return "Slack"
	}
	return ""
}

// SessionsConfig is what the core asks of the configuration. own are the variables that every pane gets whatever the env file
// says. getenv reads our own environment, for env.pass.
func (c *Config) SessionsConfig(own map[string]string, getenv func(string) string) core.Config {
	t := c.Routing.Tmux
	s := core.Config{Enabled: c.Standing.Enabled, RemainOnExit: t.RemainOnExit, Resume: t.ResumeOnRespawn,
		Probe: t.ResumeProbe, KillGrace: t.HarnessKillGrace, Env: func() (sessions.EnvFile, error) { return c.readEnv(getenv) }, OwnEnv: own, ChatService: c.chatService(),
		Defaults: sessions.Defaults{Harness: c.Routing.DefaultHarness, HarnessArgs: c.Routing.HarnessArgs, Cwd: c.Routing.SpawnWorkdir}}
	for _, d := range c.Standing.Sessions {
		s.Declared = append(s.Declared, d.definition())
	}
	return s
}

func (s Session) definition() sessions.Definition {
	return sessions.Definition{Name: s.Name, Description: s.Description, Source: sessions.SourceDeclared, Harness: s.Harness,
		HarnessArgs: s.HarnessArgs, Cwd: s.Cwd, Prompt: s.Prompt, PromptFile: s.PromptFile, AutoStart: s.AutoStart,
		Chat: sessions.ChatDefinition{Enabled: s.Slack.Enabled, Channel: s.Slack.Channel}}
}

// readEnv returns what env.file and env.pass declare now, less what no pane may get: the names that tmux owns, and the names of
// our own tokens and secrets. A name in both has the value of the file.
func (c *Config) readEnv(getenv func(string) string) (sessions.EnvFile, error) {
	file, err := envstate.ReadFile(c.EnvFile)
	if err != nil && !errors.Is(err, envstate.ErrNotConfigured) {
		return sessions.EnvFile{}, fmt.Errorf("env.file: %w", err)
	}
	values := file.Values()
	passed := c.PassedEnv(getenv)
	var unset []string
	for _, name := range c.EnvPass {
		if _, declared := values[name]; declared {
			continue
		}
		if value, set := passed[name]; set {
			values[name] = value
		} else {
			unset = append(unset, name)
		}
	}
	pass, refused := envstate.Split(values, c.SecretNames()...)
	return sessions.EnvFile{Configured: c.EnvFile != "" || len(c.EnvPass) > 0, Values: pass, Refused: refused, Malformed: file.Malformed,
		Warning: file.Warning, Unset: unset}, nil
}

// PassedEnv returns the variables of env.pass that are set in our own environment, which getenv reads. An empty one counts as not
// set.
func (c *Config) PassedEnv(getenv func(string) string) envstate.Values {
	values := envstate.Values{}
	for _, name := range c.EnvPass {
		if value := getenv(name); value != "" {
			values[name] = value
		}
	}
	return values
}

// SecretNames are the variables that hold our own tokens and secrets.
func (c *Config) SecretNames() []string {
	return []string{c.Slack.BotTokenEnv, c.Slack.AppTokenEnv, c.GitHubWebhook.SecretEnv}
}

// HarnessSet holds the built-in harnesses and those that the configuration describes.
func (c *Config) HarnessSet(builtin ...sessions.Harness) harness.Set {
	all := builtin
	for name, h := range c.Harnesses {
		if h.Args == nil {
			continue // it replaces the binary of a built-in one
		}
		t := harness.Template{Title: name, Binary: h.Binary, Args: h.Args, ResumeArgs: h.ResumeArgs,
			CommandPrefixes: h.CommandPrefixes, SubmitDelay: h.SubmitDelay}
		if h.UsesReports {
			all = append(all, harness.ReportingTemplate{Template: t, ReportDir: filepath.Join(c.StateRoot, "reports")})
		} else {
			all = append(all, t)
		}
	}
	return harness.NewSet(all...)
}

// EventLogOptions is how the event log is kept.
func (c *Config) EventLogOptions() eventlog.Options {
	return eventlog.Options{MaxBytes: c.EventLog.MaxBytes}
}

// BotConfig is what the Slack surface asks of the configuration. suspended says that the file as it is now does not validate.
func (c *Config) BotConfig(suspended bool) bot.Config {
	r := c.Slack.Receipts
	return bot.Config{Channel: c.Slack.Channel, AllowShared: c.Slack.AllowSharedChannels, Users: c.Slack.AuthorizedUsers,
		Create:         command.Limits{CwdRoots: c.Slack.Create.CwdRoots, Harnesses: c.Slack.Create.Harnesses},
		DefaultHarness: c.Routing.DefaultHarness, DefaultCwd: c.Routing.SpawnWorkdir,
		Suspended: suspended, Settings: threads.Settings{MaxAge: c.Slack.CatchUpMaxAge, Answers: relay.Answers(c.Slack.Replies), MaxFile: c.Slack.FileMaxBytes, Emoji: map[binding.Mark]string{
			binding.MarkReceived: r.Received, binding.MarkTyped: r.Typed, binding.MarkAccepted: r.Accepted,
			binding.MarkHeld: r.Held, binding.MarkFailed: r.Failed, binding.MarkInDoubt: r.InDoubt}}}
}

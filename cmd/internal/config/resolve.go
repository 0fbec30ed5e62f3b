package config

import (
	"path/filepath"
	"strings"
	"time"
)

// resolver turns what is written into what it means; what it cannot is recorded in the document.
type resolver struct {
	*document
	home string
}

func (l Loader) resolve(d *document, raw fileRoot) *Config {
	r := &resolver{document: d, home: l.Home}
	dir := filepath.Dir(d.file)
	c := &Config{
		Path:          d.file,
		StateRoot:     r.resolvePath("state.root", raw.State.Root, dir),
		EnvFile:       r.resolveOptionalPath("env.file", raw.Env.File, dir),
		EnvPass:       raw.Env.Pass,
		Routing:       r.resolveRouting(raw.Routing, l.Workdir),
		Harnesses:     r.resolveHarnesses(raw.Harnesses),
		Slack:         r.resolveSlack(raw.Channels.Slack),
		Service:       Service{raw.Service.Enabled, raw.Service.Host, raw.Service.Port, raw.Service.Exposed, raw.Service.MCP.Enabled},
		GitHubWebhook: GitHubWebhook(raw.Webhooks.GhWebhook),
		locations:     d.locations,
		harnessUses:   findHarnessUses(raw),
	}
	c.EventLog = EventLog{Path: r.resolveOptionalPath("eventLog.path", raw.EventLog.Path, dir), MaxBytes: raw.EventLog.MaxSizeMB << 20}
	if c.EventLog.Path == "" {
		c.EventLog.Path = filepath.Join(c.StateRoot, "logs", "events.jsonl")
	}
	c.Standing.Enabled = raw.StandingSessions.Enabled
	for i, s := range raw.StandingSessions.Sessions {
		c.Standing.Sessions = append(c.Standing.Sessions, r.resolveSession(indexKey("standingSessions.sessions", i), s, c))
	}
	return c
}

// resolvePath makes a path absolute: ~/ is our home, anything relative starts at base.
func (r *resolver) resolvePath(key, path, base string) string {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if r.home == "" {
			r.addProblem(key, "starts at ~, but there is no home folder — set HOME, or write an absolute path")
		}
		return filepath.Join(r.home, path[1:])
	case strings.HasPrefix(path, "~"):
		r.addProblem(key, "starts at another user's home — write an absolute path")
	case !filepath.IsAbs(path):
		return filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

func (r *resolver) resolveOptionalPath(key, path, base string) string {
	if path == "" {
		return ""
	}
	return r.resolvePath(key, path, base)
}

func (r *resolver) resolveRouting(raw fileRouting, workdir string) Routing {
	return Routing{
		DefaultHarness:  raw.DefaultHarness,
		HarnessArgs:     raw.HarnessArgs,
		SpawnWorkdir:    r.resolvePath("routing.spawnWorkdir", raw.SpawnWorkdir, workdir),
		AuthorizedUsers: raw.AuthorizedUsers,
		HarnessTrust:    HarnessTrust(raw.HarnessTrust),
		Tmux: Tmux{
			SocketName:       raw.Tmux.SocketName,
			RemainOnExit:     raw.Tmux.RemainOnExit,
			ResumeOnRespawn:  raw.Tmux.ResumeOnRespawn,
			ResumeProbe:      seconds(raw.Tmux.ResumeProbeSeconds),
			HarnessKillGrace: seconds(raw.Tmux.HarnessKillGraceSeconds),
		},
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *resolver) resolveHarnesses(raw map[string]fileHarness) map[string]Harness {
	all := make(map[string]Harness, len(raw))
	for name, h := range raw {
		binary := h.Binary
		if strings.Contains(binary, "/") {
			binary = r.resolvePath(joinKey("harnesses", name)+".binary", binary, "")
		}
		all[name] = Harness{Binary: binary, Args: h.Args, ResumeArgs: h.ResumeArgs, CommandPrefixes: h.CommandPrefixes,
			SubmitDelay: time.Duration(h.SubmitDelayMs) * time.Millisecond, UsesReports: h.Reports == "program"}
	}
	return all
}

func (r *resolver) resolveSlack(raw fileSlack) Slack {
	url := raw.APIURL
	if !strings.HasSuffix(url, "/") {
		url += "/"
	}
	roots := make([]string, len(raw.Create.CwdRoots))
	for i, root := range raw.Create.CwdRoots {
		roots[i] = r.resolvePath(indexKey("channels.slack.create.cwdRoots", i), root, "")
	}
	return Slack{
		Enabled:             raw.Enabled,
		BotTokenEnv:         raw.BotTokenEnv,
		AppTokenEnv:         raw.AppTokenEnv,
		Channel:             raw.Channel,
		AuthorizedUsers:     raw.AuthorizedUsers,
		AllowSharedChannels: raw.AllowSharedChannels,
		Command:             raw.Command,
		APIURL:              url,
		CatchUpMaxAge:       time.Duration(raw.CatchUp.MaxAgeSeconds) * time.Second,
		Create:              CreateLimits{CwdRoots: roots, Harnesses: raw.Create.Harnesses},
		FileMaxBytes:        raw.Files.MaxMB << 20,
		Replies:             raw.Replies,
		Receipts:            Receipts(raw.Receipts),
	}
}

// resolveSession merges an entry with what it inherits. Absent inherits; empty does not.
func (r *resolver) resolveSession(key string, raw fileSession, c *Config) Session {
	s := Session{
		Name:        raw.Name,
		Description: raw.Description,
		Harness:     c.Routing.DefaultHarness,
		HarnessArgs: raw.HarnessArgs,
		Cwd:         c.Routing.SpawnWorkdir,
		AutoStart:   raw.AutoStart,
		Slack:       SessionSlack{raw.Slack.Enabled, raw.Slack.Channel},
		Inherited:   Inherited{raw.Harness == nil, raw.HarnessArgs == nil, raw.Cwd == nil, raw.Slack.Channel == ""},
		Position:    Position{File: r.file, Line: findLocation(r.locations, key).line, Key: key},
	}
	if raw.Harness != nil {
		s.Harness = *raw.Harness
	}
	if s.Inherited.HarnessArgs {
		s.HarnessArgs = append([]string{}, c.Routing.HarnessArgs[s.Harness]...)
	}
	if raw.Cwd != nil {
		s.Cwd = r.resolvePath(key+".cwd", *raw.Cwd, c.Routing.SpawnWorkdir)
	}
	if s.Inherited.Channel {
		s.Slack.Channel = c.Slack.Channel
	}
	r.resolvePrompt(key, raw, &s)
	return s
}

func (r *resolver) resolvePrompt(key string, raw fileSession, s *Session) {
	if raw.Prompt != nil && raw.PromptFile != nil {
		r.addProblem(key+".promptFile", "cannot be used together with prompt (line %d) — keep one of the two",
			findLocation(r.locations, key+".prompt").line)
	}
	if raw.Prompt != nil {
		s.Prompt = *raw.Prompt
	}
	if raw.PromptFile != nil {
		s.PromptFile = r.resolvePath(key+".promptFile", *raw.PromptFile, filepath.Dir(r.file))
	}
}

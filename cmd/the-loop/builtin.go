package main

import (
	"path/filepath"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness"
)

// builtins are the harnesses that need no description in the configuration, which may name another binary for each. self
// is a path of this program that stays, home the operator's home folder.
func builtins(cfg *config.Config, self, home string) []sessions.Harness {
	trust := cfg.Routing.HarnessTrust
	return []sessions.Harness{
		harness.SmallAgent{Argv: []string{self, "small-agent"}, Dir: filepath.Join(cfg.StateRoot, "small-agent")},
		harness.Claude{Binary: cfg.Harnesses[harness.ClaudeName].Binary, Dir: filepath.Join(cfg.StateRoot, "run", "claude"),
			Reports: filepath.Join(cfg.StateRoot, "reports"), Hook: []string{self, "report", "hook"},
			Trust: trust.Enabled, Bypass: harness.Bypass(trust.AcceptBypassPermissions), Home: home},
		harness.Codex{Binary: cfg.Harnesses[harness.CodexName].Binary, Home: home},
		harness.Gemini{Binary: cfg.Harnesses[harness.GeminiName].Binary, Home: home},
	}
}

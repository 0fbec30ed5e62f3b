package main

import (
	"path/filepath"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/report"
)

// builtinHarnesses are the harnesses that need no description in the configuration, which may name another binary for each. self
// is a path of this program that stays, home the operator's home folder; index remembers the reports.
func builtinHarnesses(cfg *config.Config, self, home string, index *report.Index) []sessions.Harness {
	trust := cfg.Routing.HarnessTrust
	binaries := map[string]string{}
	for name, h := range cfg.Harnesses {
		binaries[name] = h.Binary
	}
	reports, asks, hook := filepath.Join(cfg.StateRoot, "reports"), filepath.Join(cfg.StateRoot, "run", "ask"), []string{self, "report", "hook"}
	return harness.BuiltIns(harness.Options{SettingsDir: filepath.Join(cfg.StateRoot, "run", "claude"), ReportDir: reports, Hook: hook, PermissionDir: asks,
		AcceptTrust: trust.Enabled, Bypass: trust.AcceptBypassPermissions, Home: home, Binaries: binaries, Index: index,
		SmallAgent: []string{self, "small-agent"}, SmallAgentDir: filepath.Join(cfg.StateRoot, "small-agent")})
}

// builtinHarnessNames are their names.
func builtinHarnessNames() (names []string) {
	for _, h := range builtinHarnesses(&config.Config{}, "", "", nil) {
		names = append(names, h.Name())
	}
	return names
}

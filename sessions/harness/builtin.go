package harness

import (
	"the-loop/sessions"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/opencode"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/smallagent"
)

// Options are what the built-in harnesses are made of.
type Options struct {
	SettingsDir   string            // absolute; ours: what is given to agents at their start, e.g. <root>/run/claude
	ReportDir     string            // absolute; the folder of what they report, e.g. <root>/reports
	Hook          []string          // the program that calls [RunHook], with its arguments before the report file's path
	PermissionDir string            // absolute; the folder of the sockets of hooks that wait, e.g. <root>/run/ask
	AcceptTrust   bool              // routing.harnessTrust.enabled
	Bypass        string            // routing.harnessTrust.acceptBypassPermissions
	Home          string            // of the agents, where nothing else says; empty: this process's
	Binaries      map[string]string // harnesses.<built-in>.binary
	Index         *report.Index     // of the reports; nil: they are read anew each time
	SmallAgent    []string          // the program that is the small agent, with its arguments
	SmallAgentDir string            // absolute; where the small agent's conversations are
}

// BuiltIns are the agent programs that are known. That one is among them does not mean that it is installed: a missing
// program is refused before anything is started.
func BuiltIns(o Options) []sessions.Harness {
	return []sessions.Harness{
		claude.Harness{Binary: o.Binaries[claude.Name], SettingsDir: o.SettingsDir, ReportDir: o.ReportDir, Hook: o.Hook, PermissionDir: o.PermissionDir,
			AcceptTrust: o.AcceptTrust, Bypass: claude.BypassPolicy(o.Bypass), Home: o.Home, Index: o.Index},
		codex.Harness{Binary: o.Binaries[codex.Name], Home: o.Home},
		gemini.Harness{Binary: o.Binaries[gemini.Name], Home: o.Home},
		opencode.Harness{Binary: o.Binaries[opencode.Name]},
		smallagent.Harness{Argv: o.SmallAgent, Dir: o.SmallAgentDir, Hook: o.Hook, ReportDir: o.ReportDir, PermissionDir: o.PermissionDir},
		Cursor{},
	}
}

// AddSubmitKey adds a submit key that cannot answer a dialog to the key bindings of Claude Code, and reports whether it was missing.
func AddSubmitKey(home string) (added bool, err error) {
	return claude.Harness{Home: home}.AddChatKey(nil)
}

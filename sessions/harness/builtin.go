package harness

import (
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// acceptTimeout is how long a text is waited for in an agent's record before the submit key is given again. They show it in
// a fraction of a second; a machine under load was seen to need three.
const acceptTimeout = 4 * time.Second

// Options are what the built-in harnesses are made of.
type Options struct {
	SettingsDir   string            // absolute; ours: what is given to agents at their start, e.g. <root>/run/claude
	ReportDir     string            // absolute; the folder of what they report, e.g. <root>/reports
	Hook          []string          // the program that runs a [Hook], with what comes before the report file's path
	PermissionDir string            // absolute; the folder of the sockets of hooks that wait, e.g. <root>/run/ask
	AcceptTrust   bool              // routing.harnessTrust.enabled
	Bypass        BypassPolicy      // routing.harnessTrust.acceptBypassPermissions
	Home          string            // of the agents, where nothing else says; empty: this process's
	Binaries      map[string]string // harnesses.<built-in>.binary
	Index         *report.Index     // of the reports; nil: they are read anew each time
}

// BuiltIns are the agent programs that are known. That one is among them does not mean that it is installed: a missing
// program is refused before anything is started.
func BuiltIns(o Options) []sessions.Harness {
	return []sessions.Harness{
		Claude{Binary: o.Binaries[ClaudeName], SettingsDir: o.SettingsDir, ReportDir: o.ReportDir, Hook: o.Hook, PermissionDir: o.PermissionDir, AcceptTrust: o.AcceptTrust, Bypass: o.Bypass, Home: o.Home, Index: o.Index},
		Codex{Binary: o.Binaries[CodexName], Home: o.Home},
		Gemini{Binary: o.Binaries[GeminiName], Home: o.Home},
		OpenCode{Binary: o.Binaries[OpenCodeName]},
		Cursor{},
	}
}

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// ClaudeName is Claude Code's name in the configuration.
const ClaudeName = "claude"

// Claude is Claude Code (measured with 2.1.197). Its transcript proves what it took, hooks that are given at spawn tell of
// conversation ids that change, and its screen can be read. [Claude.Prepare] must run before each start: it writes the
// settings file that [Claude.HandleCommand] names.
type Claude struct {
	Binary        string       // empty: claude, from the pane's PATH
	SettingsDir   string       // absolute; ours: the settings files of the sessions
	ReportDir     string       // absolute; the folder of the report files
	Hook          []string     // the program that runs a [Hook], with what comes before the report file's path; empty: no hooks
	PermissionDir string       // absolute; the folder of the sockets of hooks that wait, which follows the path; empty: questions are not asked here
	AcceptTrust   bool         // accept the folder's trust dialog: the operator wants unattended starts (routing.harnessTrust.enabled)
	Bypass        BypassPolicy // empty: BypassAuto
	Home          string       // of the agents, where a launch does not say; empty: this process's

	Index *report.Index // of the reports; nil: they are read anew each time
}

// BypassPolicy says when the warning of Claude Code's mode without permissions is answered for the operator.
type BypassPolicy string

// The values of routing.harnessTrust.acceptBypassPermissions.
const (
	BypassAuto   BypassPolicy = "auto" // when the session's arguments ask for that mode
	BypassAlways BypassPolicy = "always"
	BypassNever  BypassPolicy = "never"
)

// Name is [ClaudeName].
func (c Claude) Name() string { return ClaudeName }

// Capabilities are those of the program: a leading "!" runs a shell command without asking, "/" is a command, and a few words
// alone end it. "#", "&" and "?" begin plain text when they are pasted (2.1.197).
func (c Claude) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{ParseScreen: c.ParseScreen, Input: c, ReadTranscript: c.ReadTranscript, TrackConversation: c.TrackConversation, Prepare: c.Prepare, SubmitKey: c.SubmitKey, Normalize: c.Normalize, Quote: c.Quote,
		Submit: "\r", CommandPrefixes: []string{"!", "/"}, Interrupt: "\x1b", ClearLine: "\x15", CanResume: true,
		MoveKeys: moveKeys(), DenyKeys: denyKeys(), ModeKeys: []string{sessions.KeyBackTab},
		ReportsPermissions: len(c.Hook) > 0 && c.PermissionDir != "", AcceptTimeout: acceptTimeout, Trailer: " ", CommandWords: []string{"exit", "quit", ":q", ":q!", ":wq", ":wq!"}}
}

// Command gives the conversation its id, or resumes it. The id's shape is checked: with anything else --resume opens a
// picker that never ends. "--" goes before the prompt, because flags such as --allowedTools take all words that follow.
func (c Claude) Command(l sessions.Launch) (sessions.Command, error) {
	if !sessions.ValidConversation(l.Conversation) {
		return sessions.Command{}, fmt.Errorf("claude: %q is no id of a conversation", l.Conversation)
	}
	args, _, err := extractSettingsArg(l.Args)
	if err != nil {
		return sessions.Command{}, err
	}
	flag := "--session-id"
	if l.Resume {
		flag = "--resume"
	}
	argv := []string{orDefault(c.Binary, "claude"), flag, l.Conversation}
	if l.Session != "" { // otherwise it is only asked what would run
		settings, err := c.settingsPath(l.Session)
		if err != nil {
			return sessions.Command{}, err
		}
		argv = append(argv, "--settings", settings)
	}
	argv = append(argv, args...)
	if l.Prompt != "" {
		argv = append(argv, "--", l.Prompt)
	}
	// Without it a left arrow in an empty box moves the conversation out of the pane, into a daemon that outlives it.
	return sessions.Command{Argv: argv, Env: map[string]string{"CLAUDE_CODE_DISABLE_AGENT_VIEW": "1"}}, nil
}

// claudeReservedFlags are the flags that say which conversation it is, and whether there is a terminal: the-loop's to choose.
var claudeReservedFlags = []string{"--session-id", "--resume", "-r", "--continue", "-c", "--fork-session", "--print", "-p",
	"--no-session-persistence", "--bg", "--background"}

// extractSettingsArg takes the operator's --settings out of the arguments, for ours to hold them too: of two the last one would
// count alone.
func extractSettingsArg(args []string) (rest []string, settings string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(claudeReservedFlags, name), name == "--":
			return nil, "", &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("harnessArgs of claude hold %s", name),
				Remedy: "take it out: the-loop chooses the conversation itself"}
		case name != "--settings":
			rest = append(rest, args[i])
		case inline:
			settings = value
		case i+1 < len(args):
			i++
			settings = args[i]
		}
	}
	return rest, settings, nil
}

// Prepare writes the session's own settings file, where the operator asked for it accepts the folder's trust, and notes in
// the reports that an agent is about to start.
func (c Claude) Prepare(ctx context.Context, l sessions.Launch) error {
	if err := c.writeSettings(l); err != nil {
		return fmt.Errorf("write the session's settings: %w", err)
	}
	if c.AcceptTrust {
		if err := c.writeFolderTrust(ctx, l); err != nil {
			return fmt.Errorf("accept the folder's trust: %w", err)
		}
	}
	return c.reportLaunch(l)
}

// TrackConversation reads the id from the reports: /clear begins another conversation. Empty while the agent has not reported yet, and
// without hooks.
func (c Claude) TrackConversation(_ context.Context, talk sessions.Conversation) (string, error) {
	now := ""
	err := c.withFacts(talk, func(facts *report.Facts, _ int64) { now = facts.CurrentConversation(talk.ID) })
	return now, err
}

// withFacts calls see with what all reports of a session say, and the offset of their end.
func (c Claude) withFacts(talk sessions.Conversation, see func(facts *report.Facts, end int64)) error {
	if len(c.Hook) == 0 {
		see(&report.Facts{}, 0)
		return nil
	}
	path, err := report.Path(c.ReportDir, talk.Session)
	if err != nil {
		return err
	}
	return c.Index.View(path, see)
}

func (c Claude) readReports(talk sessions.Conversation, from int64) ([]report.Report, int64, error) {
	if len(c.Hook) == 0 {
		return nil, from, nil
	}
	path, err := report.Path(c.ReportDir, talk.Session)
	if err != nil {
		return nil, from, err
	}
	return report.Read(path, from)
}

// configDir is where Claude Code keeps what is the user's.
func (c Claude) configDir(env map[string]string) (string, error) {
	if dir := env["CLAUDE_CONFIG_DIR"]; dir != "" {
		return dir, nil
	}
	home, err := c.home(env)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".claude"), nil
}

func (c Claude) home(env map[string]string) (string, error) { return agentHome(env, c.Home) }

// agentHome is the HOME that an agent will have.
func agentHome(env map[string]string, preset string) (string, error) {
	switch {
	case env["HOME"] != "":
		return env["HOME"], nil
	case preset != "":
		return preset, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the agent's home: %w", err)
	}
	return home, nil
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

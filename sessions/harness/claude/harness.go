package claude

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/transcript"
)

// Name is Claude Code's name in the configuration.
const Name = "claude"

// Harness is Claude Code (measured with 2.1.197). Its transcript proves which texts it accepted, and its hooks report when the
// conversation changes. [Harness.Prepare] must run before each start: it writes the settings file that [Harness.Command] names.
type Harness struct {
	Binary        string       // empty: claude, from the pane's PATH
	SettingsDir   string       // absolute; ours: the settings files of the sessions
	ReportDir     string       // absolute; the folder of the report files
	Hook          []string     // the program that runs a [report.Hook], with its arguments before the report file's path; empty: no hooks
	PermissionDir string       // absolute; the folder of the sockets of hooks that wait; empty: permission requests are not reported
	AcceptTrust   bool         // accept the folder's trust dialog: the operator wants unattended starts (routing.harnessTrust.enabled)
	Bypass        BypassPolicy // empty: BypassAuto
	Home          string       // of the agents, where a launch does not say; empty: this process's

	Index *report.Index // of the reports; nil: they are read anew each time
}

// BypassPolicy says when the warning before the mode without permissions is accepted for the operator.
type BypassPolicy string

// The values of routing.harnessTrust.acceptBypassPermissions.
const (
	BypassAuto   BypassPolicy = "auto" // when the session's arguments ask for that mode
	BypassAlways BypassPolicy = "always"
	BypassNever  BypassPolicy = "never"
)

// Name returns [Name].
func (c Harness) Name() string { return Name }

// Capabilities are those of the program: a leading "!" runs a shell command without asking, "/" is a command, and a few words
// alone end it. "#", "&" and "?" begin plain text when they are pasted. C-c declines nothing: the dialog stays open, and a second
// C-c ends the program (2.1.197).
func (c Harness) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		ParseScreen:       c.ParseScreen,
		Input:             c,
		ReadTranscript:    c.ReadTranscript,
		TrackConversation: c.TrackConversation,
		Prepare:           c.Prepare,
		SubmitKey:         c.SubmitKey,
		Normalize:         c.Normalize,
		Quote:             c.Quote,

		Submit:             "\r",
		Interrupt:          "\x1b",
		ClearLine:          "\x15",
		CommandPrefixes:    []string{"!", "/"},
		CommandWords:       []string{"exit", "quit", ":q", ":q!", ":wq", ":wq!"},
		Trailer:            " ",
		AcceptTimeout:      transcript.AcceptTimeout,
		CanResume:          true,
		ReportsPermissions: len(c.Hook) > 0 && c.PermissionDir != "",

		MoveKeys: []string{sessions.KeyUp, sessions.KeyDown},
		DenyKeys: []string{sessions.KeyEscape},
		ModeKeys: []string{sessions.KeyBackTab},
	}
}

// Command starts a conversation with the given id, or resumes it. The id's shape is checked: with anything else --resume opens a
// picker that never ends. "--" goes before the prompt, because flags such as --allowedTools take all words that follow.
func (c Harness) Command(l sessions.Launch) (sessions.Command, error) {
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
	argv := []string{cmp.Or(c.Binary, "claude"), flag, l.Conversation}
	if l.Session != "" { // else the caller only wants to know the program
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

// reservedFlags are the flags that choose the conversation, or that there is no terminal.
var reservedFlags = []string{"--session-id", "--resume", "-r", "--continue", "-c", "--fork-session", "--print", "-p",
	"--no-session-persistence", "--bg", "--background"}

// extractSettingsArg splits the operator's --settings from the other arguments. Of two --settings only the last one counts, so
// ours has to contain it.
func extractSettingsArg(args []string) (rest []string, settings string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(reservedFlags, name), name == "--":
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

// Prepare writes the session's own settings file, accepts the folder's trust where the operator asked for it, and reports that
// an agent is about to start.
func (c Harness) Prepare(ctx context.Context, l sessions.Launch) error {
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

// TrackConversation reads the id from the reports: /clear begins another conversation. It is empty until the agent's first report,
// and without hooks.
func (c Harness) TrackConversation(_ context.Context, conv sessions.Conversation) (string, error) {
	now := ""
	err := c.withFacts(conv, func(facts *report.Facts, _ int64) { now = facts.CurrentConversation(conv.ID) })
	return now, err
}

// withFacts calls see with the facts of a session's reports, and the offset of their end.
func (c Harness) withFacts(conv sessions.Conversation, see func(facts *report.Facts, end int64)) error {
	if len(c.Hook) == 0 {
		see(&report.Facts{}, 0)
		return nil
	}
	path, err := report.Path(c.ReportDir, conv.Session)
	if err != nil {
		return err
	}
	return c.Index.WithFacts(path, see)
}

func (c Harness) readReports(conv sessions.Conversation, from int64) ([]report.Report, int64, error) {
	if len(c.Hook) == 0 {
		return nil, from, nil
	}
	path, err := report.Path(c.ReportDir, conv.Session)
	if err != nil {
		return nil, from, err
	}
	return report.Read(path, from)
}

// configDir is the folder of the user's settings and transcripts.
func (c Harness) configDir(env map[string]string) (string, error) {
	if dir := env["CLAUDE_CONFIG_DIR"]; dir != "" {
		return dir, nil
	}
	home, err := c.home(env)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".claude"), nil
}

func (c Harness) home(env map[string]string) (string, error) { return transcript.Home(env, c.Home) }

package smallagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/transcript"
)

// Name is the small agent's name in the configuration.
const Name = "small-agent"

// Harness is the small agent as a harness. Its transcript proves which texts it accepted.
type Harness struct {
	Argv []string          // the program with its arguments before those of the small agent, e.g. {"/usr/bin/the-loop", "small-agent"}
	Dir  string            // where its conversations are
	Env  map[string]string // variables that make the program the small agent

	Hook          []string // the program that runs a [report.Hook], with its arguments before the report file's path; empty: no hook
	ReportDir     string   // absolute; the folder of the report files
	PermissionDir string   // absolute; the folder of the sockets of hooks that wait
}

// Name returns [Name].
func (a Harness) Name() string { return Name }

// Capabilities are those of the program: "!" and "/" begin commands, and two words alone are commands.
func (a Harness) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		ParseScreen:    a.ParseScreen,
		Input:          a,
		ReadTranscript: a.ReadTranscript,

		Submit:             "\r",
		ClearLine:          "\x15",
		CommandPrefixes:    []string{"!", "/"},
		CommandWords:       []string{"exit", "quit"},
		AcceptTimeout:      time.Second,
		CanResume:          true,
		ReportsPermissions: len(a.Hook) > 0 && a.PermissionDir != "",

		MoveKeys: []string{sessions.KeyUp, sessions.KeyDown},
		DenyKeys: []string{sessions.KeyEscape},
	}
}

// Command starts a conversation with the given id, or resumes it.
func (a Harness) Command(l sessions.Launch) (sessions.Command, error) {
	if !sessions.ValidConversation(l.Conversation) {
		return sessions.Command{}, fmt.Errorf("small-agent: %q is no id of a conversation", l.Conversation)
	}
	flag := "--session-id"
	if l.Resume {
		flag = "--resume"
	}
	argv := append(slices.Clone(a.Argv), "--dir", a.Dir, flag, l.Conversation)
	if l.Session != "" && len(a.Hook) > 0 { // else the caller only wants to know the program
		reportFile, err := report.Path(a.ReportDir, l.Session)
		if err != nil {
			return sessions.Command{}, err
		}
		argv = append(argv, "--hook", shellescape.QuoteCommand(append(slices.Clone(a.Hook), reportFile, a.PermissionDir)))
	}
	argv = append(argv, l.Args...)
	if l.Prompt != "" {
		argv = append(argv, "--", l.Prompt)
	}
	return sessions.Command{Argv: argv, Env: a.Env}, nil
}

// ParseScreen parses the screen.
func (a Harness) ParseScreen(s sessions.Screen) sessions.View {
	screen, ok := ParseScreen(s.Text)
	if !ok {
		return sessions.View{State: sessions.ViewStarting}
	}
	view := sessions.View{State: sessions.ViewReady, Box: screen.Box, Lines: screen.Dialog}
	switch screen.State {
	case StateStarting:
		view.State = sessions.ViewStarting
	case StateWorking:
		view.State = sessions.ViewWorking
	case StateAsking:
		view.State = sessions.ViewDialog
	}
	return view
}

// Offset returns the end of the transcript. A conversation that /clear ended continues in another one.
func (a Harness) Offset(_ context.Context, c sessions.Conversation) (sessions.Offset, error) {
	id, offset, err := a.eachEntry(c.ID, 0, func(Entry) {})
	if err != nil {
		return "", err
	}
	return transcript.Encode(transcriptOffset{Cursor: transcript.Cursor{Recorded: c.ID, Conversation: id, Offset: offset}}), nil
}

// Accepted looks for a text with that sum after the offset.
func (a Harness) Accepted(_ context.Context, _ sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseOffset(since)
	if err != nil {
		return false, err
	}
	found := false
	_, _, err = a.eachEntry(from.Conversation, from.Offset, func(e Entry) {
		switch e.Type {
		case TypeUser, TypeCommand, TypeShell:
			found = found || sessions.Fingerprint(e.Text) == sum
		}
	})
	return found, err
}

// maxClears bounds how many conversations are followed from one to the next.
const maxClears = 1000

// eachEntry calls see with the entries of a conversation from an offset on, and of those that /clear began after it. It returns
// where they end.
func (a Harness) eachEntry(id string, offset int64, see func(Entry)) (string, int64, error) {
	for range maxClears {
		entries, end, err := ReadTranscript(TranscriptPath(a.Dir, id), offset)
		if errors.Is(err, fs.ErrNotExist) {
			return id, 0, nil // it has not written anything yet
		}
		if err != nil {
			return "", 0, fmt.Errorf("read the conversation %s: %w", id, err)
		}
		next := ""
		for _, e := range entries {
			see(e)
			if e.Type == TypeClear && sessions.ValidConversation(e.Conversation) {
				next = e.Conversation
			}
		}
		if next == "" {
			return id, end, nil
		}
		id, offset = next, 0
	}
	return "", 0, fmt.Errorf("the conversation goes on in more than %d others", maxClears)
}

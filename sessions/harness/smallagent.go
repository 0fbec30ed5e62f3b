package harness

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
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/harness/transcript"
)

// SmallAgentName is the small agent's name in the configuration.
const SmallAgentName = "small-agent"

// SmallAgent is the agent that comes with the binary. Its own record proves what it took, and its screen can be read.
type SmallAgent struct {
	Argv []string          // the program and what comes before its own flags, e.g. {"/usr/bin/the-loop", "small-agent"}
	Dir  string            // where its conversations are
	Env  map[string]string // variables that it needs to be that program

	Hook          []string // the program that runs a [Hook], with what comes before the report file's path; empty: no hook
	ReportDir     string   // absolute; the folder of the report files
	PermissionDir string   // absolute; the folder of the sockets of hooks that wait
}

// Name is [SmallAgentName].
func (a SmallAgent) Name() string { return SmallAgentName }

// Capabilities are those of the program: "!" and "/" begin commands, and so do two words alone.
func (a SmallAgent) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{ParseScreen: a.ParseScreen, Input: a, ReadTranscript: a.ReadTranscript,
		Submit: "\r", ClearLine: "\x15", MoveKeys: moveKeys(), DenyKeys: denyKeys(), CommandPrefixes: []string{"!", "/"},
		CommandWords: []string{"exit", "quit"}, CanResume: true, ReportsPermissions: len(a.Hook) > 0 && a.PermissionDir != "", AcceptTimeout: time.Second}
}

// Command starts it in its folder of conversations.
func (a SmallAgent) Command(l sessions.Launch) (sessions.Command, error) {
	if !sessions.ValidConversation(l.Conversation) {
		return sessions.Command{}, fmt.Errorf("small-agent: %q is no id of a conversation", l.Conversation)
	}
	flag := "--session-id"
	if l.Resume {
		flag = "--resume"
	}
	argv := append(slices.Clone(a.Argv), "--dir", a.Dir, flag, l.Conversation)
	if l.Session != "" && len(a.Hook) > 0 { // otherwise it is only asked what would run
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

// ParseScreen reads its screen.
func (a SmallAgent) ParseScreen(s sessions.Screen) sessions.View {
	screen, ok := smallagent.ParseScreen(s.Text)
	if !ok {
		return sessions.View{State: sessions.ViewStarting}
	}
	view := sessions.View{State: sessions.ViewReady, Box: screen.Box, Lines: screen.Dialog}
	switch screen.State {
	case smallagent.StateStarting:
		view.State = sessions.ViewStarting
	case smallagent.StateWorking:
		view.State = sessions.ViewWorking
	case smallagent.StateAsking:
		view.State = sessions.ViewDialog
	}
	return view
}

// Offset is the end of the record. A conversation that /clear ended goes on in another one.
func (a SmallAgent) Offset(_ context.Context, c sessions.Conversation) (sessions.Offset, error) {
	id, offset, err := a.eachEntry(c.ID, 0, func(smallagent.Entry) {})
	if err != nil {
		return "", err
	}
	return transcript.Encode(smallAgentOffset{Cursor: transcript.Cursor{Recorded: c.ID, Conversation: id, Offset: offset}}), nil
}

// Accepted looks for a message with that sum after place.
func (a SmallAgent) Accepted(_ context.Context, _ sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseSmallAgentOffset(since)
	if err != nil {
		return false, err
	}
	found := false
	_, _, err = a.eachEntry(from.Conversation, from.Offset, func(e smallagent.Entry) {
		switch e.Type {
		case smallagent.TypeUser, smallagent.TypeCommand, smallagent.TypeShell:
			found = found || sessions.Fingerprint(e.Text) == sum
		}
	})
	return found, err
}

// maxClears bounds how many conversations are followed from one to the next.
const maxClears = 1000

// follow reads a conversation from an offset, and those that /clear began after it, and returns where it ends.
func (a SmallAgent) eachEntry(id string, offset int64, see func(smallagent.Entry)) (string, int64, error) {
	for range maxClears {
		entries, end, err := smallagent.ReadTranscript(smallagent.TranscriptPath(a.Dir, id), offset)
		if errors.Is(err, fs.ErrNotExist) {
			return id, 0, nil // it has not written anything yet
		}
		if err != nil {
			return "", 0, fmt.Errorf("read the conversation %s: %w", id, err)
		}
		next := ""
		for _, e := range entries {
			see(e)
			if e.Type == smallagent.TypeClear && sessions.ValidConversation(e.Conversation) {
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

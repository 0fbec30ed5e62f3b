package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
	"the-loop/sessions/process"
)

// Name is Gemini CLI's name in the configuration.
const Name = "gemini"

// Harness is Google's Gemini CLI (measured with 0.61.0). Its log of a folder, with an entry for each accepted text, is
// the proof; a queued text is there only when the turn ends.
type Harness struct {
	Binary string // empty: gemini, from the pane's PATH
	Home   string // of the agents, where their processes do not say; empty: this process's
}

// Name returns [Name].
func (g Harness) Name() string { return Name }

// Capabilities are those of the program. A submit that comes with the paste is lost (0 of 8 arrived at 0 ms; all did from 80 ms up
// to 4 kB, from 500 ms at 40 kB). Known commands run, also when they were pasted; "!" is text then, but a mode of the shell
// when it is typed.
func (g Harness) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		ParseScreen:       g.ParseScreen,
		Input:             g,
		ReadTranscript:    g.ReadTranscript,
		TrackConversation: g.TrackConversation,
		Quote:             g.Quote,

		Submit:           "\r",
		SubmitDelay:      300 * time.Millisecond,
		Interrupt:        "\x1b",
		CommandPrefixes:  []string{"/", "!"},
		Trailer:          " ",
		AcceptTimeout:    transcript.AcceptTimeout,
		CanResume:        true,
		QueuesUnrecorded: true,

		MoveKeys: []string{sessions.KeyUp, sessions.KeyDown},
		DenyKeys: []string{sessions.KeyEscape},
		ModeKeys: []string{sessions.KeyBackTab},
	}
}

// outsidePathPattern matches an "@" before a path that need not lie in the session's folder.
var outsidePathPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^\\])@("?(?:/|~|\.\.))`) })

// Quote escapes an "@" before such a path: the program asks whether it may read the file before it logs the text (0.61.0), so that
// nothing would prove it. In the session's folder "@" names a file, as in the terminal.
func (g Harness) Quote(text string) string {
	return outsidePathPattern().ReplaceAllString(text, `${1}\@${2}`)
}

// Command starts a conversation with the given id, or resumes it; either takes a first message. A conversation without any message
// cannot be resumed (exit 42).
func (g Harness) Command(l sessions.Launch) (sessions.Command, error) {
	if !sessions.ValidConversation(l.Conversation) {
		return sessions.Command{}, fmt.Errorf("gemini: %q is no id of a conversation", l.Conversation)
	}
	err := l.RefuseArgs("gemini", "--session-id", "--resume", "-r", "--prompt", "-p", "--prompt-interactive", "-i", "--acp", "--worktree", "-w", "--")
	if err != nil {
		return sessions.Command{}, err
	}
	flag := "--session-id"
	if l.Resume {
		flag = "--resume"
	}
	argv := append([]string{cmp.Or(g.Binary, "gemini"), flag, l.Conversation}, l.Args...)
	if l.Prompt != "" {
		argv = append(argv, promptFlag+"="+l.Prompt) // in one argument: a separate one that begins with "-" would be a flag
	}
	return sessions.Command{Argv: argv}, nil
}

// promptFlag is the flag of the first message.
const promptFlag = "--prompt-interactive"

// startTimeout is how long to wait for the first message after a start. It took more than 20 s on a busy machine, and the log loses
// a text that is typed before it: both are written at once.
const startTimeout = time.Minute

// pane is what the processes of a pane show. In the log every text has the id of the conversation that the program was started with,
// also after /clear.
type pane struct {
	projectsFile string // names the folder of each working folder
	projectDir   string // of the working folder's log and conversations; empty: it has none yet
	startID      string // of that conversation
	hasPrompt    bool   // a first message was given
}

func (g Harness) inspectPane(conv sessions.Conversation) (pane, error) {
	r := pane{startID: conv.ID}
	processes, _ := process.System().WithValue(sessions.SessionVariable, conv.Session)
	home := g.Home
	for _, p := range processes {
		if id := process.System().FlagValue(p.PID, "--session-id", "--resume"); sessions.ValidConversation(id) {
			r.startID, r.hasPrompt, home = id, process.System().FlagValue(p.PID, promptFlag) != "", cmp.Or(p.Env["HOME"], home)
			break
		}
	}
	home, err := transcript.Home(nil, home)
	if err != nil {
		return pane{}, err
	}
	var known struct {
		Projects map[string]string `json:"projects"`
	}
	r.projectsFile = filepath.Join(home, ".gemini", "projects.json")
	data, err := os.ReadFile(r.projectsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pane{}, err
	}
	_ = json.Unmarshal(data, &known)
	cwd := transcript.Folder(conv.Cwd)
	if name := known.Projects[cwd]; name != "" && filepath.IsLocal(name) {
		r.projectDir = filepath.Join(home, ".gemini", "tmp", name)
	}
	return r, nil
}

// logEntry is an entry of the log.
type logEntry struct {
	Conversation string    `json:"sessionId"`
	Type         string    `json:"type"`
	Message      string    `json:"message"`
	At           time.Time `json:"timestamp"`
}

// readLog returns the session's entries of the log. There may be no log yet.
func (r pane) readLog() ([]logEntry, error) {
	if r.projectDir == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(r.projectDir, "logs.json"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil, nil
	}
	var all, ours []logEntry
	if err == nil { // two writes at once leave the rest of the longer one behind the shorter one
		err = json.NewDecoder(bytes.NewReader(data)).Decode(&all)
	}
	if err != nil {
		return nil, fmt.Errorf("read gemini's log: %w", err)
	}
	for _, e := range all {
		if e.Conversation == r.startID && e.Type == "user" {
			ours = append(ours, e)
		}
	}
	return ours, nil
}

// Offset returns the number of the session's texts in the log. A [sessions.HeldError] until the first message is there, and for a
// moment after /clear: what is pasted then is lost with the old screen.
func (g Harness) Offset(_ context.Context, conv sessions.Conversation) (sessions.Offset, error) {
	r, err := g.inspectPane(conv)
	if err != nil {
		return "", err
	}
	entries, err := r.readLog()
	if err != nil {
		return "", err
	}
	began := len(entries) > 0 && !entries[len(entries)-1].At.Before(conv.Started.Add(-time.Second))
	if r.hasPrompt && !began && time.Since(conv.Started) < startTimeout {
		return "", &sessions.HeldError{State: sessions.ViewStarting}
	}
	if n := len(entries); n > 0 && isClear(entries[n-1]) && time.Since(entries[n-1].At) < maxClearDelay {
		return "", &sessions.HeldError{State: sessions.ViewStarting} // it empties the box once more (0.61.0)
	}
	return transcript.Encode(transcriptOffset{Since: time.Now(), Conversation: conv.ID, StartID: r.startID, Logged: len(entries)}), nil
}

func isClear(e logEntry) bool { return strings.HasPrefix(strings.TrimSpace(e.Message), "/clear") }

// Accepted looks in the log for a text after the offset. A log that is just being written is no evidence yet.
func (g Harness) Accepted(_ context.Context, conv sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseOffset(since)
	if err != nil || !sessions.ValidConversation(from.StartID) {
		return false, transcript.InvalidOffset(since)
	}
	r, err := g.inspectPane(conv)
	if err != nil {
		return false, err
	}
	r.startID = from.StartID
	entries, err := r.readLog()
	if broken := (*json.SyntaxError)(nil); errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n := from.Logged
	if n > len(entries) {
		n = 0 // the program replaced a log that it could not read
	}
	for _, e := range entries[n:] {
		if sessions.Fingerprint(e.Message) == sum {
			return true, nil
		}
	}
	return false, nil
}

// maxClearDelay is how soon after a /clear the next conversation begins.
const maxClearDelay = 3 * time.Second

// TrackConversation finds the conversation that began when the last /clear of this run was logged. Empty if two sessions of the
// folder did that at the same moment.
func (g Harness) TrackConversation(_ context.Context, conv sessions.Conversation) (string, error) {
	r, err := g.inspectPane(conv)
	if err != nil {
		return "", err
	}
	entries, err := r.readLog()
	if err != nil {
		return "", err
	}
	var cleared time.Time
	for _, e := range entries {
		if isClear(e) && e.At.After(conv.Started.Add(-time.Second)) {
			cleared = e.At
		}
	}
	if cleared.IsZero() {
		return r.startID, nil
	}
	return r.conversationBegunAt(cleared), nil
}

// conversationBegunAt returns the only conversation of the folder that began then.
func (r pane) conversationBegunAt(at time.Time) string {
	files, err := filepath.Glob(filepath.Join(r.projectDir, "chats", "session-*.jsonl"))
	if err != nil {
		return ""
	}
	found := ""
	for _, file := range files {
		var head struct {
			ID    string    `json:"sessionId"`
			Began time.Time `json:"startTime"`
		}
		if transcript.DecodeFirstLine(file, &head) != nil || head.ID == r.startID || head.Began.Before(at.Add(-time.Second)) || head.Began.After(at.Add(maxClearDelay)) {
			continue
		}
		if found != "" && found != head.ID {
			return ""
		}
		found = head.ID
	}
	return found
}

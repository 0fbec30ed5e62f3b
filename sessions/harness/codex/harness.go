package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
	"the-loop/sessions/process"
)

// Name is Codex's name in the configuration.
const Name = "codex"

// Harness is OpenAI's Codex (measured with 0.171.0). It chooses its conversation id itself, at the first message: the id is read
// from the name of the file that the process in the pane has open. Its history, a line for each submitted text, proves which texts
// it accepted.
type Harness struct {
	Binary string // empty: codex, from the pane's PATH
	Home   string // of the agents, where their processes do not say; empty: this process's
}

// Name returns [Name].
func (c Harness) Name() string { return Name }

// Capabilities are those of the program: a leading "!" runs a shell command without asking, "/" is a command (one that is not
// known stays in the box); exit, quit and :q are text.
func (c Harness) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		ParseScreen:       c.ParseScreen,
		Input:             c,
		ReadTranscript:    c.ReadTranscript,
		TrackConversation: c.TrackConversation,

		Submit:             "\r",
		Interrupt:          "\x1b",
		CommandPrefixes:    []string{"!", "/"},
		Trailer:            " ",
		AcceptTimeout:      transcript.AcceptTimeout,
		CanResume:          true,
		CommandsUnrecorded: true,

		MoveKeys: []string{sessions.KeyUp, sessions.KeyDown},
		DenyKeys: []string{sessions.KeyEscape},
		ModeKeys: []string{sessions.KeyBackTab},
	}
}

// Command starts or resumes the program without its daemon, which has the environment of the first session and outlives every pane.
func (c Harness) Command(l sessions.Launch) (sessions.Command, error) {
	if err := l.RefuseArgs("codex", "resume", "fork", "exec", "--remote", "--worktree", "--"); err != nil {
		return sessions.Command{}, err
	}
	argv := []string{cmp.Or(c.Binary, "codex"), "--no-daemon"}
	if l.Resume {
		if !sessions.ValidConversation(l.Conversation) {
			return sessions.Command{}, fmt.Errorf("codex: %q is no id of a conversation", l.Conversation)
		}
		argv = append(argv, "resume")
	}
	argv = append(argv, l.Args...)
	var words []string
	if l.Resume {
		words = append(words, l.Conversation)
	}
	if l.Prompt != "" {
		words = append(words, l.Prompt)
	}
	if len(words) > 0 {
		argv = append(append(argv, "--"), words...)
	}
	return sessions.Command{Argv: argv}, nil
}

// startTimeout is how long to wait for the first message after a start: what is typed before it is lost.
const startTimeout = 15 * time.Second

// rolloutName matches the name of a conversation's file, which ends in the id.
var rolloutName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rollout-.*-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl$`)
})

// pane is what the processes of a pane show: the folder of Codex's files, and the open files of conversations by id, those of
// subagents too.
type pane struct {
	home    string
	files   map[string]string
	hasProc bool // false: this system does not show it
}

func (c Harness) inspectPane(session string) (pane, error) {
	processes, known := process.System().WithValue(sessions.SessionVariable, session)
	r := pane{files: map[string]string{}, hasProc: known}
	for _, p := range processes {
		for _, file := range process.System().OpenFiles(p.PID) {
			if m := rolloutName().FindStringSubmatch(filepath.Base(file)); m != nil {
				r.files[m[1]] = file
			}
		}
		if r.home == "" {
			r.home = cmp.Or(p.Env["CODEX_HOME"], filepath.Join(p.Env["HOME"], ".codex"))
		}
	}
	if r.home == "" {
		home, err := transcript.Home(nil, c.Home)
		if err != nil {
			return pane{}, err
		}
		r.home = filepath.Join(home, ".codex")
	}
	return r, nil
}

func (r pane) historyFile() string { return filepath.Join(r.home, "history.jsonl") }

// owns reports whether a conversation is the session's.
func (r pane) owns(id string, conv sessions.Conversation) bool {
	if r.hasProc {
		return r.files[id] != ""
	}
	return id == conv.ID || r.beganInFolder(id, conv)
}

// beganInFolder reports whether a conversation began in the session's folder during its run: all that can be known without /proc.
func (r pane) beganInFolder(id string, conv sessions.Conversation) bool {
	if !sessions.ValidConversation(id) {
		return false
	}
	files, err := filepath.Glob(filepath.Join(r.home, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	if err != nil || len(files) != 1 {
		return false
	}
	meta := readRolloutHead(files[0])
	return meta.Cwd == conv.Cwd && !meta.Timestamp.Before(conv.Started.Add(-time.Minute))
}

// rolloutHead is the head of a conversation's file.
type rolloutHead struct {
	Cwd       string    `json:"cwd"`
	Timestamp time.Time `json:"timestamp"`
	Source    string    `json:"thread_source"` // user, or that of a subagent
}

func readRolloutHead(path string) rolloutHead {
	var head struct {
		Type    string      `json:"type"`
		Payload rolloutHead `json:"payload"`
	}
	if transcript.DecodeFirstLine(path, &head) != nil {
		return rolloutHead{}
	}
	return head.Payload
}

// TrackConversation returns the conversation of the last submitted text, or the newest that is open: /new and /clear begin another.
func (c Harness) TrackConversation(_ context.Context, conv sessions.Conversation) (string, error) {
	r, err := c.inspectPane(conv.Session)
	if err != nil {
		return "", err
	}
	last := ""
	_, err = transcript.ReadLines(r.historyFile(), 0, func(line []byte) {
		if h, ok := parseHistoryLine(line); ok && r.files[h.Conversation] != "" {
			last = h.Conversation
		}
	})
	if err != nil {
		return "", fmt.Errorf("read codex's history: %w", err)
	}
	if last != "" {
		return last, nil
	}
	newest := ""
	for id, file := range r.files {
		if source := readRolloutHead(file).Source; (source == "" || source == "user") && file > r.files[newest] {
			newest = id
		}
	}
	return newest, nil
}

// historyLine is a line of the history.
type historyLine struct {
	Conversation string `json:"session_id"`
	Text         string `json:"text"`
}

func parseHistoryLine(line []byte) (historyLine, bool) {
	var h historyLine
	err := json.Unmarshal(line, &h)
	return h, err == nil && h.Conversation != ""
}

// Offset returns the end of the history. A [sessions.HeldError] until a conversation is open.
func (c Harness) Offset(_ context.Context, conv sessions.Conversation) (sessions.Offset, error) {
	r, err := c.inspectPane(conv.Session)
	if err != nil {
		return "", err
	}
	if r.hasProc && len(r.files) == 0 && time.Since(conv.Started) < startTimeout {
		return "", &sessions.HeldError{State: sessions.ViewStarting}
	}
	end, err := transcript.End(r.historyFile())
	if err != nil {
		return "", fmt.Errorf("read codex's history: %w", err)
	}
	cursor := transcript.Cursor{Recorded: conv.ID, Conversation: conv.ID, Since: time.Now()}
	return transcript.Encode(transcriptOffset{Cursor: cursor, Home: r.home, HistoryOffset: end}), nil
}

// Accepted looks in the history after the offset for a text of the session's. A queued text is there at once; in the conversation's
// own file it is only once the agent reads it.
func (c Harness) Accepted(_ context.Context, conv sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseOffset(since)
	if err != nil || !filepath.IsAbs(from.Home) {
		return false, transcript.InvalidOffset(since)
	}
	var in []string // the conversations with the text
	_, err = transcript.ReadLines(pane{home: from.Home}.historyFile(), from.HistoryOffset, func(line []byte) {
		if h, ok := parseHistoryLine(line); ok && sessions.Fingerprint(h.Text) == sum {
			in = append(in, h.Conversation)
		}
	})
	if err != nil {
		return false, fmt.Errorf("read codex's history: %w", err)
	}
	if len(in) == 0 {
		return false, nil
	}
	r, err := c.inspectPane(conv.Session)
	return slices.ContainsFunc(in, func(id string) bool { return r.owns(id, conv) }), err
}

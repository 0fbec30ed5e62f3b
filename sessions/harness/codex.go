package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// CodexName is Codex's name in the configuration.
const CodexName = "codex"

// Codex is OpenAI's Codex (measured with 0.171.0). It chooses its conversation id itself, at the first message: the id is read
// from the file of the conversation that the process in the pane has open. Its history, a line for each submitted text,
// proves what it took.
type Codex struct {
	Binary string // empty: codex, from the pane's PATH
	Home   string // of the agents, where their processes do not say; empty: this process's
}

// Name is [CodexName].
func (c Codex) Name() string { return CodexName }

// Capabilities are those of the program: a leading "!" runs a shell command without asking, "/" is a command (one that is not
// known stays in the box); exit, quit and :q are text.
func (c Codex) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{ParseScreen: c.ParseScreen, Input: c, ReadTranscript: c.ReadTranscript, TrackConversation: c.TrackConversation,
		Submit: "\r", CommandPrefixes: []string{"!", "/"}, Interrupt: "\x1b", CanResume: true,
		MoveKeys: moveKeys(), DenyKeys: denyKeys(), ModeKeys: []string{sessions.KeyBackTab},
		Trailer: " ", AcceptTimeout: acceptTimeout, CommandsUnrecorded: true}
}

// Command runs it without its daemon, which has the environment of the first session and outlives every pane.
func (c Codex) Command(l sessions.Launch) (sessions.Command, error) {
	if err := refuseArgs("codex", l.Args, "resume", "fork", "exec", "--remote", "--worktree", "--"); err != nil {
		return sessions.Command{}, err
	}
	argv := []string{orDefault(c.Binary, "codex"), "--no-daemon"}
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

// refuseArgs refuses operator's arguments that would choose another conversation or another kind of program.
func refuseArgs(agent string, args []string, refused ...string) error {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if slices.Contains(refused, name) {
			return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("harnessArgs of %s hold %s", agent, name),
				Remedy: "take it out: the-loop chooses the conversation itself"}
		}
	}
	return nil
}

// codexStartTimeout is how long the first message is waited for after a start: what is typed before goes away with it.
const codexStartTimeout = 15 * time.Second

// rolloutName is the file of a conversation; the id is a UUID at its end.
var rolloutName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rollout-.*-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl$`)
})

// codexPane is what the processes of a pane show: where Codex keeps its things, and the files of the conversations that are
// open, by id. The agent's subagents have files too.
type codexPane struct {
	home    string
	files   map[string]string
	hasProc bool // false: this system does not show it
}

func (c Codex) inspectPane(session string) (codexPane, error) {
	processes, known := paneProcesses(session)
	r := codexPane{files: map[string]string{}, hasProc: known}
	for _, p := range processes {
		for _, file := range p.openFiles() {
			if m := rolloutName().FindStringSubmatch(filepath.Base(file)); m != nil {
				r.files[m[1]] = file
			}
		}
		if r.home == "" {
			r.home = orDefault(p.Env["CODEX_HOME"], filepath.Join(p.Env["HOME"], ".codex"))
		}
	}
	if r.home == "" {
		home, err := agentHome(nil, c.Home)
		if err != nil {
			return codexPane{}, err
		}
		r.home = filepath.Join(home, ".codex")
	}
	return r, nil
}

func (r codexPane) historyFile() string { return filepath.Join(r.home, "history.jsonl") }

// owns reports whether the conversation is the session's.
func (r codexPane) owns(id string, talk sessions.Conversation) bool {
	if r.hasProc {
		return r.files[id] != ""
	}
	return id == talk.ID || r.beganInFolder(id, talk)
}

// beganInFolder reports a conversation that began in the session's folder during its run: the best there is without /proc.
func (r codexPane) beganInFolder(id string, talk sessions.Conversation) bool {
	if !sessions.ValidConversation(id) {
		return false
	}
	files, err := filepath.Glob(filepath.Join(r.home, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	if err != nil || len(files) != 1 {
		return false
	}
	meta := readRolloutHead(files[0])
	return meta.Cwd == talk.Cwd && !meta.Timestamp.Before(talk.Started.Add(-time.Minute))
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

// TrackConversation returns the conversation in which the last text was said, or the newest that is open: /new and /clear begin another.
func (c Codex) TrackConversation(_ context.Context, talk sessions.Conversation) (string, error) {
	r, err := c.inspectPane(talk.Session)
	if err != nil {
		return "", err
	}
	last := ""
	_, err = transcript.ReadLines(r.historyFile(), 0, func(line []byte) {
		if h, ok := parseCodexHistoryLine(line); ok && r.files[h.Conversation] != "" {
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

// codexHistoryLine is a line of the history.
type codexHistoryLine struct {
	Conversation string `json:"session_id"`
	Text         string `json:"text"`
}

func parseCodexHistoryLine(line []byte) (codexHistoryLine, bool) {
	var h codexHistoryLine
	err := json.Unmarshal(line, &h)
	return h, err == nil && h.Conversation != ""
}

// Offset is the end of the history. A [sessions.HeldError] until a conversation is open.
func (c Codex) Offset(_ context.Context, talk sessions.Conversation) (sessions.Offset, error) {
	r, err := c.inspectPane(talk.Session)
	if err != nil {
		return "", err
	}
	if r.hasProc && len(r.files) == 0 && time.Since(talk.Started) < codexStartTimeout {
		return "", &sessions.HeldError{State: sessions.ViewStarting}
	}
	end, err := transcript.End(r.historyFile())
	if err != nil {
		return "", fmt.Errorf("read codex's history: %w", err)
	}
	cursor := transcript.Cursor{Recorded: talk.ID, Conversation: talk.ID, Since: time.Now()}
	return transcript.Encode(codexOffset{Cursor: cursor, Home: r.home, HistoryOffset: end}), nil
}

// Accepted looks in the history after the place for a text that was said in the session's pane. A queued text is there at once;
// in the conversation's own file it comes only when the turn takes it.
func (c Codex) Accepted(_ context.Context, talk sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseCodexOffset(since)
	if err != nil || !filepath.IsAbs(from.Home) {
		return false, transcript.InvalidOffset(since)
	}
	var in []string // the conversations in which the text was said since
	_, err = transcript.ReadLines(codexPane{home: from.Home}.historyFile(), from.HistoryOffset, func(line []byte) {
		if h, ok := parseCodexHistoryLine(line); ok && sessions.Fingerprint(h.Text) == sum {
			in = append(in, h.Conversation)
		}
	})
	if err != nil {
		return false, fmt.Errorf("read codex's history: %w", err)
	}
	if len(in) == 0 {
		return false, nil
	}
	r, err := c.inspectPane(talk.Session)
	return slices.ContainsFunc(in, func(id string) bool { return r.owns(id, talk) }), err
}

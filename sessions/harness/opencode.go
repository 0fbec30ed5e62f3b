package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
	"the-loop/sessions/process"
)

// OpenCodeName is OpenCode's name in the configuration.
const OpenCodeName = "opencode"

// OpenCode is OpenCode (measured with 1.18.33). It chooses its conversation id itself. What it took and said is in its
// database; its log tells which conversation the program in a pane is in.
type OpenCode struct {
	Binary string // empty: opencode, from the pane's PATH
}

// Name is [OpenCodeName].
func (o OpenCode) Name() string { return OpenCodeName }

// Capabilities are those of the program: "/" is a command also when it was pasted, "!" a mode of the shell when it is typed, and a
// few words alone end it. A known command opens a list, and a submit that comes with the paste is lost (0 of 4 arrived at 0 ms,
// all at 150 ms). With --session it leaves --prompt aside (1.18.33).
func (o OpenCode) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{ParseScreen: o.ParseScreen, Input: o, ReadTranscript: o.ReadTranscript, TrackConversation: o.TrackConversation,
		Submit: "\r", SubmitDelay: 200 * time.Millisecond, CommandPrefixes: []string{"/", "!"},
		CommandWords: []string{"exit", "quit", ":q"}, Interrupt: "\x1b", CanResume: true, NoPromptOnResume: true, AcceptTimeout: 10 * time.Second,
		MoveKeys: moveKeys(), DenyKeys: denyKeys(), ModeKeys: []string{sessions.KeyTab, sessions.KeyBackTab},
		Trailer: " ", CommandsUnrecorded: true}
}

// Command starts it, or continues a conversation whose id it gave.
func (o OpenCode) Command(l sessions.Launch) (sessions.Command, error) {
	err := refuseArgs("opencode", l.Args, "--session", "-s", "--continue", "-c", "--fork", "--prompt", "--mini", "--")
	if err != nil {
		return sessions.Command{}, err
	}
	argv := []string{orDefault(o.Binary, "opencode")}
	if l.Resume {
		if !sessions.ValidConversation(l.Conversation) {
			return sessions.Command{}, fmt.Errorf("opencode: %q is no id of a conversation", l.Conversation)
		}
		argv = append(argv, "--session", l.Conversation)
	}
	argv = append(argv, l.Args...)
	if l.Prompt != "" {
		argv = append(argv, "--prompt="+l.Prompt) // in one word: one of its own that begins with "-" is taken for a flag
	}
	return sessions.Command{Argv: argv}, nil
}

const (
	openCodePrefix       = "ses_"      // of its own ids
	openCodeStartTimeout = time.Minute // how long the first message is waited for after a start
	openCodePromptDelay  = 3 * time.Second
)

// openCodePane is the program in the pane.
type openCodePane struct {
	process paneProcess
	binary  string
	prompt  string // the first message that it was given
}

func (o OpenCode) inspectPane(session string) (openCodePane, bool) {
	processes, _ := paneProcesses(session)
	for _, p := range processes {
		binary := process.System().Executable(p.PID)
		if strings.HasPrefix(filepath.Base(binary), "opencode") {
			return openCodePane{process: p, binary: binary, prompt: p.flagValue("--prompt")}, true
		}
	}
	return openCodePane{}, false
}

// historyFile is where the submitted texts of all its sessions are, without their sessions.
func (r openCodePane) historyFile() string {
	state := orDefault(r.process.Env["XDG_STATE_HOME"], filepath.Join(r.process.Env["HOME"], ".local", "state"))
	return filepath.Join(state, "opencode", "prompt-history.jsonl")
}

// openCodeText is a text of the user's in the database.
type openCodeText struct {
	Conversation string `json:"conversation"`
	At           int64  `json:"at"` // milliseconds
	Text         string `json:"text"`
}

// userTexts asks the database for the user's texts in conversations of a folder, from a moment on, oldest first.
func (r openCodePane) userTexts(ctx context.Context, cwd string, from int64) ([]openCodeText, error) {
	query := fmt.Sprintf(`select m.session_id as conversation, m.time_created as at, json_extract(p.data,'$.text') as text
		from message m join part p on p.message_id = m.id join session s on s.id = m.session_id
		where s.parent_id is null and s.directory = '%s' and m.time_created >= %d
		and json_extract(m.data,'$.role') = 'user' and json_extract(p.data,'$.type') = 'text'
		and coalesce(json_extract(p.data,'$.synthetic'), 0) = 0 order by m.time_created, p.id`, strings.ReplaceAll(cwd, "'", "''"), from)
	var texts []openCodeText
	if err := r.database().query(ctx, query, &texts); err != nil {
		return nil, err
	}
	return texts, nil
}

// TrackConversation finds the conversation that began with the first message that the program was given, or the only one that began
// since. Once that is known, the log tells which one the program has gone to with /new.
func (o OpenCode) TrackConversation(ctx context.Context, talk sessions.Conversation) (string, error) {
	r, ok := o.inspectPane(talk.Session)
	if strings.HasPrefix(talk.ID, openCodePrefix) {
		if !ok {
			return talk.ID, nil
		}
		return currentOpenCodeConversation(r.logFile(), talk.ID)
	}
	if !ok {
		return "", nil
	}
	texts, err := r.userTexts(ctx, resolveFolder(talk.Cwd), talk.Started.Add(-openCodeStartTimeout).UnixMilli())
	if err != nil {
		return "", err
	}
	var began []string
	for _, t := range texts {
		switch {
		case r.prompt != "" && sessions.Fingerprint(t.Text) == sessions.Fingerprint(r.prompt):
			return t.Conversation, nil
		case !slices.Contains(began, t.Conversation):
			began = append(began, t.Conversation)
		}
	}
	if r.prompt == "" && len(began) == 1 {
		return began[0], nil
	}
	return "", nil
}

func resolveFolder(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// Offset is now, in milliseconds. A [sessions.HeldError] until the first message has been there for a moment: what is typed
// into the first screen goes away with it.
func (o OpenCode) Offset(ctx context.Context, talk sessions.Conversation) (sessions.Offset, error) {
	now := transcript.Encode(openCodeOffset{Since: time.Now()})
	r, ok := o.inspectPane(talk.Session)
	if !ok || r.prompt == "" || time.Since(talk.Started) > openCodeStartTimeout {
		return now, nil
	}
	texts, err := r.userTexts(ctx, resolveFolder(talk.Cwd), talk.Started.Add(-openCodeStartTimeout).UnixMilli())
	if err != nil {
		return "", err
	}
	prompt := sessions.Fingerprint(r.prompt)
	if slices.ContainsFunc(texts, func(t openCodeText) bool {
		return sessions.Fingerprint(t.Text) == prompt && time.Since(time.UnixMilli(t.At)) > openCodePromptDelay
	}) {
		return now, nil
	}
	return "", &sessions.HeldError{State: sessions.ViewStarting}
}

// Accepted asks the database once the history has the text. The history alone proves nothing: it is common to all sessions, has
// no times, leaves repetitions out, and has drafts that were cleared.
func (o OpenCode) Accepted(ctx context.Context, talk sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseOpenCodeOffset(since)
	if err != nil {
		return false, err
	}
	r, ok := o.inspectPane(talk.Session)
	if !ok {
		return false, nil
	}
	found := r.prompt != "" && sessions.Fingerprint(r.prompt) == sum // what it was started with is not in the history
	if _, err := transcript.ReadLines(r.historyFile(), 0, func(line []byte) { found = found || sessions.Fingerprint(parseOpenCodeHistoryLine(line)) == sum }); err != nil {
		return false, fmt.Errorf("read opencode's history: %w", err)
	}
	if !found {
		return false, nil
	}
	texts, err := r.userTexts(ctx, resolveFolder(talk.Cwd), from.Since.UnixMilli())
	return slices.ContainsFunc(texts, func(t openCodeText) bool { return sessions.Fingerprint(t.Text) == sum }), err
}

// parseOpenCodeHistoryLine is a text of the history, with what was pasted in the place of its stand-in.
func parseOpenCodeHistoryLine(line []byte) string {
	var h struct {
		Input string `json:"input"`
		Parts []struct {
			Text   string `json:"text"`
			Source struct {
				Text struct {
					Value string `json:"value"`
				} `json:"text"`
			} `json:"source"`
		} `json:"parts"`
	}
	if json.Unmarshal(line, &h) != nil {
		return ""
	}
	for _, p := range h.Parts {
		if p.Source.Text.Value != "" {
			h.Input = strings.Replace(h.Input, p.Source.Text.Value, p.Text, 1)
		}
	}
	return h.Input
}

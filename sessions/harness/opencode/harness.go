package opencode

import (
	"cmp"
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

// Name is OpenCode's name in the configuration.
const Name = "opencode"

// Harness is OpenCode (measured with 1.18.33). It chooses its conversation id itself. Its database has the texts that it accepted and
// its messages; its log tells which conversation the program in a pane is in.
type Harness struct {
	Binary string // empty: opencode, from the pane's PATH
}

// Name returns [Name].
func (o Harness) Name() string { return Name }

// Capabilities are those of the program: "/" is a command also when it was pasted, "!" a mode of the shell when it is typed, and a
// few words alone end it. A known command opens a list, and a submit that comes with the paste is lost (0 of 4 arrived at 0 ms,
// all at 150 ms). With --session it ignores --prompt (1.18.33).
func (o Harness) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		ParseScreen:       o.ParseScreen,
		Input:             o,
		ReadTranscript:    o.ReadTranscript,
		TrackConversation: o.TrackConversation,

		Submit:             "\r",
		SubmitDelay:        200 * time.Millisecond,
		Interrupt:          "\x1b",
		CommandPrefixes:    []string{"/", "!"},
		CommandWords:       []string{"exit", "quit", ":q"},
		Trailer:            " ",
		AcceptTimeout:      10 * time.Second,
		CanResume:          true,
		CommandsUnrecorded: true,
		NoPromptOnResume:   true,

		MoveKeys: []string{sessions.KeyUp, sessions.KeyDown},
		DenyKeys: []string{sessions.KeyEscape},
		ModeKeys: []string{sessions.KeyTab, sessions.KeyBackTab},
	}
}

// Command starts the program, or resumes a conversation whose id it gave.
func (o Harness) Command(l sessions.Launch) (sessions.Command, error) {
	err := l.RefuseArgs("opencode", "--session", "-s", "--continue", "-c", "--fork", "--prompt", "--mini", "--")
	if err != nil {
		return sessions.Command{}, err
	}
	argv := []string{cmp.Or(o.Binary, "opencode")}
	if l.Resume {
		if !sessions.ValidConversation(l.Conversation) {
			return sessions.Command{}, fmt.Errorf("opencode: %q is no id of a conversation", l.Conversation)
		}
		argv = append(argv, "--session", l.Conversation)
	}
	argv = append(argv, l.Args...)
	if l.Prompt != "" {
		argv = append(argv, "--prompt="+l.Prompt) // in one argument: a separate one that begins with "-" would be a flag
	}
	return sessions.Command{Argv: argv}, nil
}

const (
	idPrefix     = "ses_"      // of the program's own ids
	startTimeout = time.Minute // how long to wait for the first message after a start
	promptDelay  = 3 * time.Second
)

// pane is the program in the pane.
type pane struct {
	process process.Found
	binary  string
	prompt  string // the first message that it was given
}

func (o Harness) inspectPane(session string) (pane, bool) {
	processes, _ := process.System().WithValue(sessions.SessionVariable, session)
	for _, p := range processes {
		binary := process.System().Executable(p.PID)
		if strings.HasPrefix(filepath.Base(binary), "opencode") {
			return pane{process: p, binary: binary, prompt: process.System().FlagValue(p.PID, "--prompt")}, true
		}
	}
	return pane{}, false
}

// historyFile returns the file with the submitted texts of all sessions, which does not say of which.
func (r pane) historyFile() string {
	state := cmp.Or(r.process.Env["XDG_STATE_HOME"], filepath.Join(r.process.Env["HOME"], ".local", "state"))
	return filepath.Join(state, "opencode", "prompt-history.jsonl")
}

// userText is a text of the user's in the database.
type userText struct {
	Conversation string `json:"conversation"`
	At           int64  `json:"at"` // milliseconds
	Text         string `json:"text"`
}

// userTexts returns the user's texts from the database in conversations of a folder, from a moment on, oldest first.
func (r pane) userTexts(ctx context.Context, cwd string, from int64) ([]userText, error) {
	query := fmt.Sprintf(`select m.session_id as conversation, m.time_created as at, json_extract(p.data,'$.text') as text
		from message m join part p on p.message_id = m.id join session s on s.id = m.session_id
		where s.parent_id is null and s.directory = '%s' and m.time_created >= %d
		and json_extract(m.data,'$.role') = 'user' and json_extract(p.data,'$.type') = 'text'
		and coalesce(json_extract(p.data,'$.synthetic'), 0) = 0 order by m.time_created, p.id`, strings.ReplaceAll(cwd, "'", "''"), from)
	var texts []userText
	if err := r.database().query(ctx, query, &texts); err != nil {
		return nil, err
	}
	return texts, nil
}

// TrackConversation finds the conversation that began with the first message that the program was given, or the only one that began
// since. Once that is known, the log tells to which one the program has switched with /new.
func (o Harness) TrackConversation(ctx context.Context, conv sessions.Conversation) (string, error) {
	r, ok := o.inspectPane(conv.Session)
	if strings.HasPrefix(conv.ID, idPrefix) {
		if !ok {
			return conv.ID, nil
		}
		return currentConversation(r.logFile(), conv.ID)
	}
	if !ok {
		return "", nil
	}
	texts, err := r.userTexts(ctx, transcript.Folder(conv.Cwd), conv.Started.Add(-startTimeout).UnixMilli())
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

// Offset returns the current time. A [sessions.HeldError] until the first message has been there for a moment: what is typed into the
// first screen is lost with it.
func (o Harness) Offset(ctx context.Context, conv sessions.Conversation) (sessions.Offset, error) {
	now := transcript.Encode(transcriptOffset{Since: time.Now()})
	r, ok := o.inspectPane(conv.Session)
	if !ok || r.prompt == "" || time.Since(conv.Started) > startTimeout {
		return now, nil
	}
	texts, err := r.userTexts(ctx, transcript.Folder(conv.Cwd), conv.Started.Add(-startTimeout).UnixMilli())
	if err != nil {
		return "", err
	}
	prompt := sessions.Fingerprint(r.prompt)
	if slices.ContainsFunc(texts, func(t userText) bool {
		return sessions.Fingerprint(t.Text) == prompt && time.Since(time.UnixMilli(t.At)) > promptDelay
	}) {
		return now, nil
	}
	return "", &sessions.HeldError{State: sessions.ViewStarting}
}

// Accepted asks the database once the history has the text. The history alone proves nothing: all sessions share it, and it has no
// times, omits repetitions and contains cleared drafts.
func (o Harness) Accepted(ctx context.Context, conv sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	from, err := parseOffset(since)
	if err != nil {
		return false, err
	}
	r, ok := o.inspectPane(conv.Session)
	if !ok {
		return false, nil
	}
	found := r.prompt != "" && sessions.Fingerprint(r.prompt) == sum // what it was started with is not in the history
	if _, err := transcript.ReadLines(r.historyFile(), 0, func(line []byte) { found = found || sessions.Fingerprint(parseHistoryLine(line)) == sum }); err != nil {
		return false, fmt.Errorf("read opencode's history: %w", err)
	}
	if !found {
		return false, nil
	}
	texts, err := r.userTexts(ctx, transcript.Folder(conv.Cwd), from.Since.UnixMilli())
	return slices.ContainsFunc(texts, func(t userText) bool { return sessions.Fingerprint(t.Text) == sum }), err
}

// parseHistoryLine returns a text of the history, with each paste in the place of its mark.
func parseHistoryLine(line []byte) string {
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

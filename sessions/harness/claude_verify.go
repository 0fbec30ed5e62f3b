package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/transcript"
)

// Offset is the end of the transcript of the conversation that the pane is in now. A [sessions.HeldError] while the agent
// starts, and while a text waits in its queue: another one might overtake it.
func (c Claude) Offset(_ context.Context, talk sessions.Conversation) (sessions.Offset, error) {
	p, starts, path := claudeOffset{Cursor: transcript.Cursor{Recorded: talk.ID, Conversation: talk.ID}}, false, ""
	err := c.withFacts(talk, func(facts *report.Facts, end int64) {
		starts, p.Reports = isStarting(facts.Launch, time.Now()), end
		if now := facts.CurrentConversation(talk.ID); now != "" {
			p.Conversation = now
		}
		path = facts.Conversations[p.Conversation].Path
	})
	switch {
	case err != nil:
		return "", err
	case starts && !talk.Started.IsZero():
		return "", &sessions.HeldError{State: sessions.ViewStarting}
	case path == "":
		if path, err = c.defaultTranscriptFile(talk, p.Conversation); err != nil {
			return "", err
		}
	}
	if !talk.Started.IsZero() {
		if queued, err := isClaudeInputQueued(path, talk.Started, time.Now()); err != nil {
			return "", err
		} else if queued {
			return "", &sessions.HeldError{State: sessions.ViewWorking}
		}
	}
	if p.Cursor.Offset, err = transcript.End(path); err != nil {
		return "", fmt.Errorf("read the transcript: %w", err)
	}
	return transcript.Encode(p), nil
}

// Accepted looks in the transcript, where each text is one line: of the queue when a turn runs, of the user otherwise. The
// UserPromptSubmit report comes when a queued text leaves the queue (2.1.197), so that the one of an earlier equal text
// would look like the one of this; it counts only where no transcript is kept.
func (c Claude) Accepted(_ context.Context, talk sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	p, err := parseClaudeOffset(since)
	if err != nil {
		return false, err
	}
	reports, _, err := c.readReports(talk, p.Reports)
	if err != nil {
		return false, err
	}
	found, err := c.transcriptHas(talk, p.Conversation, p.Cursor.Offset, sum)
	if found || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	kept := err == nil
	for _, r := range reports {
		switch {
		case r.Event == report.EventSessionStart && startSource(r) == "clear":
			found, err = c.transcriptHas(talk, r.Conversation, 0, sum)
			kept = kept || err == nil
			if found || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return found, err
			}
		case r.Event == report.EventPromptSubmit && !kept && time.Since(r.At) > time.Second:
			if claudeMatchesSum(reportedPrompt(r), sum) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (c Claude) transcriptHas(talk sessions.Conversation, id string, from int64, sum sessions.Sum) (bool, error) {
	path, err := c.transcriptFile(talk, id)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(path); err != nil {
		return false, err
	}
	found := false
	_, err = transcript.ReadLines(path, from, func(line []byte) {
		if text, ok := parseClaudeInput(line); ok && claudeMatchesSum(text, sum) {
			found = true
		}
	})
	return found, err
}

// transcriptFile is where a conversation is written: as the agent reported it, or by the rule that it follows.
func (c Claude) transcriptFile(talk sessions.Conversation, id string) (string, error) {
	path := ""
	if err := c.withFacts(talk, func(facts *report.Facts, _ int64) { path = facts.Conversations[id].Path }); path != "" || err != nil {
		return path, err
	}
	return c.defaultTranscriptFile(talk, id)
}

func (c Claude) defaultTranscriptFile(talk sessions.Conversation, id string) (string, error) {
	if !sessions.ValidConversation(id) {
		return "", fmt.Errorf("%q is no id of a conversation", id)
	}
	dir, err := c.configDir(nil)
	if err != nil {
		return "", err
	}
	cwd := talk.Cwd
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	return filepath.Join(dir, "projects", claudeProjectName(cwd), id+".jsonl"), nil
}

// maxProjectName is the length from which the name of a project's folder ends in a hash (2.1.197).
const maxProjectName = 200

// claudeProjectName is the name of the folder for the conversations of a working folder: everything but letters and digits
// becomes a dash, counted in UTF-16 units; what is too long is cut, and ends in the hash that Java has for strings.
func claudeProjectName(cwd string) string {
	units := utf16.Encode([]rune(cwd))
	name := make([]byte, 0, len(units))
	var hash int32
	for _, u := range units {
		hash = hash<<5 - hash + int32(u)
		if u < 0x80 && (u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z' || u >= '0' && u <= '9') {
			name = append(name, byte(u))
		} else {
			name = append(name, '-')
		}
	}
	if len(name) <= maxProjectName {
		return string(name)
	}
	return string(name[:maxProjectName]) + "-" + strconv.FormatInt(max(int64(hash), -int64(hash)), 36)
}

// claudeInputEntry is a line of a transcript, as far as it tells of what was submitted.
type claudeInputEntry struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype"`
	Operation    string          `json:"operation"`
	Content      json.RawMessage `json:"content"`
	PromptSource string          `json:"promptSource"`
	Meta         bool            `json:"isMeta"`
	Sidechain    bool            `json:"isSidechain"`
	Message      struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// parseClaudeInput is the text that a line shows to have been submitted, at the moment when it was.
func parseClaudeInput(line []byte) (string, bool) {
	var l claudeInputEntry
	if json.Unmarshal(line, &l) != nil || l.Sidechain || l.Meta {
		return "", false
	}
	switch {
	case l.Type == "queue-operation" && l.Operation == "enqueue":
		return textOf(l.Content), true
	case l.Type == "user" && l.PromptSource != "queued": // a queued one was counted when it went into the queue
		text := textOf(l.Message.Content)
		return text, text != ""
	case l.Type == "system" && l.Subtype == "local_command":
		text := textOf(l.Content)
		return text, strings.HasPrefix(typedCommand(text), "/")
	}
	return "", false
}

// textOf is the text of a message's content: a string, or blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" || b.Type == "input_text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

var (
	commandName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^\s*<command-name>(/[^<]*)</command-name>`) })
	commandArgs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<command-args>(.*?)</command-args>`) })
	pastedTag   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`</?pasted_content\b[^>]*>`) })
)

// typedCommand is a command as it was typed, where the text is Claude Code's note of one.
func typedCommand(text string) string {
	name := commandName().FindStringSubmatch(text)
	if name == nil {
		return text
	}
	if args := commandArgs().FindStringSubmatch(text); args != nil {
		return name[1] + " " + args[1]
	}
	return name[1]
}

// matchesSum compares words only, with and without the wrapper that newer versions put around long pastes.
func matchesSum(text string, sum sessions.Sum) bool {
	return sessions.Fingerprint(text) == sum || sessions.Fingerprint(pastedTag().ReplaceAllString(text, " ")) == sum
}

// claudeMatchesSum compares a text of the transcript: as it is, since people write what looks like Claude Code's own notes too,
// and as such a note.
func claudeMatchesSum(text string, sum sessions.Sum) bool {
	return matchesSum(normalizeClaudeText(text), sum) || matchesSum(normalizeClaudeText(typedCommand(text)), sum)
}

var (
	claudeImageMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[Image #\d+\]`) })
	claudeImagePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^["']?/.*\.(png|jpe?g|gif|webp)["']?$`) })
)

// Normalize leaves out what Claude Code takes for an image that was dropped into the box: a line, or what follows a blank, that
// is the path of one. It puts a mark at the front of the text in its place (2.1.197), if it can read the image.
func (c Claude) Normalize(text string) string { return normalizeClaudeText(text) }

func normalizeClaudeText(text string) string {
	var rest []string
	for line := range strings.SplitSeq(claudeImageMark().ReplaceAllString(text, " "), "\n") {
		for _, piece := range strings.Split(strings.ReplaceAll(line, " /", "\n/"), "\n") {
			if !claudeImagePath().MatchString(strings.TrimSpace(piece)) {
				rest = append(rest, piece)
			}
		}
	}
	return strings.Join(rest, "\n")
}

func startSource(r report.Report) string {
	var said struct {
		Source string `json:"source"`
	}
	_ = json.Unmarshal(r.Payload, &said)
	return said.Source
}

func reportedPrompt(r report.Report) string {
	var said struct {
		Prompt string `json:"prompt"`
	}
	_ = json.Unmarshal(r.Payload, &said)
	return said.Prompt
}

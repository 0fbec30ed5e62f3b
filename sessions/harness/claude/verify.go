package claude

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

// Offset returns the end of the transcript of the conversation that the pane is in now. A [sessions.HeldError] while the agent
// starts, and while a text waits in its queue: another one might overtake it.
func (c Harness) Offset(_ context.Context, conv sessions.Conversation) (sessions.Offset, error) {
	p, starts, path := transcriptOffset{Cursor: transcript.Cursor{Recorded: conv.ID, Conversation: conv.ID}}, false, ""
	err := c.withFacts(conv, func(facts *report.Facts, end int64) {
		starts, p.Reports = isStarting(facts.Launch, time.Now()), end
		if now := facts.CurrentConversation(conv.ID); now != "" {
			p.Conversation = now
		}
		path = facts.Conversations[p.Conversation].Path
	})
	switch {
	case err != nil:
		return "", err
	case starts && !conv.Started.IsZero():
		return "", &sessions.HeldError{State: sessions.ViewStarting}
	case path == "":
		if path, err = c.defaultTranscriptFile(conv, p.Conversation); err != nil {
			return "", err
		}
	}
	if !conv.Started.IsZero() {
		if queued, err := isInputQueued(path, conv.Started, time.Now()); err != nil {
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
// UserPromptSubmit report comes when a queued text leaves the queue (2.1.197), so that the report of an
// earlier equal text would look like that of this one; it counts only where no transcript is kept.
func (c Harness) Accepted(_ context.Context, conv sessions.Conversation, since sessions.Offset, sum sessions.Sum) (bool, error) {
	p, err := parseOffset(since)
	if err != nil {
		return false, err
	}
	reports, _, err := c.readReports(conv, p.Reports)
	if err != nil {
		return false, err
	}
	found, err := c.transcriptHas(conv, p.Conversation, p.Cursor.Offset, sum)
	if found || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	kept := err == nil
	for _, r := range reports {
		switch {
		case r.Event == report.EventSessionStart && startSource(r) == "clear":
			found, err = c.transcriptHas(conv, r.Conversation, 0, sum)
			kept = kept || err == nil
			if found || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return found, err
			}
		case r.Event == report.EventPromptSubmit && !kept && time.Since(r.At) > time.Second:
			if matchesSum(reportedPrompt(r), sum) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (c Harness) transcriptHas(conv sessions.Conversation, id string, from int64, sum sessions.Sum) (bool, error) {
	path, err := c.transcriptFile(conv, id)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(path); err != nil {
		return false, err
	}
	found := false
	_, err = transcript.ReadLines(path, from, func(line []byte) {
		if text, ok := parseInput(line); ok && matchesSum(text, sum) {
			found = true
		}
	})
	return found, err
}

// transcriptFile returns the file of a conversation: as the agent reported it, or where it is by default.
func (c Harness) transcriptFile(conv sessions.Conversation, id string) (string, error) {
	path := ""
	if err := c.withFacts(conv, func(facts *report.Facts, _ int64) { path = facts.Conversations[id].Path }); path != "" || err != nil {
		return path, err
	}
	return c.defaultTranscriptFile(conv, id)
}

func (c Harness) defaultTranscriptFile(conv sessions.Conversation, id string) (string, error) {
	if !sessions.ValidConversation(id) {
		return "", fmt.Errorf("%q is no id of a conversation", id)
	}
	dir, err := c.configDir(nil)
	if err != nil {
		return "", err
	}
	cwd := transcript.Folder(conv.Cwd)
	return filepath.Join(dir, "projects", projectName(cwd), id+".jsonl"), nil
}

// maxProjectName is the length from which the name of a project's folder ends in a hash (2.1.197).
const maxProjectName = 200

// projectName returns the name of the folder of a working folder's conversations: everything but letters and digits
// becomes a dash, counted in UTF-16 units; what is too long is cut, and ends in the hash that Java has for strings.
func projectName(cwd string) string {
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

// inputEntry is a line of a transcript, as far as submitted texts need it.
type inputEntry struct {
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

// parseInput returns the text that a line shows to have been submitted just then.
func parseInput(line []byte) (string, bool) {
	var l inputEntry
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

// textOf returns the text of a message's content: a string, or blocks.
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

// typedCommand returns a command as it was typed, where the text is Claude Code's note of one.
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

// equalsSum compares a text with a sum, with and without the tags that newer versions put around long pastes.
func equalsSum(text string, sum sessions.Sum) bool {
	return sessions.Fingerprint(text) == sum || sessions.Fingerprint(pastedTag().ReplaceAllString(text, " ")) == sum
}

// matchesSum compares a text of the transcript with a sum: as it is, and as Claude Code's note of a command. People write what
// looks like such notes too.
func matchesSum(text string, sum sessions.Sum) bool {
	return equalsSum(normalizeText(text), sum) || equalsSum(normalizeText(typedCommand(text)), sum)
}

var (
	imageMarkPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[Image #\d+\]`) })
	imagePathPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^["']?/.*\.(png|jpe?g|gif|webp)["']?$`) })
)

// Normalize removes the paths of images, and the marks that Claude Code puts at the front of the text instead of them where it can
// read the image (2.1.197).
func (c Harness) Normalize(text string) string { return normalizeText(text) }

func normalizeText(text string) string {
	var rest []string
	for line := range strings.SplitSeq(imageMarkPattern().ReplaceAllString(text, " "), "\n") {
		for _, piece := range strings.Split(strings.ReplaceAll(line, " /", "\n/"), "\n") {
			if !imagePathPattern().MatchString(strings.TrimSpace(piece)) {
				rest = append(rest, piece)
			}
		}
	}
	return strings.Join(rest, "\n")
}

func startSource(r report.Report) string {
	var payload struct {
		Source string `json:"source"`
	}
	_ = json.Unmarshal(r.Payload, &payload)
	return payload.Source
}

func reportedPrompt(r report.Report) string {
	var payload struct {
		Prompt string `json:"prompt"`
	}
	_ = json.Unmarshal(r.Payload, &payload)
	return payload.Prompt
}

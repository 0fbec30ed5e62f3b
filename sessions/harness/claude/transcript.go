package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/transcript"
)

// ReadTranscript reads the transcript, and follows /clear and /resume through the reports. What subagents say is left out.
func (c Harness) ReadTranscript(_ context.Context, conv sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startOffset(conv, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	reports, end, err := c.readReports(conv, s.Reports)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	e := &transcriptReader{claude: c, conversation: conv, offset: s}
	var quiet time.Time
	for _, r := range reports {
		if isIdle(r) && r.Conversation == e.offset.Conversation {
			quiet = r.At
		}
		if r.Event != report.EventSessionStart || r.Conversation == e.offset.Conversation || !sessions.ValidConversation(r.Conversation) {
			continue
		}
		if since != "" || !r.At.Before(s.Since) {
			err = errors.Join(err, e.read())
		}
		e.offset.SwitchTo(r.Conversation, transcript.Later(s.Since, r.At))
	}
	e.offset.Reports = end
	if err = errors.Join(err, e.read(), e.followRecorded()); err != nil {
		return sessions.TranscriptBatch{}, err
	}
	if e.offset.Turn.Since.Before(quiet) {
		e.offset.Turn = e.offset.Turn.End(quiet)
	}
	e.batch.Next, e.batch.Turn = transcript.Encode(e.offset), e.offset.Turn
	return e.batch, nil
}

// transcriptReader reads the messages after an offset.
type transcriptReader struct {
	claude       Harness
	conversation sessions.Conversation
	offset       transcriptOffset
	batch        sessions.TranscriptBatch
}

// followRecorded switches to the session's recorded conversation where that has changed without a report: it is a fresh one, and
// there are no hooks.
func (e *transcriptReader) followRecorded() error {
	if e.conversation.ID == e.offset.Recorded {
		return nil
	}
	e.offset.Recorded = e.conversation.ID
	known := false
	err := e.claude.withFacts(e.conversation, func(facts *report.Facts, _ int64) { _, known = facts.Conversations[e.conversation.ID] })
	if err != nil || e.conversation.ID == e.offset.Conversation || known {
		return err
	}
	e.offset.SwitchTo(e.conversation.ID, time.Time{})
	return e.read()
}

// read reads the transcript of the current conversation to its end.
func (e *transcriptReader) read() error {
	path, err := e.transcriptFile()
	if err != nil {
		return err
	}
	l := transcriptParser{transcript.NewTurnParser(e.offset.Turn, e.offset.Offset)}
	end, err := transcript.ReadLines(path, e.offset.Offset, l.parseLine)
	if err != nil {
		return fmt.Errorf("read the transcript: %w", err)
	}
	e.offset.Turn, e.offset.Offset = l.Turn, l.ReadOn(end)
	for _, m := range l.Messages {
		if e.offset.Counts(m) {
			e.batch.Messages = append(e.batch.Messages, m)
		}
	}
	e.batch.WatchFiles = []string{path}
	if file, err := report.Path(e.claude.ReportDir, e.conversation.Session); err == nil && len(e.claude.Hook) > 0 {
		e.batch.WatchFiles = append(e.batch.WatchFiles, file)
	}
	return nil
}

// transcriptFile returns the file of the current conversation, and remembers it once it is there.
func (e *transcriptReader) transcriptFile() (string, error) {
	if e.offset.File != "" {
		return e.offset.File, nil
	}
	path, err := e.claude.transcriptFile(e.conversation, e.offset.Conversation)
	if err != nil {
		return "", err
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		e.offset.File = path
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read the transcript: %w", err)
	}
	return path, nil
}

// transcriptParser collects the messages in the lines of a transcript. A text whose stop reason is null, as older versions write it,
// is pending until the next line.
type transcriptParser struct{ transcript.TurnParser }

func (l *transcriptParser) parseLine(line []byte) {
	start := l.Next(line)
	var a transcriptEntry
	if json.Unmarshal(line, &a) != nil || a.Sidechain {
		return
	}
	l.Turn = a.nextTurn(l.Turn)
	switch {
	case a.Type == "assistant" && a.Message.Model == syntheticModel && !a.Error:
	case a.Type == "assistant":
		l.addMessage(a, start)
	case a.Type == "user":
		l.FlushPending(!a.isToolResult())
	case a.Type == "system" && a.Subtype == "turn_duration":
		l.FlushPending(true)
	}
}

func (l *transcriptParser) addMessage(a transcriptEntry, start int64) {
	l.FlushPending(false)
	text := textOf(a.Message.Content)
	if text == "" {
		return
	}
	m := sessions.AgentMessage{Text: text, Failed: a.Error, At: a.Timestamp, Key: cmp.Or(a.UUID, fmt.Sprintf("%s@%d", a.Session, start))}
	if a.Message.Stop == nil {
		l.AddPending(m, start)
		return
	}
	m.Final = !a.continuesTurn()
	l.Messages = append(l.Messages, m)
}

// syntheticModel is the model of what the program says itself: errors, and notes that nobody needs to read.
const syntheticModel = "<synthetic>"

// transcriptEntry is a line of a transcript, as far as messages and turns need it.
type transcriptEntry struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"`
	Sidechain bool      `json:"isSidechain"`
	Error     bool      `json:"isApiErrorMessage"`
	Meta      bool      `json:"isMeta"`
	Compact   bool      `json:"isCompactSummary"`
	UUID      string    `json:"uuid"`
	Session   string    `json:"sessionId"`
	Timestamp time.Time `json:"timestamp"`
	Message   struct {
		Model   string          `json:"model"`
		Stop    *string         `json:"stop_reason"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// isToolResult reports whether the entry is a tool's result, which has the type of a user's message.
func (a transcriptEntry) isToolResult() bool {
	var blocks []struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(a.Message.Content, &blocks) == nil && len(blocks) > 0 && blocks[0].Type == "tool_result"
}

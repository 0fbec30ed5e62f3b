package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// ReadTranscript reads the file of the conversation, and follows /new, /clear and /resume by the files that the pane's process has
// open. It looks at the processes, which takes milliseconds, only when a text was submitted since.
func (c Harness) ReadTranscript(ctx context.Context, conv sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startOffset(conv, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	var batch sessions.TranscriptBatch
	if s.File != "" {
		err = readTranscript(&s, &batch)
	}
	if at := lastHistoryChange(s.File); err == nil && (s.File == "" || at != s.HistoryChanged || time.Now().Unix()-at < openDelay) {
		s.HistoryChanged = at
		err = c.followPane(ctx, conv, &s, &batch)
	}
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	if s.Recorded = conv.ID; s.File != "" {
		batch.WatchFiles = []string{historyBeside(s.File), s.File}
	}
	batch.Next, batch.Turn = transcript.Encode(s), s.Turn
	return batch, nil
}

// openDelay is how many seconds after a text the program may open the file of its conversation.
const openDelay = 3

// historyBeside returns the history of a conversation's file, which is below sessions/YEAR/MONTH/DAY.
func historyBeside(file string) string {
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "history.jsonl")
}

// lastHistoryChange returns when a text was submitted last, in Unix seconds; 0: that is not known.
func lastHistoryChange(file string) int64 {
	info, err := os.Stat(historyBeside(file))
	if err != nil {
		return 0
	}
	return info.ModTime().Unix()
}

// followPane switches to the conversation that the pane is in now, if that is another one.
func (c Harness) followPane(ctx context.Context, conv sessions.Conversation, s *transcriptOffset, batch *sessions.TranscriptBatch) error {
	r, err := c.inspectPane(conv.Session)
	if err != nil {
		return err
	}
	batch.WatchFiles = []string{r.historyFile()}
	now, err := c.TrackConversation(ctx, conv)
	if err != nil || now == "" || now == s.Conversation && s.File != "" {
		return err
	}
	if err := r.switchTo(s, now); err != nil || s.File == "" {
		return err
	}
	return readTranscript(s, batch)
}

// switchTo switches to another conversation. If it began before the current one, it counts only from now on.
func (r pane) switchTo(s *transcriptOffset, id string) error {
	file := r.files[id]
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read codex's conversation: %w", err)
	}
	began := readRolloutHead(file).Timestamp
	if s.File != "" && began.Before(readRolloutHead(s.File).Timestamp) {
		s.Offset = info.Size()
	} else {
		s.Offset = 0
	}
	s.Conversation, s.File, s.Turn = id, file, sessions.Turn{}
	return nil
}

func readTranscript(s *transcriptOffset, batch *sessions.TranscriptBatch) error {
	l := transcriptParser{conversation: s.Conversation, TurnParser: transcript.NewTurnParser(s.Turn, s.Offset)}
	end, err := transcript.ReadLines(s.File, s.Offset, l.parseLine)
	if err != nil {
		return fmt.Errorf("read codex's conversation: %w", err)
	}
	s.Turn, s.Offset = l.Turn, l.ReadOn(end)
	for _, m := range l.Messages {
		if s.Counts(m) {
			batch.Messages = append(batch.Messages, m)
		}
	}
	return nil
}

// transcriptParser collects the messages in the lines of a conversation. The line after a text tells whether it ends the turn.
type transcriptParser struct {
	transcript.TurnParser
	conversation string
}

// transcriptEntry is a line of a conversation, as far as messages and turns need it.
type transcriptEntry struct {
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
	Payload   struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"payload"`
}

func (l *transcriptParser) parseLine(line []byte) {
	start := l.Next(line)
	var e transcriptEntry
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch p := e.Payload; {
	case e.Type == "response_item" && p.Type == "message" && p.Role == "assistant":
		l.FlushPending(false)
		text := ""
		for _, c := range p.Content {
			if c.Type == "output_text" {
				text += c.Text
			}
		}
		l.AddPending(sessions.AgentMessage{Text: text, At: e.Timestamp, Key: fmt.Sprintf("%s@%d", l.conversation, start)}, start)
	case e.Type == "response_item" && p.Type != "reasoning" && p.Role == "":
		l.FlushPending(false) // a tool
	case e.Type == "event_msg" && p.Type == "task_started":
		l.Turn = l.Turn.Begin(e.Timestamp)
	case e.Type == "event_msg" && (p.Type == "task_complete" || p.Type == "turn_aborted"):
		l.Turn = l.Turn.End(e.Timestamp)
		l.FlushPending(true)
		if p.Error != nil && p.Error.Message != "" {
			l.Messages = append(l.Messages, sessions.AgentMessage{Text: p.Error.Message, Final: true, Failed: true, At: e.Timestamp,
				Key: fmt.Sprintf("%s@%d", l.conversation, start)})
		}
	}
}

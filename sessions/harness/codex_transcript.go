package harness

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
// open. It looks at the processes only when something was said since: that takes milliseconds.
func (c Codex) ReadTranscript(ctx context.Context, talk sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startCodexOffset(talk, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	var told sessions.TranscriptBatch
	if s.File != "" {
		err = readCodexTranscript(&s, &told)
	}
	if at := lastHistoryChange(s.File); err == nil && (s.File == "" || at != s.HistoryChanged || time.Now().Unix()-at < codexOpenDelay) {
		s.HistoryChanged = at
		err = c.followPane(ctx, talk, &s, &told)
	}
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	if s.Recorded = talk.ID; s.File != "" {
		told.WatchFiles = []string{historyBeside(s.File), s.File}
	}
	told.Next, told.Turn = transcript.Encode(s), s.Turn
	return told, nil
}

// codexOpenDelay is for how many seconds after a text the file of its conversation may not be open yet.
const codexOpenDelay = 3

// historyBeside is the history beside the file of a conversation, which lies in sessions/YEAR/MONTH/DAY.
func historyBeside(file string) string {
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "history.jsonl")
}

// lastHistoryChange is when something was said last, in seconds since 1970; 0: that is not known.
func lastHistoryChange(file string) int64 {
	info, err := os.Stat(historyBeside(file))
	if err != nil {
		return 0
	}
	return info.ModTime().Unix()
}

// followPane goes on in the conversation that the pane is in now, when that is another one.
func (c Codex) followPane(ctx context.Context, talk sessions.Conversation, s *codexOffset, told *sessions.TranscriptBatch) error {
	r, err := c.inspectPane(talk.Session)
	if err != nil {
		return err
	}
	told.WatchFiles = []string{r.historyFile()}
	now, err := c.TrackConversation(ctx, talk)
	if err != nil || now == "" || now == s.Conversation && s.File != "" {
		return err
	}
	if err := r.switchTo(s, now); err != nil || s.File == "" {
		return err
	}
	return readCodexTranscript(s, told)
}

// enter goes on in another conversation. Of one that began before the last was read, what was said until now is old.
func (r codexPane) switchTo(s *codexOffset, id string) error {
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

func readCodexTranscript(s *codexOffset, told *sessions.TranscriptBatch) error {
	l := codexParser{conversation: s.Conversation, TurnParser: transcript.NewTurnParser(s.Turn, s.Offset)}
	end, err := transcript.ReadLines(s.File, s.Offset, l.parseLine)
	if err != nil {
		return fmt.Errorf("read codex's conversation: %w", err)
	}
	s.Turn, s.Offset = l.Turn, l.ReadOn(end)
	for _, m := range l.Messages {
		if s.Counts(m) {
			told.Messages = append(told.Messages, m)
		}
	}
	return nil
}

// codexParser gathers what the lines of a conversation say. Whether a text ends the turn is known by the line after it.
type codexParser struct {
	transcript.TurnParser
	conversation string
}

// codexEntry is a line of a conversation, as far as it tells of what the agent said.
type codexEntry struct {
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

func (l *codexParser) parseLine(line []byte) {
	start := l.Next(line)
	var e codexEntry
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

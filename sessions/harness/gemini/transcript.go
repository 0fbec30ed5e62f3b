package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// ReadTranscript reads the files of the conversation, and follows /clear by the log. Only the next entry
// tells whether a text ended the turn: when none comes for a while and the screen is ready, it did.
func (g Harness) ReadTranscript(ctx context.Context, conv sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startOffset(conv, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	next, err := g.nextConversation(ctx, conv, &s)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	var batch sessions.TranscriptBatch
	if next != "" {
		if err := s.read(&batch); err != nil {
			return sessions.TranscriptBatch{}, err
		}
		s.finishPending(&batch) // nothing more comes there
		s.Conversation, s.LastKey, s.Turn = next, "", sessions.Turn{}
	}
	if err := s.readUntilIdle(ctx, conv, &batch); err != nil {
		return sessions.TranscriptBatch{}, err
	}
	batch.Next, batch.WatchFiles = transcript.Encode(s), s.watchedFiles()
	return batch, nil
}

// logModTime returns when the log was changed last; 0: there is none.
func (s transcriptOffset) logModTime() int64 {
	info, err := os.Stat(filepath.Join(s.Dir, "logs.json"))
	if s.Dir == "" || err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// nextConversation returns the conversation that the pane has switched to; empty: it has not. It looks at the pane's process only when
// the log was changed, and for a while after: a conversation that /clear begins has no file at first.
func (g Harness) nextConversation(ctx context.Context, conv sessions.Conversation, s *transcriptOffset) (string, error) {
	changed := s.logModTime()
	if s.Dir != "" && changed == s.LogSeen && time.Since(time.Unix(0, changed)) > 2*maxClearDelay && conv.ID == s.Conversation {
		return "", nil
	}
	r, err := g.inspectPane(conv)
	if err != nil {
		return "", err
	}
	if s.projectsFile = r.projectsFile; r.projectDir != "" {
		s.Dir = r.projectDir
	}
	s.LogSeen = changed
	now, err := g.TrackConversation(ctx, conv)
	if err != nil || now == s.Conversation {
		return "", err
	}
	return now, nil
}

// files returns the files of the conversation. A resumed one has an empty file beside its own.
func (s transcriptOffset) files() []string {
	if s.Dir == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(s.Dir, "chats", "session-*-"+s.Conversation[:min(8, len(s.Conversation))]+".jsonl")) // the pattern is well formed
	var ours []string
	for _, file := range files {
		var head struct {
			ID string `json:"sessionId"`
		}
		if transcript.DecodeFirstLine(file, &head) == nil && head.ID == s.Conversation {
			ours = append(ours, file)
		}
	}
	return ours
}

func (s transcriptOffset) watchedFiles() []string {
	if s.Dir == "" {
		return []string{s.projectsFile}
	}
	return append([]string{filepath.Join(s.Dir, "logs.json")}, s.files()...)
}

// pendingText is a text of which only the next entry tells whether it ended the turn.
type pendingText struct {
	message sessions.AgentMessage
	file    string
	end     int64 // offset to read on from once the text is final
}

// read reads the conversation to its end.
func (s *transcriptOffset) read(batch *sessions.TranscriptBatch) error {
	s.pending = nil
	for _, file := range s.files() {
		name := filepath.Base(file)
		l := transcriptParser{lastKey: s.LastKey, TurnParser: transcript.NewTurnParser(s.Turn, s.Files[name])}
		end, err := transcript.ReadLines(file, s.Files[name], l.parseLine)
		if err != nil {
			return fmt.Errorf("read gemini's conversation: %w", err)
		}
		if s.Files[name] = l.ReadOn(end); len(l.Pending) > 0 {
			s.pending = &pendingText{message: l.Pending[0], file: name, end: end}
		}
		s.LastKey, s.Turn = l.lastKey, l.Turn
		for _, m := range l.Messages {
			s.addMessage(batch, m)
		}
	}
	batch.Turn = s.Turn
	return nil
}

func (s *transcriptOffset) addMessage(batch *sessions.TranscriptBatch, m sessions.AgentMessage) {
	if !m.At.Before(s.Since) {
		batch.Messages = append(batch.Messages, m)
	}
}

// finishPending adds the pending text as one that ended its turn.
func (s *transcriptOffset) finishPending(batch *sessions.TranscriptBatch) {
	if s.pending == nil {
		return
	}
	w := s.pending
	w.message.Final = true
	s.addMessage(batch, w.message)
	s.Files[w.file], s.LastKey, s.Turn, s.pending = w.end, w.message.Key, s.Turn.End(w.message.At), nil
	batch.Turn = s.Turn
}

// How long a text must be the last one before the screen, which changes a little later, tells whether it ended the turn; how often
// the screen is read then, and for how long.
const (
	idleDelay    = 400 * time.Millisecond
	pollInterval = 100 * time.Millisecond
	idleTimeout  = 1500 * time.Millisecond
)

// readUntilIdle reads to the end. If a text is pending there, it waits a while for the end of the turn.
func (s *transcriptOffset) readUntilIdle(ctx context.Context, conv sessions.Conversation, batch *sessions.TranscriptBatch) error {
	looking, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	for idle := 0; ; {
		before := transcript.Encode(s)
		if err := s.read(batch); err != nil {
			return err
		}
		switch {
		case s.pending == nil, conv.IsIdle == nil:
			return nil
		case transcript.Encode(s) != before:
			idle = 0
		case idle >= 2:
			s.finishPending(batch)
			return nil
		}
		ok, err := s.waitIdle(looking, conv)
		switch {
		case looking.Err() != nil:
			return nil // the next read tries again
		case err != nil:
			return err
		case ok:
			idle++
		default:
			idle = 0
		}
	}
}

// waitIdle reports whether the screen is ready, once the pending text has been the last one for long enough.
func (s *transcriptOffset) waitIdle(ctx context.Context, conv sessions.Conversation) (bool, error) {
	wait := time.NewTimer(max(pollInterval, idleDelay-time.Since(s.pending.message.At)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-wait.C:
		return conv.IsIdle(ctx)
	}
}

// transcriptParser collects the messages in the lines of a conversation. A message is written again with the tools that it called,
// once they are done.
type transcriptParser struct {
	transcript.TurnParser
	lastKey string // of the last message that was collected
}

// message is a line of a conversation, as far as messages and turns need it.
type message struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"timestamp"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Tools   []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// cancelledText is written when Escape has ended a turn.
const cancelledText = "Request cancelled."

func (l *transcriptParser) parseLine(line []byte) {
	start := l.Next(line)
	var m message
	if json.Unmarshal(line, &m) != nil || m.ID == "" {
		return
	}
	switch {
	case m.Type == "gemini":
		l.addMessage(m, start)
	case m.Type == "user" && bytes.Contains(m.Content, []byte(`"functionResponse"`)) && m.text() == "":
		l.flushLast(false) // a tool's result, which has the type of a user's message
	case m.Type == "user":
		l.flushLast(true)
		l.Turn = l.Turn.Begin(m.At)
	case m.Type == "error" && len(l.Pending) > 0: // of a command: the pending text has ended the turn
		l.Turn = l.Turn.End(m.At)
		l.flushLast(true)
	case m.Type == "error" && l.Turn.Working:
		l.lastKey, l.Turn = m.ID, l.Turn.End(m.At)
		l.Messages = append(l.Messages, sessions.AgentMessage{Text: m.text(), Final: true, Failed: true, At: m.At, Key: m.ID})
	case m.Type == "info" && m.text() == cancelledText:
		l.flushLast(true)
		l.Turn = l.Turn.End(m.At)
	}
}

// addMessage adds a message of the agent's.
func (l *transcriptParser) addMessage(m message, start int64) {
	l.Turn = l.Turn.Continue(m.At)
	again := len(l.Pending) > 0 && l.Pending[0].Key == m.ID
	if !again {
		l.flushLast(false)
	}
	if !again && m.ID != l.lastKey {
		l.AddPending(sessions.AgentMessage{Text: m.text(), At: m.At, Key: m.ID}, start)
	}
	if len(m.Tools) > 0 {
		l.flushLast(false)
	}
}

// flushLast adds the pending text to the messages.
func (l *transcriptParser) flushLast(final bool) {
	if len(l.Pending) > 0 {
		l.lastKey = l.Pending[0].Key
	}
	l.FlushPending(final)
}

// text returns the text of the message: a string, or parts.
func (m message) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return strings.TrimSpace(text)
	}
	var parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		if !p.Thought {
			text += p.Text
		}
	}
	return strings.TrimSpace(text)
}

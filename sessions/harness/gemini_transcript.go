package harness

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

// ReadTranscript reads the files of the conversation, and follows /clear by the log. A file does not tell whether a text ends the turn
// until the next one comes: when nothing follows it for a while and the screen waits for text, it did.
func (g Gemini) ReadTranscript(ctx context.Context, talk sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startGeminiOffset(talk, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	next, err := g.nextConversation(ctx, talk, &s)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	var told sessions.TranscriptBatch
	if next != "" {
		if err := s.read(&told); err != nil {
			return sessions.TranscriptBatch{}, err
		}
		s.finishPending(&told) // nothing comes there any more
		s.Conversation, s.LastKey, s.Turn = next, "", sessions.Turn{}
	}
	if err := s.readUntilIdle(ctx, talk, &told); err != nil {
		return sessions.TranscriptBatch{}, err
	}
	told.Next, told.WatchFiles = transcript.Encode(s), s.watchedFiles()
	return told, nil
}

// logModTime is when the log of the folder was changed last; 0: there is none.
func (s geminiOffset) logModTime() int64 {
	info, err := os.Stat(filepath.Join(s.Dir, "logs.json"))
	if s.Dir == "" || err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// nextConversation is the conversation that the pane has gone to; empty: it is where it was. It looks at the pane's process only when
// the log was changed, and for a while after: what /clear begins has no file at once.
func (g Gemini) nextConversation(ctx context.Context, talk sessions.Conversation, s *geminiOffset) (string, error) {
	changed := s.logModTime()
	if s.Dir != "" && changed == s.LogSeen && time.Since(time.Unix(0, changed)) > 2*maxClearDelay && talk.ID == s.Conversation {
		return "", nil
	}
	r, err := g.inspectPane(talk)
	if err != nil {
		return "", err
	}
	if s.projectsFile = r.projectsFile; r.projectDir != "" {
		s.Dir = r.projectDir
	}
	s.LogSeen = changed
	now, err := g.TrackConversation(ctx, talk)
	if err != nil || now == s.Conversation {
		return "", err
	}
	return now, nil
}

// files are those of the conversation, by name. One that is resumed has an empty one beside its own.
func (s geminiOffset) files() []string {
	if s.Dir == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(s.Dir, "chats", "session-*-"+s.Conversation[:min(8, len(s.Conversation))]+".jsonl")) // a glob that is well formed
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

func (s geminiOffset) watchedFiles() []string {
	if s.Dir == "" {
		return []string{s.projectsFile}
	}
	return append([]string{filepath.Join(s.Dir, "logs.json")}, s.files()...)
}

// geminiPending is a text of which only what comes next tells whether it ended the turn.
type geminiPending struct {
	message sessions.AgentMessage
	file    string
	end     int64 // offset after all that was read with it
}

// hear reads the conversation on.
func (s *geminiOffset) read(told *sessions.TranscriptBatch) error {
	s.pending = nil
	for _, file := range s.files() {
		name := filepath.Base(file)
		l := geminiParser{lastKey: s.LastKey, TurnParser: transcript.NewTurnParser(s.Turn, s.Files[name])}
		end, err := transcript.ReadLines(file, s.Files[name], l.parseLine)
		if err != nil {
			return fmt.Errorf("read gemini's conversation: %w", err)
		}
		if s.Files[name] = l.ReadOn(end); len(l.Pending) > 0 {
			s.pending = &geminiPending{message: l.Pending[0], file: name, end: end}
		}
		s.LastKey, s.Turn = l.lastKey, l.Turn
		for _, m := range l.Messages {
			s.addMessage(told, m)
		}
	}
	told.Turn = s.Turn
	return nil
}

func (s *geminiOffset) addMessage(told *sessions.TranscriptBatch, said sessions.AgentMessage) {
	if !said.At.Before(s.Since) {
		told.Messages = append(told.Messages, said)
	}
}

// settle takes the text that stands last: no turn runs any more.
func (s *geminiOffset) finishPending(told *sessions.TranscriptBatch) {
	if s.pending == nil {
		return
	}
	w := s.pending
	w.message.Final = true
	s.addMessage(told, w.message)
	s.Files[w.file], s.LastKey, s.Turn, s.pending = w.end, w.message.Key, s.Turn.End(w.message.At), nil
	told.Turn = s.Turn
}

// How long a text must stand last before the screen tells whether it ended the turn, which comes a little after what is
// written; how often the screen is looked at then, and for how long. It is looked at once more when that was in vain.
const (
	geminiIdleDelay    = 400 * time.Millisecond
	geminiPollInterval = 100 * time.Millisecond
	geminiIdleTimeout  = 1500 * time.Millisecond
)

// attend reads to the end, and waits for the end of a turn whose last text stands there.
func (s *geminiOffset) readUntilIdle(ctx context.Context, talk sessions.Conversation, told *sessions.TranscriptBatch) error {
	looking, cancel := context.WithTimeout(ctx, geminiIdleTimeout)
	defer cancel()
	for idle := 0; ; {
		before := transcript.Encode(s)
		if err := s.read(told); err != nil {
			return err
		}
		switch {
		case s.pending == nil, talk.IsIdle == nil:
			return nil
		case transcript.Encode(s) != before:
			idle = 0
		case idle >= 2:
			s.finishPending(told)
			return nil
		}
		ok, err := s.waitIdle(looking, talk)
		switch {
		case looking.Err() != nil:
			return nil // it is read again
		case err != nil:
			return err
		case ok:
			idle++
		default:
			idle = 0
		}
	}
}

// waitIdle looks at the screen once the text that stands last has stood there long enough.
func (s *geminiOffset) waitIdle(ctx context.Context, talk sessions.Conversation) (bool, error) {
	wait := time.NewTimer(max(geminiPollInterval, geminiIdleDelay-time.Since(s.pending.message.At)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-wait.C:
		return talk.IsIdle(ctx)
	}
}

// geminiParser gathers what the lines of a conversation say. A message is written again when there is more in it: the tools that
// it called, once they are done.
type geminiParser struct {
	transcript.TurnParser
	lastKey string // the message that was told last
}

// geminiMessage is a line of a conversation, as far as it tells of what the agent said.
type geminiMessage struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"timestamp"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Tools   []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// geminiCancelled is written when Escape has ended a turn.
const geminiCancelled = "Request cancelled."

func (l *geminiParser) parseLine(line []byte) {
	start := l.Next(line)
	var m geminiMessage
	if json.Unmarshal(line, &m) != nil || m.ID == "" {
		return
	}
	switch {
	case m.Type == "gemini":
		l.addMessage(m, start)
	case m.Type == "user" && bytes.Contains(m.Content, []byte(`"functionResponse"`)) && m.text() == "":
		l.flushLast(false) // a tool's result, which goes to the agent in the user's name
	case m.Type == "user":
		l.flushLast(true)
		l.Turn = l.Turn.Begin(m.At)
	case m.Type == "error" && len(l.Pending) > 0: // of a command: the text that stands there has ended the turn
		l.Turn = l.Turn.End(m.At)
		l.flushLast(true)
	case m.Type == "error" && l.Turn.Working:
		l.lastKey, l.Turn = m.ID, l.Turn.End(m.At)
		l.Messages = append(l.Messages, sessions.AgentMessage{Text: m.text(), Final: true, Failed: true, At: m.At, Key: m.ID})
	case m.Type == "info" && m.text() == geminiCancelled:
		l.flushLast(true)
		l.Turn = l.Turn.End(m.At)
	}
}

// addMessage takes a message of the agent's.
func (l *geminiParser) addMessage(m geminiMessage, start int64) {
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

// flushLast takes the text that waits.
func (l *geminiParser) flushLast(final bool) {
	if len(l.Pending) > 0 {
		l.lastKey = l.Pending[0].Key
	}
	l.FlushPending(final)
}

// text is what the message says: a string, or parts.
func (m geminiMessage) text() string {
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

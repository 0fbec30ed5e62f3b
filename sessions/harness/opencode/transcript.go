package opencode

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// ReadTranscript reads the database when the log has something about a turn, or nothing new at all. The log also tells to which
// conversations the program in the pane switched. Steps appear as they are completed.
func (o Harness) ReadTranscript(ctx context.Context, conv sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startOffset(conv, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	if s.DB == "" || s.logGrowth() == 0 {
		o.locateFiles(conv, &s)
	}
	if s.DB == "" {
		return sessions.TranscriptBatch{Next: since, Turn: s.Turn}, nil // the agent has written nothing yet
	}
	batch := sessions.TranscriptBatch{WatchFiles: []string{s.Log}, Turn: s.Turn}
	if news, err := o.followLog(ctx, conv, &s); err != nil {
		return sessions.TranscriptBatch{}, err
	} else if news {
		if err := s.read(ctx, &batch); err != nil {
			return sessions.TranscriptBatch{}, err
		}
	}
	batch.Next = transcript.Encode(s)
	return batch, nil
}

// logGrowth returns by how many bytes the log has grown. A log that became shorter was begun anew.
func (s *transcriptOffset) logGrowth() int64 {
	info, err := os.Stat(s.Log)
	if err != nil {
		return 0
	}
	if info.Size() < s.LogOffset {
		s.LogOffset = 0
	}
	return info.Size() - s.LogOffset
}

// locateFiles remembers where the files of the program in the pane are.
func (o Harness) locateFiles(conv sessions.Conversation, s *transcriptOffset) {
	if r, ok := o.inspectPane(conv.Session); ok {
		s.DB, s.Binary = r.dataFile("opencode.db"), r.binary
		if log := r.logFile(); log != s.Log {
			s.Log, s.LogOffset = log, 0
		}
	}
}

// followLog reads the log on. It reports whether the database may have something new: the log says so, or has nothing new.
func (o Harness) followLog(ctx context.Context, conv sessions.Conversation, s *transcriptOffset) (news bool, err error) {
	quiet := s.logGrowth() == 0
	id := conv.ID
	if !strings.HasPrefix(id, idPrefix) && (quiet || len(s.LastRead) == 0) {
		if id, err = o.TrackConversation(ctx, conv); err != nil {
			return false, err
		}
	}
	if _, known := s.LastRead[id]; !known && strings.HasPrefix(id, idPrefix) {
		s.LastRead[id] = position{At: s.Since.UnixMilli()}
		if s.LogOffset, err = tailStart(s.Log, maxLogTail); err != nil {
			return false, fmt.Errorf("read opencode's log: %w", err)
		}
	}
	l := logParser{runID: s.RunID, conversations: map[string]time.Time{}, subagents: map[string]bool{}}
	for id := range s.LastRead {
		l.conversations[id] = time.Time{}
	}
	if s.LogOffset, err = transcript.ReadLines(s.Log, s.LogOffset, l.parseLine); err != nil {
		return false, fmt.Errorf("read opencode's log: %w", err)
	}
	s.RunID = l.runID
	for id, at := range l.conversations {
		if _, known := s.LastRead[id]; !known {
			s.LastRead[id] = position{At: transcript.Later(s.Since, at.Add(-logDelay)).UnixMilli()}
		}
	}
	return l.hasNews || quiet, nil
}

// logDelay is how long before the log tells of its first turn a text may have begun a conversation.
const logDelay = 5 * time.Second

// read reads the new messages of the session's conversations.
func (s *transcriptOffset) read(ctx context.Context, batch *sessions.TranscriptBatch) error {
	if len(s.LastRead) == 0 {
		return nil
	}
	rows, err := database{file: s.DB, binary: s.Binary}.messagesAfter(ctx, s.LastRead)
	if err != nil {
		return err
	}
	for id := range s.LastRead {
		var of []message
		for _, r := range rows {
			if r.Conversation == id {
				of = append(of, r)
			}
		}
		s.addMessages(id, of, batch)
	}
	slices.SortStableFunc(batch.Messages, func(a, b sessions.AgentMessage) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
	return nil
}

// addMessages adds the messages of one conversation up to the first that is still being written. A message that was never completed
// although another follows it is of a program that was killed.
func (s *transcriptOffset) addMessages(id string, rows []message, batch *sessions.TranscriptBatch) {
	last := -1 // the newest of the agent's
	for i, r := range rows {
		if r.Role == "assistant" {
			last = i
		}
	}
	taken := true
	for i, r := range rows {
		taken = taken && (r.Role != "assistant" || r.Completed > 0 || r.Error != "" || i < last)
		batch.Turn = r.nextTurn(batch.Turn)
		if taken {
			batch.Messages = append(batch.Messages, r.agentMessages()...)
			s.LastRead[id], s.Turn = position{At: r.At, ID: r.ID}, batch.Turn
		}
	}
}

// abortedError is the error of a turn that a person ended with Escape.
const abortedError = "MessageAbortedError"

// continuesTurn reports whether the turn goes on after this message.
func (m message) continuesTurn() bool {
	return m.Error == "" && (m.Completed == 0 || m.Finish == "tool-calls" || m.Finish == "unknown")
}

// nextTurn returns the turn after the message.
func (m message) nextTurn(t sessions.Turn) sessions.Turn {
	switch at := time.UnixMilli(m.At); {
	case m.Role == "user":
		return t.Begin(at)
	case m.continuesTurn():
		return t.Continue(at)
	default:
		return t.End(time.UnixMilli(max(m.At, m.Completed)))
	}
}

// agentMessages returns the text of a message, and the error that ended the turn with it. Summaries of compacted conversations are
// none.
func (m message) agentMessages() []sessions.AgentMessage {
	if m.Role != "assistant" || m.Summary == "true" {
		return nil
	}
	var all []sessions.AgentMessage
	failed := m.Error != "" && m.Error != abortedError
	at := time.UnixMilli(max(m.At, m.Completed))
	if text := strings.TrimSpace(m.Text); text != "" {
		all = append(all, sessions.AgentMessage{Text: text, Final: !failed && !m.continuesTurn(), At: at, Key: m.ID})
	}
	if failed {
		all = append(all, sessions.AgentMessage{Text: cmp.Or(m.ErrorText, m.Error), Final: true, Failed: true, At: at, Key: m.ID + "!"})
	}
	return all
}

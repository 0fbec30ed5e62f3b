package smallagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// ReadTranscript reads the transcript. Each message of the agent ends a turn.
func (a Harness) ReadTranscript(_ context.Context, c sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	s, err := startOffset(c, since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	var batch sessions.TranscriptBatch
	if err := a.readFrom(&s, &batch); err != nil {
		return sessions.TranscriptBatch{}, err
	}
	if c.ID != s.Recorded {
		from, conv := s.Conversation, c.ID
		if s.Recorded = conv; !a.leadsTo(conv, from) { // a fresh conversation, which nothing leads to
			s.SwitchTo(conv, time.Time{})
			s.Queued = 0
			if err := a.readFrom(&s, &batch); err != nil {
				return sessions.TranscriptBatch{}, err
			}
		}
	}
	batch.Next, batch.WatchFiles, batch.Turn = transcript.Encode(s), []string{TranscriptPath(a.Dir, s.Conversation)}, s.Turn
	return batch, nil
}

// readFrom reads from an offset to the end of the transcript, and moves the offset there.
func (a Harness) readFrom(s *transcriptOffset, batch *sessions.TranscriptBatch) error {
	for range maxClears {
		entries, end, err := ReadTranscript(TranscriptPath(a.Dir, s.Conversation), s.Offset)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has not written anything yet
		}
		if err != nil {
			return fmt.Errorf("read the conversation %s: %w", s.Conversation, err)
		}
		next := ""
		for _, e := range entries {
			s.advanceTurn(e)
			if e.Type == TypeAgent && !e.At.Before(s.Since) {
				batch.Messages = append(batch.Messages, sessions.AgentMessage{Text: e.Text, Final: true, At: e.At,
					Key: fmt.Sprintf("%s.%d.%d", s.Conversation, e.Seq, e.At.UnixNano())})
			}
			if e.Type == TypeClear && sessions.ValidConversation(e.Conversation) {
				next = e.Conversation
			}
		}
		if s.Offset = end; next == "" {
			return nil
		}
		s.Conversation, s.Offset = next, 0
	}
	return fmt.Errorf("the conversation goes on in more than %d others", maxClears)
}

// leadsTo reports whether one conversation became another, or is the same.
func (a Harness) leadsTo(from, to string) bool {
	seen := map[string]bool{from: true}
	_, _, err := a.eachEntry(from, 0, func(e Entry) {
		if e.Type == TypeClear {
			seen[e.Conversation] = true
		}
	})
	return err == nil && seen[to]
}

// advanceTurn moves the turn on by an entry. The transcript shows a text when it is submitted: a queued one begins its turn when the
// one before it ends. The queue stays across /clear.
func (s *transcriptOffset) advanceTurn(e Entry) {
	switch e.Type {
	case TypeUser:
		if s.Queued++; s.Queued == 1 {
			s.Turn = s.Turn.Begin(e.At)
		}
	case TypeAgent, TypeInterrupt:
		s.Turn = s.Turn.End(e.At)
		if s.Queued = max(0, s.Queued-1); s.Queued > 0 {
			s.Turn = s.Turn.Begin(e.At)
		}
	case TypeStart, TypeEnd:
		if e.How != HowClear {
			s.Turn, s.Queued = s.Turn.End(e.At), 0
		}
	}
}

package harness

import (
	"testing"
	"time"

	"the-loop/sessions"
)

// waitTurn reads on until the real agent's record says that a turn runs, or none.
func (s *agentEnv) waitTurn(q *sessions.TranscriptRequest, what string, works bool) {
	s.Helper()
	s.waitUntil(what, func() bool {
		batch, err := s.core.ReadTranscript(s.Context(), *q)
		if err != nil {
			s.Fatal(err)
		}
		q.Offset = batch.Next
		return batch.Turn.Working == works
	})
}

// testTurns has the real agent go through a turn that it ends, and one that Escape ends in that state of the screen.
func (s *agentEnv) testTurns(long string, state sessions.ViewState) {
	s.Helper()
	q := &sessions.TranscriptRequest{Ref: realRef, Since: time.Now()}
	s.start()
	s.waitMessages(q, 1)
	s.waitTurn(q, "the first turn is over", false)
	s.waitIdle()
	s.submit("[[wait 4000]] think")
	s.waitTurn(q, "a turn runs", true)
	s.waitTurn(q, "it is over", false)
	s.waitIdle()
	s.submit(long)
	s.waitTurn(q, "a long turn runs", true)
	s.waitState(state)
	if _, err := s.core.Keys(s.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		s.Fatal(err)
	}
	s.waitTurn(q, "it is interrupted", false)
}

// A turn of Claude Code's that is interrupted before the first word leaves nothing in its record (2.1.197): the text is put back
// into the box, and only the screen tells.
func TestRealClaudesTurnIsDetected(t *testing.T) {
	t.Parallel()
	newClaudeAgentEnv(t).testTurns("[[run touch APPROVED]]", sessions.ViewDialog)
}

func TestRealCodexsTurnIsDetected(t *testing.T) {
	t.Parallel()
	newCodexAgentEnv(t).testTurns("[[wait 60000]] think", sessions.ViewWorking)
}

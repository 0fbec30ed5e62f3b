package harness

import (
	"testing"
	"time"

	"the-loop/sessions"
)

// untilTurn reads on until the real agent's record says that a turn runs, or none.
func (s *stage) untilTurn(q *sessions.ToldRequest, what string, works bool) {
	s.Helper()
	s.until(what, func() bool {
		told, err := s.core.ReadTranscript(s.Context(), *q)
		if err != nil {
			s.Fatal(err)
		}
		q.Place = told.Next
		return told.Turn.Working == works
	})
}

// turns has the real agent go through a turn that it ends, and one that Escape ends in that state of the screen.
func (s *stage) turns(long string, state sessions.ViewState) {
	s.Helper()
	q := &sessions.ToldRequest{Ref: realRef, Since: time.Now()}
	s.start()
	s.said(q, 1)
	s.untilTurn(q, "the first turn is over", false)
	s.atRest()
	s.say("[[wait 4000]] think")
	s.untilTurn(q, "a turn runs", true)
	s.untilTurn(q, "it is over", false)
	s.atRest()
	s.say(long)
	s.untilTurn(q, "a long turn runs", true)
	s.untilState(state)
	if _, err := s.core.Keys(s.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		s.Fatal(err)
	}
	s.untilTurn(q, "it is interrupted", false)
}

// A turn of Claude Code's that is interrupted before the first word leaves nothing in its record (2.1.197): the text is put back
// into the box, and only the screen tells.
func TestRealClaudesTurnIsSeen(t *testing.T) {
	t.Parallel()
	claudeStage(t).turns("[[run touch APPROVED]]", sessions.ViewDialog)
}

func TestRealCodexsTurnIsSeen(t *testing.T) {
	t.Parallel()
	codexStage(t).turns("[[wait 60000]] think", sessions.ViewWorking)
}

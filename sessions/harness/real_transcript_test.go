package harness

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
)

// waitMessages reads on from an offset until the agent has said n texts.
func (s *agentEnv) waitMessages(q *sessions.TranscriptRequest, n int) []string {
	s.Helper()
	var all []string
	s.waitUntil("the agent's texts", func() bool {
		all = append(all, s.readMessages(q)...)
		return len(all) >= n
	})
	return all
}

// readMessages reads on from an offset to the end.
func (s *agentEnv) readMessages(q *sessions.TranscriptRequest) []string {
	s.Helper()
	batch, err := s.core.ReadTranscript(s.Context(), *q)
	if err != nil {
		s.Fatal(err)
	}
	q.Offset = batch.Next
	return harnesstest.DescribeMessages(batch)
}

// waitReports waits for the agent's own hooks.
func (s *agentEnv) waitReports(events ...string) {
	s.Helper()
	path, err := report.Path(filepath.Join(s.root, "reports"), s.record().ID)
	if err != nil {
		s.Fatal(err)
	}
	for _, event := range events {
		s.waitUntil("the hook "+event, func() bool {
			reports, _, err := report.Read(path, 0)
			return err == nil && slices.ContainsFunc(reports, func(r report.Report) bool { return r.Event == event })
		})
	}
}

func TestRealClaudesAnswersAreReadAlsoAfterAClearARestartAndAKill(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	q := &sessions.TranscriptRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.submit("[[run echo hi]] go")
	if got := s.waitMessages(q, 2); len(got) != 2 || got[0][:2] != "S " || got[1][:2] != "F " {
		t.Errorf("around a tool: %q", got)
	}
	s.submit("[[fail 400]]")
	if got := s.waitMessages(q, 1); !slices.Equal(got, []string{"E API Error: 400 as asked"}) {
		t.Errorf("an error: %q", got)
	}
	s.waitIdle()
	if _, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.submit("after the clear")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /clear: %q\nthe model was told %q\n%s", got, s.model.UserTexts(), s.screen())
	}
	s.stop()
	s.start()
	s.submit("after the restart")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the restart: %q", got)
	}
	s.waitReports(report.EventStop, report.EventStopFailure)
	panes, err := s.term.Panes(t.Context())
	if err != nil || len(panes) != 1 {
		t.Fatal(panes, err)
	}
	s.submit("[[wait 60000]]")
	s.waitState(sessions.ViewWorking)
	if err := syscall.Kill(panes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.waitUntil("it is dead", func() bool {
		panes, err := s.term.Panes(t.Context())
		return err == nil && len(panes) == 1 && panes[0].Dead
	})
	s.start()
	s.submit("after the kill")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the kill: %q", got)
	}
}

func TestRealCodexsAnswersAreReadAlsoAfterANewConversationAndARestart(t *testing.T) {
	t.Parallel()
	s := newCodexAgentEnv(t)
	q := &sessions.TranscriptRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.submit("hello there")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("a text: %q", got)
	}
	s.submit("[[fail 400]]")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "E " {
		t.Errorf("an error: %q", got)
	}
	s.waitIdle()
	if _, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/new", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.waitState(sessions.ViewReady)
	s.submit("in the new one")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /new: %q", got)
	}
	s.stop()
	s.start()
	s.submit("after the restart")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the restart: %q", got)
	}
}

func TestRealOpenCodesAnswersAreReadAlsoAfterANewConversationAndARestart(t *testing.T) {
	t.Parallel()
	s := newOpenCodeAgentEnv(t)
	q := &sessions.TranscriptRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.submit("[[run touch hi]] go")
	s.waitState(sessions.ViewDialog)
	s.sendKeys("Enter")
	if got := s.waitMessages(q, 2); len(got) != 2 || got[0][:2] != "S " || got[1][:2] != "F " {
		t.Errorf("around a tool: %q", got)
	}
	s.waitIdle()
	first := s.record().Conversation
	if _, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/new", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.submit("in the new one")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /new: %q", got)
	}
	s.stop()
	if batch, err := s.core.ReadTranscript(t.Context(), *q); err != nil || len(batch.Messages) > 0 || batch.Turn.Working {
		t.Errorf("of a run that has ended: %+v, %v", batch, err)
	}
	if row := s.start(); row.Outcome != sessions.OutcomeResumed || row.Conversation == first {
		t.Errorf("start: %s %s, want the new one resumed", row.Outcome, row.Conversation)
	}
	s.submit("[[fail 400]]")
	if got := s.waitMessages(q, 1); !slices.Equal(got, []string{"E as asked"}) {
		t.Errorf("an error, after the restart: %q", got)
	}
}

func TestRealGeminisAnswersAreReadAlsoAfterAClearAndARestart(t *testing.T) {
	t.Parallel()
	s := newGeminiAgentEnv(t)
	q := &sessions.TranscriptRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.submit("[[run touch hi]] go")
	s.waitState(sessions.ViewDialog)
	if got := s.readMessages(q); len(got) > 0 && got[0][:2] != "S " {
		t.Errorf("while it asks: %q", got)
	}
	s.sendKeys("Enter")
	if got := s.waitMessages(q, 2); len(got) != 2 || got[0][:2] != "S " || got[1][:2] != "F " {
		t.Errorf("around a tool: %q", got)
	}
	s.submit("[[fail 400]]")
	if got := s.waitMessages(q, 1); len(got) != 1 || !strings.HasPrefix(got[0], "E ") || !strings.Contains(got[0], "as asked") {
		t.Errorf("an error: %q", got)
	}
	s.waitIdle()
	if _, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.submit("after the clear")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /clear: %q", got)
	}
	s.stop()
	s.start()
	s.submit("after the restart")
	if got := s.waitMessages(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the restart: %q", got)
	}
}

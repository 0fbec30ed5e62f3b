package harness

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/process"
)

// The real programs, as agents of a work item: one whose pane died is resumed with the event.

func TestRealClaudeIsResumedWithTheEvent(t *testing.T) {
	t.Parallel()
	newClaudeAgentEnv(t).testRespawns()
}
func TestRealCodexIsResumedWithTheEvent(t *testing.T) {
	t.Parallel()
	newCodexAgentEnv(t).testRespawns()
}
func TestRealGeminiIsResumedWithTheEvent(t *testing.T) {
	t.Parallel()
	newGeminiAgentEnv(t).testRespawns()
}
func TestRealOpenCodeIsResumedWithTheEvent(t *testing.T) {
	t.Parallel()
	newOpenCodeAgentEnv(t).testRespawns()
}

// testRespawns delivers events to a work item whose agent is killed in between, and one into the live agent.
func (s *agentEnv) testRespawns() {
	s.Helper()
	s.ref = "github:acme/shop#7"
	if _, err := s.core.Register(s.Context(), sessions.RegisterRequest{Ref: s.ref, Harness: s.harness.Name(), Cwd: s.def.Cwd}); err != nil {
		s.Fatal(err)
	}
	if got := s.deliver("the ticket was opened"); got.Row.Outcome != sessions.OutcomeStarted {
		s.Errorf("the first event: %+v", got)
	}
	s.waitUntil("the first turn's end", func() bool {
		return s.timesReceived("the ticket was opened") == 1 && s.view().State == sessions.ViewReady
	})
	s.waitIdle()
	if got := s.deliver("somebody commented"); got.Row.Outcome != sessions.OutcomeDelivered {
		s.Errorf("into the live agent: %+v", got)
	}
	s.waitUntil("the second turn's end", func() bool { return s.timesReceived("somebody commented") == 1 && s.view().State == sessions.ViewReady })
	s.waitIdle()
	conversation := s.record().Conversation
	for _, event := range []string{"the build failed: look at it", "- a list\n- with \"quotes\"", "--dangerously-skip-permissions", "!touch RAN", "/clear"} {
		s.killAgent()
		got := s.deliver(event)
		event = strings.Replace(asTyped(event, s.harness.Capabilities()), `"ann"`, `"`+string(s.ref)+`"`, 1)
		if got.Row.Outcome != sessions.OutcomeResumed || got.Row.Conversation != conversation || s.record().Conversation != conversation {
			s.Errorf("%q: %+v, the record has %s; want %s resumed\n%s", event, got, s.record().Conversation, conversation, s.screen())
		}
		s.waitUntil("the event reaches the model", func() bool { return s.timesReceived(event) == 1 && s.view().State == sessions.ViewReady })
	}
	if n := s.timesReceived("the ticket was opened") + s.timesReceived("somebody commented"); n != 2 {
		s.Errorf("the model heard %q", s.model.UserTexts())
	}
	if _, err := os.Stat(s.def.Cwd + "/RAN"); err == nil {
		s.Error("a leading ! ran a command")
	}
}

// deliver delivers an event, which the agent's record must prove.
func (s *agentEnv) deliver(text string) sessions.DeliveryResult {
	s.Helper()
	began := time.Now()
	d, err := s.core.Deliver(s.Context(), sessions.DeliverRequest{Ref: s.ref, Text: text, Wait: time.Minute})
	if err != nil {
		s.Fatalf("deliver %q: %v\n%s", text, err, s.screen())
	}
	if d.Receipt != sessions.ReceiptAccepted {
		s.Errorf("%q: %s", text, d.Receipt)
	}
	s.Logf("%q: %s, %s after %s", text, d.Row.Outcome, d.Receipt, time.Since(began).Round(time.Millisecond))
	return d
}

// killAgent kills every process of the pane.
func (s *agentEnv) killAgent() {
	s.Helper()
	rec := s.record()
	processes, known := process.System().WithValue(sessions.SessionVariable, rec.ID)
	if !known {
		s.Skip("this system does not show which processes a pane has")
	}
	for _, p := range processes {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // one that has ended with its parent needs none
	}
	s.waitUntil("the agent's death", func() bool {
		panes, err := s.term.Panes(context.WithoutCancel(s.Context()))
		if err != nil {
			s.Fatal(err)
		}
		i := slices.IndexFunc(panes, func(p sessions.Pane) bool { return p.Mark == rec.ID })
		return i < 0 || panes[i].Dead
	})
}

package harness

import (
	"maps"
	"slices"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// environValue returns what the agent in the pane was started with.
func (s *agentEnv) environValue(name string) string {
	s.Helper()
	panes, err := s.term.Panes(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(panes, func(p sessions.Pane) bool { return p.Mark == s.record().ID })
	if i < 0 {
		s.Fatal("there is no pane")
	}
	values, ok := envstate.ProcessEnviron(s.Context(), panes[i].PID)
	if !ok {
		s.Fatal("the agent's environment cannot be read")
	}
	return values[name]
}

// rollingRestart declares another value and restarts the session onto it.
func (s *agentEnv) rollingRestart(value string) {
	s.Helper()
	env := maps.Clone(s.env)
	env["ROTATED"] = value
	s.env = env
	if d := s.core.Drift(s.Context()); d.Stale != 1 || !slices.Equal(d.Rows[0].Stale, []string{"ROTATED"}) {
		s.Errorf("before the roll: %+v", d)
	}
	rolled, err := s.core.RollingRestart(s.Context(), sessions.RollingRestartRequest{All: true})
	if err != nil || len(rolled.Rows) != 1 || rolled.Rows[0].Outcome != sessions.OutcomeVerified {
		s.Fatalf("%+v, %v\n%s", rolled, err, s.screen())
	}
	if got := s.environValue("ROTATED"); got != value {
		s.Errorf("the agent holds %q, want %q", got, value)
	}
	if d := s.core.Drift(s.Context()); d.Stale != 0 || d.Running != 1 || d.Unknown != 0 {
		s.Errorf("after the roll: %+v", d)
	}
}

// Claude Code is brought onto another environment: the next answer is one of the same conversation, also of one that /clear
// began.
func TestRealClaudeIsRestartedOntoAnotherEnvironmentInItsConversation(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	first := s.start().Conversation
	s.submit("before the roll")
	s.waitUntil("the answer is there", func() bool { return s.timesReceived("before the roll") == 1 && s.view().State == sessions.ViewReady })
	s.rollingRestart("one")
	s.submit("after the roll")
	s.waitUntil("the conversation goes on", func() bool { return s.timesReceived("after the roll") == 1 && s.view().State == sessions.ViewReady })
	if now := s.record().Conversation; now != first || !s.sameConversation("after the roll", "before the roll") {
		t.Errorf("the conversation is %s, was %s", now, first)
	}
	s.waitIdle()
	if receipt, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil || receipt != sessions.ReceiptAccepted {
		t.Errorf("/clear: %s, %v", receipt, err)
	}
	s.submit("after the clear")
	s.waitUntil("the answer is there", func() bool { return s.timesReceived("after the clear") == 1 && s.view().State == sessions.ViewReady })
	s.rollingRestart("two")
	s.submit("after the second roll")
	s.waitUntil("the conversation goes on", func() bool { return s.timesReceived("after the second roll") == 1 })
	if !s.sameConversation("after the second roll", "after the clear") || s.sameConversation("after the second roll", "before the roll") {
		t.Error("the answer is not one of the conversation that /clear began")
	}
}

// sameConversation reports whether the newest conversation that the model was shown holds both texts.
func (s *agentEnv) sameConversation(text, earlier string) bool {
	return s.timesReceived(text) == 1 && s.timesReceived(earlier) == 1
}

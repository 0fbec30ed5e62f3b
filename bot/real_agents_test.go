package bot_test

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/opencode"
)

// TestRealTalkAndAnswer has the same talk with each agent's own program, through the thread alone. testdata/agents/talk.sh runs
// it agent by agent.
func TestRealTalkAndAnswer(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]string{claude.Name: "/clear", codex.Name: "/new", gemini.Name: "/clear",
		opencode.Name: "/new"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRealSession(t, name)
			k.replyAndWaitAnswer("the first answer")
			k.checkShellPrefix()
			k.checkTurnError()
			k.checkNewConversation(anew)
			k.checkResume()
			for _, text := range []string{"the first answer", "in the new one", "after the restart"} {
				k.wantAnswerOnce(text)
			}
		})
	}
}

// checkTurnError has a turn end with an error, which the thread is told.
func (k *realSession) checkTurnError() {
	k.env.t.Helper()
	k.replyAccepted("[[fail 400]]")
	k.testSession.waitBotMessage("The turn ended with an error", "as asked")
	k.waitIdle()
}

// checkNewConversation has the agent begin another conversation.
func (k *realSession) checkNewConversation(command string) {
	k.env.t.Helper()
	k.reply("@the-loop raw " + command)
	k.replyAndWaitAnswer("in the new one")
	k.env.waitUntil("a conversation without what was before", func() bool { return k.modelReceived("[[say the first answer]]") == 0 })
	k.waitIdle()
}

// checkResume stops the session and starts it again, with its conversation.
func (k *realSession) checkResume() {
	k.env.t.Helper()
	if _, err := k.env.core.Stop(k.env.ctx, sessions.StopRequest{Ref: k.ref}); err != nil {
		k.env.t.Fatal(err)
	}
	row, err := k.env.core.Start(k.env.ctx, sessions.StartRequest{Ref: k.ref})
	if err != nil || row.Outcome != sessions.OutcomeResumed {
		k.env.t.Fatalf("start: %s, %v", row.Outcome, err)
	}
	k.waitIdle()
	k.replyAndWaitAnswer("after the restart")
	k.env.waitUntil("the conversation to have gone on", func() bool { return k.modelReceived("[[say in the new one]]") == 1 })
}

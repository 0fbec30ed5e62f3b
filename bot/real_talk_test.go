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
			k := newTalkWith(t, name)
			k.gets("the first answer")
			k.shell()
			k.fails()
			k.begins(anew)
			k.resumes()
			for _, text := range []string{"the first answer", "in the new one", "after the restart"} {
				k.once(text)
			}
		})
	}
}

// fails has a turn end with an error, which the thread is told.
func (k *talk) fails() {
	k.w.t.Helper()
	k.tells("[[fail 400]]")
	k.agent.answer("The turn ended with an error", "as asked")
	k.rests()
}

// begins has the agent begin another conversation.
func (k *talk) begins(command string) {
	k.w.t.Helper()
	k.reply("@the-loop raw " + command)
	k.gets("in the new one")
	k.w.until("a conversation without what was before", func() bool { return k.heard("[[say the first answer]]") == 0 })
	k.rests()
}

// resumes stops the session and starts it again, with its conversation.
func (k *talk) resumes() {
	k.w.t.Helper()
	if _, err := k.w.core.Stop(k.w.ctx, sessions.StopRequest{Ref: k.ref}); err != nil {
		k.w.t.Fatal(err)
	}
	row, err := k.w.core.Start(k.w.ctx, sessions.StartRequest{Ref: k.ref})
	if err != nil || row.Outcome != sessions.OutcomeResumed {
		k.w.t.Fatalf("start: %s, %v", row.Outcome, err)
	}
	k.rests()
	k.gets("after the restart")
	k.w.until("the conversation to have gone on", func() bool { return k.heard("[[say in the new one]]") == 1 })
}

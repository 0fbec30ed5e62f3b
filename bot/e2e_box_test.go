package bot_test

import (
	"strings"
	"testing"

	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/chat"
)

// herdrdev/herdr#2788: a message to an agent that asks for permission answers its question.
func TestADialogIsNotAnsweredByReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.asking()
	ts := []string{a.reply("first"), a.reply("second"), a.reply("third")}
	a.receipt(ts[0], held)
	a.answer("Held", "the agent asks a question")
	a.receipt(ts[2], received)
	a.until(smallagent.StateAsking)
	a.deny()
	for _, ts := range ts {
		a.receipt(ts, accepted)
	}
	a.wants("ask: deploy", "first", "second", "third")
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionDenied {
		t.Errorf("the dialog ended as %+v; want one that was denied in the terminal", d)
	}
	if n := a.count("Held"); n != 1 {
		t.Errorf("told %d times that replies are held", n)
	}
	w.until("one reaction", func() bool { return len(w.Reactions(w.ch, ts[0])) == 1 })
}

func TestAMenuHoldsReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("menu")
	a.until(smallagent.StateAsking)
	ts := a.reply("after the menu")
	a.receipt(ts, held)
	a.keys("Escape")
	a.receipt(ts, accepted)
	a.wants("menu", "after the menu")
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionClosed {
		t.Errorf("the menu ended as %+v", d)
	}
}

// asheshgoplani/agent-deck#1409: the message merges with somebody's half-typed draft.
func TestADraftInTheBoxHoldsRepliesAndStaysWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.keys("-l", "half a thought")
	w.until("the draft", func() bool { return a.screen().Box == "half a thought" })
	ts := a.reply("from afar")
	a.receipt(ts, held)
	a.answer("unsent text")
	a.keys(" and the rest", "Enter")
	a.receipt(ts, accepted)
	a.wants("half a thought and the rest", "from afar")
}

// Yeachan-Heo/clawhip#22, pchalasani/claude-code-tools#13, corveil/crow#264, alamops/agetor#41: Enter is lost.
func TestALostEnterIsGivenAgainAndTheTextIsNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		keys  string
	}{
		"the agent was not ready for it": {[]string{"--enter-gap", "200ms"}, "\r"},
		"the agent lost two":             {[]string{"--lose-enters", "2"}, "\r\r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.agent("helper", c.flags...)
			a.tells("one\ntwo")
			a.wants("one\ntwo")
			if got, want := a.bytes(), framed("one\ntwo")+c.keys; got != want {
				t.Errorf("the pane got %q; want %q", got, want)
			}
		})
	}
}

func TestAReplyWaitsForAnAgentThatStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.launch(w.definition("helper", "--start-delay", "2s"))
	a.announced()
	a.until(smallagent.StateStarting)
	ts := a.reply("good morning")
	a.receipt(ts, held)
	a.receipt(ts, accepted)
	a.wants("good morning")
	a.wantsBytes("good morning")
	if n := len(a.answers()); n != 0 {
		t.Errorf("the thread was told %d things", n)
	}
}

// A text that the agent would take as a command is talk all the same.
func TestTextsThatLookLikeCommandsGoInAsTalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	for _, text := range []string{"!rm -rf /", " /clear", "exit", " quit ", "exit now"} {
		a.tells(text)
	}
	a.wants(`From "Ann": !rm -rf /`, `From "Ann": /clear`, `From "Ann": exit`, `From "Ann": quit `, "exit now")
	if n := len(a.entries(smallagent.TypeShell, smallagent.TypeCommand, smallagent.TypeEnd)); n != 0 {
		t.Errorf("%d of them were taken as commands", n)
	}
}

func TestARawCommandIsTheAgentsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("@the-loop raw /help")
	if c := a.entries(smallagent.TypeCommand); len(c) != 1 || c[0].Text != "/help" {
		t.Errorf("the agent took the commands %+v", c)
	}
	a.receipt(a.reply("@the-loop raw !ls"), errorText)
	a.answer("Not delivered", "a raw command is one line that begins with /")
	a.wantsBytes("/help")
}

func TestCommandsToTheBotReachItAndNotThePane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	a := w.agent("helper")
	for _, c := range []struct{ text, answer string }{
		{"@the-loop", "Commands in this thread"},
		{"@the-loop what is this?", "I do not know `what`"},
		{"@the-loop: STATUS", "*helper* running"},
		{"@the-loop keys Nope", "there is no key"},
		{"@the-loop keys", "no key is named"},
	} {
		a.reply(c.text)
		a.answer(c.answer)
	}
	w.passed()
	a.tells("the end")
	a.wantsBytes("the end")
}

func TestKeysAndInterruptGoPastWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	interrupts := func(n int) {
		t.Helper()
		w.until("an interrupt", func() bool { return len(a.entries(smallagent.TypeInterrupt)) == n })
	}
	a.tells("slow: 50s")
	a.until(smallagent.StateWorking)
	a.reply("@the-loop keys Escape")
	interrupts(1)
	a.answer("Pressed `Escape`")
	a.tells("slow: 55s")
	a.until(smallagent.StateWorking)
	a.reply("@the-loop interrupt")
	interrupts(2)
	a.answer("Interrupted")
	a.asking()
	ts := a.reply("held back")
	a.receipt(ts, held)
	for _, key := range []string{"Enter", "BackTab"} {
		a.reply("@the-loop keys " + key)
		a.answer("Not done", "the agent asks a question", strings.ToLower(key)+" might answer it")
	}
	a.reply("@the-loop keys Escape")
	a.answer("Pressed `Escape`", "<@", "denied what the agent asked")
	a.receipt(ts, accepted)
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionDenied {
		t.Errorf("the dialog ended as %+v", d)
	}
}

func TestStartStopAndRestartWorkInTheThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("remember me")
	a.reply("@the-loop stop")
	a.answer("*helper* stopped")
	a.receipt(a.reply("anybody?"), errorText)
	a.reply("@the-loop start")
	a.answer("*helper* running", "resumed")
	a.until(smallagent.StateReady)
	a.tells("and now?")
	a.wants("remember me", "and now?")
}

// in doubt: the text was typed, and nothing shows that it was taken.
func (a *agent) doubtful(text string) (ts, question string) {
	a.w.t.Helper()
	ts = a.reply(text)
	a.receipt(ts, inDoubt)
	question = a.answer("I cannot tell whether").TS
	a.keys("C-u") // somebody clears the box
	a.w.until("an empty box", func() bool { return a.screen().Box == "" })
	return ts, question
}

// hermes-agent#100408: buttons are dead after a restart. denoland/clawpatrol#595: they linger. hermes-agent#36848,
// openclaw#96487: anybody may press them.
func TestWhatIsInDoubtIsSentAgainOnlyByChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper", "--lose-enters", "4")
	ts, question := a.doubtful("did you get this?")
	a.wants()
	a.tells("this is another matter")
	if err := w.bob.Click(w.ctx, w.ch, question, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	w.dropped(question, "unauthorized-actor")
	w.back()
	w.passed()
	if err := w.bob.Click(w.ctx, w.ch, question, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	a.tells("and another")
	a.wants("this is another matter", "and another")
	w.clickTwice(question, chat.ActionSend)
	a.receipt(ts, accepted)
	w.until("the question to be answered", func() bool {
		m, _ := w.Message(w.ch, question)
		return contains(m.Text, "Sent by <@"+w.ann.ID+">") && !strings.Contains(string(m.Blocks), chat.ActionSend)
	})
	a.wants("this is another matter", "and another", "did you get this?")
	if len(w.Ephemerals(w.bob.ID)) != 0 {
		t.Error("a stranger got an answer")
	}
}

// clickTwice presses a button as one does whose mouse bounces, and waits for two true answers.
func (w *world) clickTwice(ts, action string) {
	w.t.Helper()
	clicked := make(chan error, 2)
	for range 2 {
		go func() { clicked <- w.ann.Click(w.ctx, w.ch, ts, action) }()
	}
	for range 2 {
		if err := <-clicked; err != nil {
			w.t.Fatal(err)
		}
	}
	w.until("two answers, one of them that it was decided already", func() bool {
		told := w.Ephemerals(w.ann.ID)
		return len(told) == 2 && contains(told[0].Text+told[1].Text, "Already decided. Sent by")
	})
}

func TestASkippedReplyIsNeverTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper", "--lose-enters", "4")
	ts, question := a.doubtful("did you get this?")
	if err := w.ann.Click(w.ctx, w.ch, question, chat.ActionSkip); err != nil {
		t.Fatal(err)
	}
	w.until("the answer", func() bool { return len(w.Ephemerals(w.ann.ID)) == 1 })
	if got := w.Ephemerals(w.ann.ID)[0].Text; !contains(got, "Skipped by") {
		t.Errorf("answered %q", got)
	}
	w.until("no receipt", func() bool { return len(w.Reactions(w.ch, ts)) == 0 })
	a.tells("the end")
	a.wants("the end")
}

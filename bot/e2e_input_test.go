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
	w := newEnv(t)
	a := w.startSession("helper")
	a.startDialog()
	ts := []string{a.reply("first"), a.reply("second"), a.reply("third")}
	a.waitReceipt(ts[0], receiptHeld)
	a.waitBotMessage("Held", "the agent asks a question")
	a.waitReceipt(ts[2], receiptReceived)
	a.waitState(smallagent.StateAsking)
	a.denyInTerminal()
	for _, ts := range ts {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived("ask: deploy", "first", "second", "third")
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionDenied {
		t.Errorf("the dialog ended as %+v; want one that was denied in the terminal", d)
	}
	if n := a.countBotMessages("Held"); n != 1 {
		t.Errorf("told %d times that replies are held", n)
	}
	w.waitUntil("one reaction", func() bool { return len(w.Reactions(w.ch, ts[0])) == 1 })
}

func TestAMenuHoldsReplies(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("menu")
	a.waitState(smallagent.StateAsking)
	ts := a.reply("after the menu")
	a.waitReceipt(ts, receiptHeld)
	a.sendKeys("Escape")
	a.waitReceipt(ts, receiptAccepted)
	a.wantReceived("menu", "after the menu")
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionClosed {
		t.Errorf("the menu ended as %+v", d)
	}
}

// asheshgoplani/agent-deck#1409: the message merges with somebody's half-typed draft.
func TestADraftInTheBoxHoldsRepliesAndStaysWhole(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.sendKeys("-l", "half a thought")
	w.waitUntil("the draft", func() bool { return a.screen().Box == "half a thought" })
	ts := a.reply("from afar")
	a.waitReceipt(ts, receiptHeld)
	a.waitBotMessage("unsent text")
	a.sendKeys(" and the rest", "Enter")
	a.waitReceipt(ts, receiptAccepted)
	a.wantReceived("half a thought and the rest", "from afar")
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
			w := newEnv(t)
			a := w.startSession("helper", c.flags...)
			a.replyAccepted("one\ntwo")
			a.wantReceived("one\ntwo")
			if got, want := a.paneInput(), bracketedPaste("one\ntwo")+c.keys; got != want {
				t.Errorf("the pane got %q; want %q", got, want)
			}
		})
	}
}

func TestAReplyWaitsForAnAgentThatStarts(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startDefined(w.definition("helper", "--start-delay", "2s"))
	a.waitAnnounced()
	a.waitState(smallagent.StateStarting)
	ts := a.reply("good morning")
	a.waitReceipt(ts, receiptHeld)
	a.waitReceipt(ts, receiptAccepted)
	a.wantReceived("good morning")
	a.wantPaneInput("good morning")
	if n := len(a.botMessages()); n != 0 {
		t.Errorf("the thread was told %d things", n)
	}
}

// A text that the agent would take as a command is talk all the same.
func TestTextsThatLookLikeCommandsAreTypedAsText(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	for _, text := range []string{"!rm -rf /", " /clear", "exit", " quit ", "exit now"} {
		a.replyAccepted(text)
	}
	a.wantReceived(`From "Ann": !rm -rf /`, `From "Ann": /clear`, `From "Ann": exit`, `From "Ann": quit `, "exit now")
	if n := len(a.entries(smallagent.TypeShell, smallagent.TypeCommand, smallagent.TypeEnd)); n != 0 {
		t.Errorf("%d of them were taken as commands", n)
	}
}

func TestARawCommandIsTheAgentsOwn(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("@the-loop raw /help")
	if c := a.entries(smallagent.TypeCommand); len(c) != 1 || c[0].Text != "/help" {
		t.Errorf("the agent took the commands %+v", c)
	}
	a.waitReceipt(a.reply("@the-loop raw !ls"), receiptFailed)
	a.waitBotMessage("Not delivered", "a raw command is one line that begins with /")
	a.wantPaneInput("/help")
}

func TestCommandsToTheBotReachItAndNotThePane(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	for _, c := range []struct{ text, answer string }{
		{"@the-loop", "Commands in this thread"},
		{"@the-loop what is this?", "I do not know `what`"},
		{"@the-loop: STATUS", "*helper* running"},
		{"@the-loop keys Nope", "there is no key"},
		{"@the-loop keys", "no key is named"},
	} {
		a.reply(c.text)
		a.waitBotMessage(c.answer)
	}
	w.waitProcessed()
	a.replyAccepted("the end")
	a.wantPaneInput("the end")
}

func TestKeysAndInterruptGoPastWhatWaits(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	interrupts := func(n int) {
		t.Helper()
		w.waitUntil("an interrupt", func() bool { return len(a.entries(smallagent.TypeInterrupt)) == n })
	}
	a.replyAccepted("slow: 50s")
	a.waitState(smallagent.StateWorking)
	a.reply("@the-loop keys Escape")
	interrupts(1)
	a.waitBotMessage("Pressed `Escape`")
	a.replyAccepted("slow: 55s")
	a.waitState(smallagent.StateWorking)
	a.reply("@the-loop interrupt")
	interrupts(2)
	a.waitBotMessage("Interrupted")
	a.startDialog()
	ts := a.reply("held back")
	a.waitReceipt(ts, receiptHeld)
	for _, key := range []string{"Enter", "BackTab"} {
		a.reply("@the-loop keys " + key)
		a.waitBotMessage("Not done", "the agent asks a question", strings.ToLower(key)+" might answer it")
	}
	a.reply("@the-loop keys Escape")
	a.waitBotMessage("Pressed `Escape`", "<@", "denied what the agent asked")
	a.waitReceipt(ts, receiptAccepted)
	if d := a.entries(smallagent.TypeDialog); len(d) != 1 || d[0].Decision != smallagent.DecisionDenied {
		t.Errorf("the dialog ended as %+v", d)
	}
}

func TestStartStopAndRestartWorkInTheThread(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("remember me")
	a.reply("@the-loop stop")
	a.waitBotMessage("*helper* stopped")
	a.waitReceipt(a.reply("anybody?"), receiptFailed)
	a.reply("@the-loop start")
	a.waitBotMessage("*helper* running", "resumed")
	a.waitState(smallagent.StateReady)
	a.replyAccepted("and now?")
	a.wantReceived("remember me", "and now?")
}

// in doubt: the text was typed, and nothing shows that it was taken.
func (a *testSession) replyInDoubt(text string) (ts, question string) {
	a.env.t.Helper()
	ts = a.reply(text)
	a.waitReceipt(ts, receiptInDoubt)
	question = a.waitBotMessage("I cannot tell whether").TS
	a.sendKeys("C-u") // somebody clears the box
	a.env.waitUntil("an empty box", func() bool { return a.screen().Box == "" })
	return ts, question
}

// hermes-agent#100408: buttons are dead after a restart. denoland/clawpatrol#595: they linger. hermes-agent#36848,
// openclaw#96487: anybody may press them.
func TestWhatIsInDoubtIsSentAgainOnlyByChoice(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper", "--lose-enters", "4")
	ts, question := a.replyInDoubt("did you get this?")
	a.wantReceived()
	a.replyAccepted("this is another matter")
	if err := w.bob.Click(w.ctx, w.ch, question, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	w.waitDropped(question, "unauthorized-actor")
	w.startAndConnect()
	w.waitProcessed()
	if err := w.bob.Click(w.ctx, w.ch, question, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	a.replyAccepted("and another")
	a.wantReceived("this is another matter", "and another")
	w.clickTwice(question, chat.ActionSend)
	a.waitReceipt(ts, receiptAccepted)
	w.waitUntil("the question to be answered", func() bool {
		m, _ := w.Message(w.ch, question)
		return containsAll(m.Text, "Sent by <@"+w.ann.ID+">") && !strings.Contains(string(m.Blocks), chat.ActionSend)
	})
	a.wantReceived("this is another matter", "and another", "did you get this?")
	if len(w.Ephemerals(w.bob.ID)) != 0 {
		t.Error("a stranger got an answer")
	}
}

// clickTwice presses a button as one does whose mouse bounces, and waits for two true answers.
func (w *env) clickTwice(ts, action string) {
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
	w.waitUntil("two answers, one of them that it was decided already", func() bool {
		told := w.Ephemerals(w.ann.ID)
		return len(told) == 2 && containsAll(told[0].Text+told[1].Text, "Already decided. Sent by")
	})
}

func TestASkippedReplyIsNeverTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper", "--lose-enters", "4")
	ts, question := a.replyInDoubt("did you get this?")
	if err := w.ann.Click(w.ctx, w.ch, question, chat.ActionSkip); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("the answer", func() bool { return len(w.Ephemerals(w.ann.ID)) == 1 })
	if got := w.Ephemerals(w.ann.ID)[0].Text; !containsAll(got, "Skipped by") {
		t.Errorf("answered %q", got)
	}
	w.waitUntil("no receipt", func() bool { return len(w.Reactions(w.ch, ts)) == 0 })
	a.replyAccepted("the end")
	a.wantReceived("the end")
}

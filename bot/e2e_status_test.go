package bot_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/relay"
)

const methodSetStatus = "assistant.threads.setStatus"

// withoutStatuses is a workspace that has no statuses.
func withoutStatuses(s *envOptions) { s.workspace.NoAssistant = true }

// waitStatus waits until the status in the thread is this one.
func (a *testSession) waitStatus(status string) {
	a.env.t.Helper()
	a.env.waitUntil(fmt.Sprintf("the status %q", status), func() bool { return a.env.Status(a.ch, a.root) == status })
}

// turnMessage is the message that tells of a turn.
func (a *testSession) turnMessage() (text string, n int) {
	for _, m := range a.botMessages() {
		if strings.HasPrefix(m.Text, "_Work") || strings.HasPrefix(m.Text, "_This turn") || strings.HasPrefix(m.Text, "_The agent") {
			text, n = m.Text, n+1
		}
	}
	return text, n
}

func (a *testSession) killProcess() {
	a.env.t.Helper()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		a.env.t.Fatal(err)
	}
}

func TestTheThreadShowsThatTheAgentWorksAndNoLonger(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitOffsetStored()
	a.reply("slow: 4s")
	a.waitStatus("is working…")
	a.waitBotMessage("slow: 4s")
	a.waitStatus("")
	a.reply("slow: 60s")
	a.waitStatus("is working…")
	a.sendKeys("Escape") // no answer takes the status away
	a.waitStatus("")
	a.reply("ask: may I")
	a.waitStatus("is waiting for an answer…")
	a.sendKeys("2")
	a.waitBotMessage("may I")
	a.waitStatus("")
}

func TestTheStatusOfAnAgentThatWasKilledGoesAway(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitOffsetStored()
	a.reply("slow: 60s")
	a.waitStatus("is working…")
	a.killProcess()
	a.waitStatus("")
}

// A burst of turns costs few calls, and the status is none at the end.
func TestABurstOfTurnsLeavesNoStatus(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitOffsetStored()
	for i := range 20 {
		a.reply(fmt.Sprintf("slow: %dms %d", 100+100*(i%3), i))
	}
	w.waitUntil("the answers", func() bool { return len(a.entries(smallagent.TypeAgent)) == 21 })
	a.waitBotMessage("slow: 200ms 19")
	a.waitStatus("")
	if n := len(w.RequestsOf(methodSetStatus)); n > 25 {
		t.Errorf("%d calls of %s", n, methodSetStatus)
	}
}

func TestOneMessageReportsALongTurnThroughARestartAndAKill(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers, withoutStatuses, func(s *envOptions) { s.patience = 2 * patience })
	a := w.startSession("helper")
	a.waitOffsetStored()
	a.reply("slow: 25s")
	a.waitBotMessage("_Working, for 1")
	w.startAndConnect()
	a.waitBotMessage("slow: 25s")
	a.waitBotMessage("_Worked 25 s._")
	if text, n := a.turnMessage(); n != 1 {
		t.Errorf("%d messages tell of the turn, the last is %q", n, text)
	}
	if n := len(w.RequestsOf(methodSetStatus)); n < 1 || n > 4 {
		t.Errorf("asked %d times for a status that is not to be had", n)
	}
	a.reply("slow: 100s")
	a.waitBotMessage("_Working, for 1")
	a.killProcess()
	a.waitBotMessage("_The agent ended while it worked._")
	if text, n := a.turnMessage(); n != 2 {
		t.Errorf("%d messages tell of two turns, the last is %q", n, text)
	}
}

func TestTheStatusIsFoundAgainAfterSlackWasAway(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitOffsetStored()
	w.Faults().InjectAPI(methodSetStatus, 2, localslack.HTML(503))
	a.reply("slow: 25s")
	a.waitStatus("is working…")
	a.waitBotMessage("slow: 25s")
	a.waitStatus("")
}

func TestNothingShowsThatAnAgentWorksWhereRepliesAreOff(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("slow: 3s")
	w.waitUntil("the answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	w.changeConfig(func(p *botConfig) { p.Answers = relay.AnswersFinal })
	a.waitOffsetStored()
	if n := len(w.RequestsOf(methodSetStatus)); n != 0 {
		t.Errorf("%d calls of %s", n, methodSetStatus)
	}
	a.reply("slow: 60s")
	a.waitStatus("is working…")
	w.changeConfig(func(p *botConfig) { p.Answers = relay.AnswersOff })
	a.waitStatus("")
}

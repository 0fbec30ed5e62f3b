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

const setStatus = "assistant.threads.setStatus"

// statusless is a workspace that has no statuses.
func statusless(s *setup) { s.workspace.NoAssistant = true }

// showsStatus waits until the status in the thread is this one.
func (a *agent) showsStatus(status string) {
	a.w.t.Helper()
	a.w.until(fmt.Sprintf("the status %q", status), func() bool { return a.w.Status(a.ch, a.root) == status })
}

// tale is the message that tells of a turn.
func (a *agent) tale() (text string, n int) {
	for _, m := range a.answers() {
		if strings.HasPrefix(m.Text, "_Work") || strings.HasPrefix(m.Text, "_This turn") || strings.HasPrefix(m.Text, "_The agent") {
			text, n = m.Text, n+1
		}
	}
	return text, n
}

func (a *agent) kill() {
	a.w.t.Helper()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		a.w.t.Fatal(err)
	}
}

func TestTheThreadShowsThatTheAgentWorksAndNoLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listenedTo()
	a.reply("slow: 4s")
	a.showsStatus("is working…")
	a.answer("slow: 4s")
	a.showsStatus("")
	a.reply("slow: 60s")
	a.showsStatus("is working…")
	a.keys("Escape") // no answer takes the status away
	a.showsStatus("")
	a.reply("ask: may I")
	a.showsStatus("is waiting for an answer…")
	a.keys("2")
	a.answer("may I")
	a.showsStatus("")
}

func TestTheStatusOfAnAgentThatWasKilledGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listenedTo()
	a.reply("slow: 60s")
	a.showsStatus("is working…")
	a.kill()
	a.showsStatus("")
}

// A burst of turns costs few calls, and the status is none at the end.
func TestABurstOfTurnsLeavesNoStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listenedTo()
	for i := range 20 {
		a.reply(fmt.Sprintf("slow: %dms %d", 100+100*(i%3), i))
	}
	w.until("the answers", func() bool { return len(a.entries(smallagent.TypeAgent)) == 21 })
	a.answer("slow: 200ms 19")
	a.showsStatus("")
	if n := len(w.RequestsOf(setStatus)); n > 25 {
		t.Errorf("%d calls of %s", n, setStatus)
	}
}

func TestOneMessageTellsOfALongTurnThroughARestartAndAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering, statusless, func(s *setup) { s.patience = 2 * patience })
	a := w.agent("helper")
	a.listenedTo()
	a.reply("slow: 25s")
	a.answer("_Working, for 1")
	w.back()
	a.answer("slow: 25s")
	a.answer("_Worked 25 s._")
	if text, n := a.tale(); n != 1 {
		t.Errorf("%d messages tell of the turn, the last is %q", n, text)
	}
	if n := len(w.RequestsOf(setStatus)); n < 1 || n > 4 {
		t.Errorf("asked %d times for a status that is not to be had", n)
	}
	a.reply("slow: 100s")
	a.answer("_Working, for 1")
	a.kill()
	a.answer("_The agent ended while it worked._")
	if text, n := a.tale(); n != 2 {
		t.Errorf("%d messages tell of two turns, the last is %q", n, text)
	}
}

func TestTheStatusIsFoundAgainAfterSlackWasAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listenedTo()
	w.Faults().InjectAPI(setStatus, 2, localslack.HTML(503))
	a.reply("slow: 25s")
	a.showsStatus("is working…")
	a.answer("slow: 25s")
	a.showsStatus("")
}

func TestNothingShowsThatAnAgentWorksWhereRepliesAreOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("slow: 3s")
	w.until("the answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	w.change(func(p *plan) { p.Answers = relay.AnswersFinal })
	a.listenedTo()
	if n := len(w.RequestsOf(setStatus)); n != 0 {
		t.Errorf("%d calls of %s", n, setStatus)
	}
	a.reply("slow: 60s")
	a.showsStatus("is working…")
	w.change(func(p *plan) { p.Answers = relay.AnswersOff })
	a.showsStatus("")
}

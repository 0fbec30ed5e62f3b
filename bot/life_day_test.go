package bot_test

import (
	"syscall"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/binding"
)

// A day in the life of a session: made in Slack, talked to, looked at, killed, brought back, taken down and up with the
// whole, and deleted, with the bot restarted in between and Slack's limits in force.
func TestADayInTheLifeOfASession(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(s *lifeSetup) { s.workspace.RateLimits = localslack.RateLimitsStrict })
	l.says("list", "There is no session")
	l.command("create")
	form := l.view("Announce it in")
	if wrong := l.submit(form, map[string]string{"name": "day", "cwd": "/not/there"}); wrong["cwd"] == "" {
		t.Errorf("a folder that is not there was taken: %v", wrong)
	}
	if wrong := l.submit(form, map[string]string{"name": "day", "cwd": l.plan.TmuxDir, "brief": "Mind the build."}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.view("*day* running", "started")
	a := l.session("day")
	a.shows(buttonsUp, "*day* is running")

	a.tells("good morning")
	l.says("say day and via the command", "has received it")
	a.reply("@the-loop status")
	a.answer("*day* running")
	l.says("peek day", "good morning", "```")
	a.reply("@the-loop peek --share")
	a.answer("Shared by")

	conversation := l.row("day").Conversation
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.answer("*day* is down", "killed by signal", "good morning")
	a.shows("Start Peek Delete", "its agent has ended")
	l.until("the refusal", func() bool { return contains(l.slash("say day hello"), "the-loop standing start day") })
	l.stop()
	missed := a.reply("said while the bot was away")
	l.back()
	a.press("session_start")
	a.shows(buttonsUp, "*day* is running")
	l.until("the missed reply's end", func() bool {
		e := a.state(missed)
		return e.State == binding.StateSettled && e.Outcome != ""
	})
	a.until(smallagent.StateReady)
	before := l.row("day").Changed
	a.press("session_restart")
	l.until("the restart", func() bool { return l.row("day").Changed.After(before) && l.row("day").Running })
	if got := l.row("day").Conversation; got != conversation {
		t.Errorf("the conversation is %s now, and was %s", got, conversation)
	}
	a.until(smallagent.StateReady)
	a.tells("still there?")

	if all, err := l.core.StopAll(l.ctx); err != nil || all.Failed() != 0 {
		t.Fatalf("stop: %+v, %v", all, err)
	}
	l.reconcile()
	a.shows(buttonsCreated, "*day* is stopped")
	if all, err := l.core.StartAll(l.ctx); err != nil || len(all.Rows) != 1 || all.Rows[0].Outcome != sessions.OutcomeResumed {
		t.Fatalf("start: %+v, %v", all, err)
	}
	l.reconcile()
	a.shows(buttonsUp, "*day* is running")
	a.until(smallagent.StateReady)
	a.tells("good night")

	l.pick(l.menu(a.root, "*day* is running"), "session_stop")
	a.shows(buttonsCreated, "*day* is stopped")
	l.command("delete day")
	l.submit(l.view("Delete *day*?"), nil)
	l.view("*day* was deleted")
	a.shows("", "*day* was deleted")
	l.says("list", "There is no session")
	if n := a.count("is down"); n != 1 {
		t.Errorf("the thread was told of %d deaths", n)
	}
	l.nowhere()
}

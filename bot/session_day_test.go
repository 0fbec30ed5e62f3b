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
	l := newBotEnv(t, func(s *botEnvOptions) { s.workspace.RateLimits = localslack.RateLimitsStrict })
	l.wantSlashAnswer("list", "There is no session")
	l.runCommand("create")
	form := l.waitModal("Announce it in")
	if wrong := l.submitModal(form, map[string]string{"name": "day", "cwd": "/not/there"}); wrong["cwd"] == "" {
		t.Errorf("a folder that is not there was taken: %v", wrong)
	}
	if wrong := l.submitModal(form, map[string]string{"name": "day", "cwd": l.botConfig.TmuxDir, "brief": "Mind the build."}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.waitModal("*day* running", "started")
	a := l.startedSession("day")
	a.waitAnnouncement(buttonsRunning, "*day* is running")

	a.replyAccepted("good morning")
	l.wantSlashAnswer("say day and via the command", "has received it")
	a.reply("@the-loop status")
	a.waitBotMessage("*day* running")
	l.wantSlashAnswer("peek day", "good morning", "```")
	a.reply("@the-loop peek --share")
	a.waitBotMessage("Shared by")

	conversation := l.row("day").Conversation
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.waitBotMessage("*day* is down", "killed by signal", "good morning")
	a.waitAnnouncement("Start Peek Delete", "its agent has ended")
	l.waitUntil("the refusal", func() bool { return containsAll(l.slashAnswer("say day hello"), "the-loop standing start day") })
	l.stopBot()
	missed := a.reply("said while the bot was away")
	l.startAndConnect()
	a.pressButton("session_start")
	a.waitAnnouncement(buttonsRunning, "*day* is running")
	l.waitUntil("the missed reply's end", func() bool {
		e := a.storedReply(missed)
		return e.State == binding.StateSettled && e.Outcome != ""
	})
	a.waitState(smallagent.StateReady)
	before := l.row("day").Changed
	a.pressButton("session_restart")
	l.waitUntil("the restart", func() bool { return l.row("day").Changed.After(before) && l.row("day").Running })
	if got := l.row("day").Conversation; got != conversation {
		t.Errorf("the conversation is %s now, and was %s", got, conversation)
	}
	a.waitState(smallagent.StateReady)
	a.replyAccepted("still there?")

	if all, err := l.core.StopAll(l.ctx); err != nil || all.Failed() != 0 {
		t.Fatalf("stop: %+v, %v", all, err)
	}
	l.reconcileNow()
	a.waitAnnouncement(buttonsCreated, "*day* is stopped")
	if all, err := l.core.StartAll(l.ctx); err != nil || len(all.Rows) != 1 || all.Rows[0].Outcome != sessions.OutcomeResumed {
		t.Fatalf("start: %+v, %v", all, err)
	}
	l.reconcileNow()
	a.waitAnnouncement(buttonsRunning, "*day* is running")
	a.waitState(smallagent.StateReady)
	a.replyAccepted("good night")

	l.pressInModal(l.openShortcut(a.root, "*day* is running"), "session_stop")
	a.waitAnnouncement(buttonsCreated, "*day* is stopped")
	l.runCommand("delete day")
	l.submitModal(l.waitModal("Delete *day*?"), nil)
	l.waitModal("*day* was deleted")
	a.waitAnnouncement("", "*day* was deleted")
	l.wantSlashAnswer("list", "There is no session")
	if n := a.countBotMessages("is down"); n != 1 {
		t.Errorf("the thread was told of %d deaths", n)
	}
	l.checkSecretNotPosted()
}

package bot_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/threads"
)

const workItemRef = sessions.Ref("github:acme/shop#7")

// deliverEvent takes an event to the work item.
func (l *botEnv) deliverEvent(id, text string) sessions.DeliveryResult {
	l.t.Helper()
	d, err := l.core.Deliver(l.ctx, sessions.DeliverRequest{Ref: workItemRef, DeliveryID: id, Text: text})
	if err != nil {
		l.t.Fatal(err)
	}
	l.reconcileNow()
	return d
}

// newWorkItem registers a work item and delivers its first event.
func (l *botEnv) newWorkItem() *testSession {
	l.t.Helper()
	_, err := l.core.Register(l.ctx, sessions.RegisterRequest{Ref: workItemRef, Chat: sessions.ChatDefinition{Enabled: true}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.deliverEvent("1", "opened")
	return l.startedSession(workItemRef.Name())
}

func TestAWorkItemHasAThreadOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.createSession("helper")
	a := l.newWorkItem()
	a.waitAnnouncement(buttonsRunning, "*acme/shop#7* is running", "the-loop sessions attach github:acme/shop#7")
	ts := a.replyAccepted("look at the parser")
	a.wantReceived("look at the parser")
	skipped := false
	for _, e := range l.events.Events() {
		if e.Name == threads.EventMirrorSkip && e.Ref == workItemRef {
			skipped = e.Fields["ts"] == ts && e.Fields["reason"] == threads.ReasonNoWriter
		}
	}
	if !skipped {
		t.Error("it is not recorded why the reply is mirrored nowhere")
	}
	l.wantSlashAnswer("list", "*acme/shop#7* running", "*helper* running")
	if told := l.statusAnswer(); !containsAll(told, "*acme/shop#7* running") {
		t.Errorf("%q", told)
	}
	l.wantSlashAnswer("peek "+string(workItemRef), "look at the parser")
	l.wantSlashAnswer("say "+string(workItemRef)+" and at the lexer", "*acme/shop#7* has received it")
	a.wantReceived("look at the parser", "and at the lexer")
	if _, err := l.ann.Post(l.ch, "nothing"); err != nil {
		t.Fatal(err)
	}
}

func TestR2_6_ARespawnIsNotAnnouncedAgain(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.newWorkItem()
	roots := func() (n int) {
		for _, m := range l.Messages(l.ch) {
			if !m.IsReply() && strings.Contains(m.Text, workItemRef.Name()) { // its thread may also say that the agent has ended
				n++
			}
		}
		return n
	}
	for i, forget := range []bool{false, true} {
		pane := a.pane()
		if err := syscall.Kill(pane.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.waitUntil("the end", func() bool { return l.row(workItemRef.Name()).State == sessions.StateEnded })
		if forget { // a fresh conversation
			l.editRecord(func(r *sessions.Record) { r.Conversation = "--gone" })
		}
		d := l.deliverEvent(string(rune('a'+i)), "commented")
		if fresh := d.Row.Outcome == sessions.OutcomeStarted; fresh != forget || d.Row.ID != a.id {
			t.Errorf("%+v", d)
		}
		a.conv = d.Row.Conversation
		a.waitState(smallagent.StateReady)
		a.waitAnnouncement(buttonsRunning, "is running")
		a.replyAccepted("still there?")
	}
	l.startAndConnect()
	l.reconcileNow()
	l.waitProcessed()
	if n := l.countEvents("session.announced"); n != 1 || roots() != 1 {
		t.Errorf("announced %d times, %d messages", n, roots())
	}
	if n := l.countEvents(sessions.EventRespawned); n != 2 {
		t.Errorf("%d respawns", n)
	}
}

// editRecord changes the work item's record.
func (l *botEnv) editRecord(change func(*sessions.Record)) {
	l.t.Helper()
	reg := registry.New(l.botConfig.Root)
	rec, err := reg.Load(l.ctx, workItemRef)
	if err == nil {
		change(&rec)
		err = reg.Save(l.ctx, rec)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestTheThreadOfAWorkItemSaysThatItsAgentDied(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.newWorkItem()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.waitBotMessage(":red_circle: *acme/shop#7* is down: the agent ended, killed by signal")
	a.waitAnnouncement("Start Peek Close", "not running", "the-loop sessions deliver github:acme/shop#7")
	if n := l.countEvents("session.ended"); n != 1 || l.countEvents("standing.ended") != 0 {
		t.Errorf("%d events", n)
	}
	ts := a.reply("hello?")
	a.waitReceipt(ts, "warning")
	a.waitBotMessage("Not delivered:", "the-loop sessions deliver "+string(workItemRef))
	if r := l.row(workItemRef.Name()); r.State != sessions.StateEnded {
		t.Errorf("a reply started it: %+v", r)
	}
	a.pressButton(render.ActionStart)
	a.waitAnnouncement(buttonsRunning, "is running")
	a.waitState(smallagent.StateReady)
	if got := a.receivedTexts(); len(got) != 0 {
		t.Errorf("it was told %q", got)
	}
}

func TestClosingAWorkItemAsksFirstAndEndsItsThread(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.newWorkItem()
	a.pressButton(render.ActionStop)
	a.waitAnnouncement("Start Close", "is stopped")
	a.pressButton(render.ActionDelete)
	v := l.waitModal("Close *acme/shop#7*?")
	if wrong := l.submitModal(v, nil); len(wrong) != 0 {
		t.Fatalf("%v", wrong)
	}
	l.waitModal("*acme/shop#7* was closed")
	l.waitUntil("the last announcement", func() bool {
		m, _ := l.Message(l.ch, a.root)
		return strings.Contains(m.Text, "*acme/shop#7* was closed")
	})
	a.waitBotMessage("This session was closed")
	if _, err := l.core.Deliver(l.ctx, sessions.DeliverRequest{Ref: workItemRef, DeliveryID: "9", Text: "x"}); !errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("%v", err)
	}
}

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

const item = sessions.Ref("github:acme/shop#7")

// deliver takes an event to the work item.
func (l *life) deliver(id, text string) sessions.DeliveryResult {
	l.t.Helper()
	d, err := l.core.Deliver(l.ctx, sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: text})
	if err != nil {
		l.t.Fatal(err)
	}
	l.reconcile()
	return d
}

// item registers a work item and delivers its first event.
func (l *life) item() *agent {
	l.t.Helper()
	_, err := l.core.Register(l.ctx, sessions.RegisterRequest{Ref: item, Chat: sessions.ChatDefinition{Enabled: true}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.deliver("1", "opened")
	return l.session(item.Name())
}

func TestAWorkItemHasAThreadOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.make("helper")
	a := l.item()
	a.shows(buttonsUp, "*acme/shop#7* is running", "the-loop sessions attach github:acme/shop#7")
	ts := a.tells("look at the parser")
	a.wants("look at the parser")
	skipped := false
	for _, e := range l.events.Events() {
		if e.Name == threads.EventMirrorSkip && e.Ref == item {
			skipped = e.Fields["ts"] == ts && e.Fields["reason"] == threads.ReasonNoWriter
		}
	}
	if !skipped {
		t.Error("it is not recorded why the reply is mirrored nowhere")
	}
	l.says("list", "*acme/shop#7* running", "*helper* running")
	if told := l.status(); !contains(told, "*acme/shop#7* running") {
		t.Errorf("%q", told)
	}
	l.says("peek "+string(item), "look at the parser")
	l.says("say "+string(item)+" and at the lexer", "*acme/shop#7* has received it")
	a.wants("look at the parser", "and at the lexer")
	if _, err := l.ann.Post(l.ch, "nothing"); err != nil {
		t.Fatal(err)
	}
}

func TestR2_6_ARespawnIsNotAnnouncedAgain(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.item()
	roots := func() (n int) {
		for _, m := range l.Messages(l.ch) {
			if !m.IsReply() && strings.Contains(m.Text, item.Name()) { // its thread may also say that the agent has ended
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
		l.until("the end", func() bool { return l.row(item.Name()).State == sessions.StateEnded })
		if forget { // a fresh conversation
			l.edit(func(r *sessions.Record) { r.Conversation = "--gone" })
		}
		d := l.deliver(string(rune('a'+i)), "commented")
		if fresh := d.Row.Outcome == sessions.OutcomeStarted; fresh != forget || d.Row.ID != a.id {
			t.Errorf("%+v", d)
		}
		a.conv = d.Row.Conversation
		a.until(smallagent.StateReady)
		a.shows(buttonsUp, "is running")
		a.tells("still there?")
	}
	l.back()
	l.reconcile()
	l.passed()
	if n := l.count("session.announced"); n != 1 || roots() != 1 {
		t.Errorf("announced %d times, %d messages", n, roots())
	}
	if n := l.count(sessions.EventRespawned); n != 2 {
		t.Errorf("%d respawns", n)
	}
}

// edit changes the work item's record.
func (l *life) edit(change func(*sessions.Record)) {
	l.t.Helper()
	reg := registry.New(l.plan.Root)
	rec, err := reg.Load(l.ctx, item)
	if err == nil {
		change(&rec)
		err = reg.Save(l.ctx, rec)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestTheThreadOfAWorkItemIsToldThatItsAgentDied(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.item()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.answer(":red_circle: *acme/shop#7* is down: the agent ended, killed by signal")
	a.shows("Start Peek Close", "not running", "the-loop sessions deliver github:acme/shop#7")
	if n := l.count("session.ended"); n != 1 || l.count("standing.ended") != 0 {
		t.Errorf("%d events", n)
	}
	ts := a.reply("hello?")
	a.receipt(ts, "warning")
	a.answer("Not delivered:", "the-loop sessions deliver "+string(item))
	if r := l.row(item.Name()); r.State != sessions.StateEnded {
		t.Errorf("a reply started it: %+v", r)
	}
	a.press(render.ActionStart)
	a.shows(buttonsUp, "is running")
	a.until(smallagent.StateReady)
	if got := a.got(); len(got) != 0 {
		t.Errorf("it was told %q", got)
	}
}

func TestClosingAWorkItemAsksFirstAndEndsItsThread(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.item()
	a.press(render.ActionStop)
	a.shows("Start Close", "is stopped")
	a.press(render.ActionDelete)
	v := l.view("Close *acme/shop#7*?")
	if wrong := l.submit(v, nil); len(wrong) != 0 {
		t.Fatalf("%v", wrong)
	}
	l.view("*acme/shop#7* was closed")
	l.until("the last announcement", func() bool {
		m, _ := l.Message(l.ch, a.root)
		return strings.Contains(m.Text, "*acme/shop#7* was closed")
	})
	a.answer("This session was closed")
	if _, err := l.core.Deliver(l.ctx, sessions.DeliverRequest{Ref: item, DeliveryID: "9", Text: "x"}); !errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("%v", err)
	}
}

package threads

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"the-loop/sessions"
)

// Wait is a time during which an agent waits for its operator: it asks something. The thread is told once when it lasts.
type Wait struct {
	Since time.Time `json:"since"`
	Told  bool      `json:"told,omitempty"`
}

// waitPatience is how long an agent may wait before the thread says so, where nothing else is asked for.
const waitPatience = time.Minute

// waits takes that the agent waits for its operator since then. lines are what it shows, where the thread has not shown
// that already. A dialog that no hook tells of is seen again and again; the reminder is for questions.
func (t *thread) waits(since time.Time, lines []string) {
	if t.b.Waiting == nil {
		t.b.Waiting = &Wait{Since: since}
		t.keep()
	}
	if t.b.Waiting.Told {
		return
	}
	left := t.m.o.Patience - t.m.o.Now().Sub(t.b.Waiting.Since)
	if left <= 0 {
		t.sayWaits(lines)
		return
	}
	if t.reminder == nil {
		t.reminder = time.AfterFunc(left, func() {
			t.do(func(context.Context) {
				t.reminder = nil
				if t.b.Waiting != nil && t.openAsks() { // a dialog alone is looked at again by who saw it
					t.waits(t.b.Waiting.Since, nil)
				}
			})
		})
	}
}

// sayWaits tells the thread, and the one who spoke last.
func (t *thread) sayWaits(lines []string) {
	t.b.Waiting.Told = true
	t.keep()
	since, text := moment(TimeTS(t.b.Waiting.Since)), ""
	if t.b.Speaker != "" {
		text = fmt.Sprintf("<@%s> ", t.b.Speaker)
	}
	if t.openAsks() {
		text += fmt.Sprintf("The agent waits for an answer since %s. See the question above.", since)
	} else { // a screen that is not known is taken for a dialog
		text += fmt.Sprintf("The agent seems to wait for an answer since %s. Answer it in the terminal.", since) + t.m.dialogText(lines)
	}
	t.m.outbox.add(t.message(text, rand.Text()), false)
}

// rests takes that the agent may not wait for its operator any more.
func (t *thread) rests() {
	if t.b.Waiting == nil || t.openAsks() {
		return
	}
	t.b.Waiting = nil
	if t.reminder != nil {
		t.reminder.Stop()
		t.reminder = nil
	}
	t.keep()
}

// Seen takes what an agent's screen showed when nothing was to be typed: a dialog that no hook tells of is seen there.
func (m *Manager) Seen(id string, v sessions.View) {
	t := m.of(id)
	if t == nil {
		return
	}
	t.do(func(context.Context) { t.seen(v) })
}

func (t *thread) seen(v sessions.View) {
	switch {
	case t.gone || t.b.Root == "" || t.openAsks(): // a hook tells of its end
	case v.State == sessions.ViewDialog:
		t.waits(t.m.o.Now(), v.Lines)
	case v.State == sessions.ViewReady || v.State == sessions.ViewWorking:
		t.rests()
	}
}

// dialogText is what an agent's screen asks, for the thread.
func (m *Manager) dialogText(lines []string) string {
	if m.o.DialogText == nil || len(lines) == 0 {
		return ""
	}
	return "\n" + m.o.DialogText(lines)
}

package threads

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// WaitState is a time during which an agent waits for its operator: it asks something. The thread is told once when it lasts.
type WaitState struct {
	Since    time.Time `json:"since"`
	Notified bool      `json:"told,omitempty"`
}

// defaultRemindAfter is how long an agent may wait before the thread says so, where nothing else is asked for.
const defaultRemindAfter = time.Minute

// waits takes that the agent waits for its operator since then. lines are what it shows, where the thread has not shown
// that already. A dialog that no hook tells of is seen again and again; the reminder is for questions.
func (t *thread) setWaiting(since time.Time, lines []string) {
	if t.b.Waiting == nil {
		t.b.Waiting = &WaitState{Since: since}
		t.saveBestEffort()
	}
	if t.b.Waiting.Notified {
		return
	}
	left := t.m.o.RemindAfter - t.m.o.Now().Sub(t.b.Waiting.Since)
	if left <= 0 {
		t.postWaiting(lines)
		return
	}
	if t.waitReminder == nil {
		t.waitReminder = time.AfterFunc(left, func() {
			t.do(func(context.Context) {
				t.waitReminder = nil
				if t.b.Waiting != nil && t.b.PermissionRequests.HasOpen() { // a dialog alone is looked at again by who saw it
					t.setWaiting(t.b.Waiting.Since, nil)
				}
			})
		})
	}
}

// postWaiting tells the thread, and the one who spoke last.
func (t *thread) postWaiting(lines []string) {
	t.b.Waiting.Notified = true
	t.saveBestEffort()
	since, text := chat.DateText(chat.TimeTS(t.b.Waiting.Since)), ""
	if t.b.LastUser != "" {
		text = fmt.Sprintf("<@%s> ", t.b.LastUser)
	}
	if t.b.PermissionRequests.HasOpen() {
		text += fmt.Sprintf("The agent waits for an answer since %s. See the question above.", since)
	} else { // a screen that is not known is taken for a dialog
		text += fmt.Sprintf("The agent seems to wait for an answer since %s. Answer it in the terminal.", since) + t.m.dialogText(lines)
	}
	t.m.outbox.Add(t.newPost(text, rand.Text()), false)
}

// rests takes that the agent may not wait for its operator any more.
func (t *thread) clearWaiting() {
	if t.b.Waiting == nil || t.b.PermissionRequests.HasOpen() {
		return
	}
	t.b.Waiting = nil
	if t.waitReminder != nil {
		t.waitReminder.Stop()
		t.waitReminder = nil
	}
	t.saveBestEffort()
}

// HandleScreen takes what an agent's screen showed when nothing was to be typed: a dialog that no hook tells of is seen there.
func (m *Manager) HandleScreen(id string, v sessions.View) {
	t := m.threadOf(id)
	if t == nil {
		return
	}
	t.do(func(context.Context) { t.updateWaiting(v) })
}

func (t *thread) updateWaiting(v sessions.View) {
	switch {
	case t.unbound || t.b.Root == "" || t.b.PermissionRequests.HasOpen(): // a hook tells of its end
	case v.State == sessions.ViewDialog:
		t.setWaiting(t.m.o.Now(), v.Lines)
	case v.State == sessions.ViewReady || v.State == sessions.ViewWorking:
		t.clearWaiting()
	}
}

// dialogText is what an agent's screen asks, for the thread.
func (m *Manager) dialogText(lines []string) string {
	if m.o.DialogText == nil || len(lines) == 0 {
		return ""
	}
	return "\n" + m.o.DialogText(lines)
}

package threads

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// defaultRemindAfter is how long an agent may wait before the thread is told, where the options say nothing.
const defaultRemindAfter = time.Minute

// waitNotice tells the thread once when the agent waits for its operator for long.
type waitNotice struct {
	*threadState
	reminder *time.Timer // when the agent will have waited long
}

// set says that the agent waits for its operator since then. lines are what its screen shows, where the thread does not show that
// already. A dialog that no hook reports is seen again and again; the reminder is for permission requests.
func (w *waitNotice) set(since time.Time, lines []string) {
	if w.b.Waiting == nil {
		w.b.Waiting = &WaitState{Since: since}
		w.saveBestEffort()
	}
	if w.b.Waiting.Notified {
		return
	}
	left := w.svc.RemindAfter - w.svc.Now().Sub(w.b.Waiting.Since)
	if left <= 0 {
		w.tell(lines)
		return
	}
	if w.reminder == nil {
		w.reminder = time.AfterFunc(left, func() {
			w.do(func(context.Context) {
				w.reminder = nil
				if w.b.Waiting != nil && w.b.PermissionRequests.HasOpen() { // a dialog alone is reported again by who saw it
					w.set(w.b.Waiting.Since, nil)
				}
			})
		})
	}
}

// tell tells the thread, and who spoke last, that the agent waits.
func (w *waitNotice) tell(lines []string) {
	w.b.Waiting.Notified = true
	w.saveBestEffort()
	since, text := chat.DateText(chat.TimeTS(w.b.Waiting.Since)), ""
	if w.b.LastUser != "" {
		text = fmt.Sprintf("<@%s> ", w.b.LastUser)
	}
	if w.b.PermissionRequests.HasOpen() {
		text += fmt.Sprintf("The agent waits for an answer since %s. See the question above.", since)
	} else { // a screen that is not known is taken for a dialog
		text += fmt.Sprintf("The agent seems to wait for an answer since %s. Answer it in the terminal.", since) + w.svc.dialogText(lines)
	}
	w.svc.outbox.Add(w.newPost(text, rand.Text()), false)
}

// clear ends the waiting state, unless permission requests are open.
func (w *waitNotice) clear() {
	if w.b.Waiting == nil || w.b.PermissionRequests.HasOpen() {
		return
	}
	w.b.Waiting = nil
	if w.reminder != nil {
		w.reminder.Stop()
		w.reminder = nil
	}
	w.saveBestEffort()
}

// HandleScreen handles what an agent's screen showed while nothing was to be typed: a dialog that no hook reports is seen there.
func (m *Manager) HandleScreen(id string, v sessions.View) {
	t := m.index.of(id)
	if t == nil {
		return
	}
	t.do(func(context.Context) { t.waiting.update(v) })
}

// update sets or clears the waiting state by what the screen shows.
func (w *waitNotice) update(v sessions.View) {
	switch {
	case w.unbound || w.b.Root == "" || w.b.PermissionRequests.HasOpen(): // a hook tells of its end
	case v.State == sessions.ViewDialog:
		w.set(w.svc.Now(), v.Lines)
	case v.State == sessions.ViewReady || v.State == sessions.ViewWorking:
		w.clear()
	}
}

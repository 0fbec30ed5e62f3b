package threads

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
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
	if w.B.Waiting == nil {
		w.B.Waiting = &binding.WaitState{Since: since}
		w.SaveBestEffort()
	}
	if w.B.Waiting.Notified {
		return
	}
	left := w.svc.RemindAfter - w.svc.Now().Sub(w.B.Waiting.Since)
	if left <= 0 {
		w.tell(lines)
		return
	}
	if w.reminder == nil {
		w.reminder = time.AfterFunc(left, func() {
			w.Do(func(context.Context) {
				w.reminder = nil
				if w.B.Waiting != nil && w.B.PermissionRequests.HasOpen() { // a dialog alone is reported again by who saw it
					w.set(w.B.Waiting.Since, nil)
				}
			})
		})
	}
}

// tell tells the thread, and who spoke last, that the agent waits.
func (w *waitNotice) tell(lines []string) {
	w.B.Waiting.Notified = true
	w.SaveBestEffort()
	since, text := chat.DateText(chat.TimeTS(w.B.Waiting.Since)), ""
	if w.B.LastUser != "" {
		text = fmt.Sprintf("<@%s> ", w.B.LastUser)
	}
	if w.B.PermissionRequests.HasOpen() {
		text += fmt.Sprintf("The agent waits for an answer since %s. See the question above.", since)
	} else { // a screen that is not known is taken for a dialog
		text += fmt.Sprintf("The agent seems to wait for an answer since %s. Answer it in the terminal.", since) + w.svc.dialogText(lines)
	}
	w.svc.outbox.Add(w.NewPost(text, rand.Text()), false)
}

// clear ends the waiting state, unless permission requests are open.
func (w *waitNotice) clear() {
	if w.B.Waiting == nil || w.B.PermissionRequests.HasOpen() {
		return
	}
	w.B.Waiting = nil
	if w.reminder != nil {
		w.reminder.Stop()
		w.reminder = nil
	}
	w.SaveBestEffort()
}

// HandleScreen handles what an agent's screen showed while nothing was to be typed: a dialog that no hook reports is seen there.
func (m *Manager) HandleScreen(id string, v sessions.View) {
	t := m.index.of(id)
	if t == nil {
		return
	}
	t.Do(func(context.Context) { t.waiting.update(v) })
}

// update sets or clears the waiting state by what the screen shows.
func (w *waitNotice) update(v sessions.View) {
	switch {
	case w.Unbound || w.B.Root == "" || w.B.PermissionRequests.HasOpen(): // a hook tells of its end
	case v.State == sessions.ViewDialog:
		w.set(w.svc.Now(), v.Lines)
	case v.State == sessions.ViewReady || v.State == sessions.ViewWorking:
		w.clear()
	}
}

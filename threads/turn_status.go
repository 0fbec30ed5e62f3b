package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

const (
	turnMessageAfter     = 15 * time.Second // how long a turn lasts before a message tells of it
	turnMessageEditEvery = 30 * time.Second // how often that message is edited, at most
	screenCheckEvery     = 8 * time.Second  // how often the screen of an agent that claims to work is read
	idleScreensNeeded    = 2                // so many screens in a row have to show an idle agent
)

// turnState is what is known of an agent's turn, and what the thread shows of it.
type turnState struct {
	known        bool          // the agent's record was read since the start
	recorded     sessions.Turn // by that record
	changedAt    time.Time     // when it was first known that this turn runs, or does not
	ending       turnEnding    // what the pane says against the record
	dialogOpen   bool          // a dialog is open
	screenReadAt time.Time
	idleScreens  int
	agentEndedAt time.Time // when the last agent was found to have ended; zero: not since the bot began

	shownStatus       string // what the status says; empty: nothing
	statusUncertain   bool   // or something else
	statusSetAt       time.Time
	statusCallPending bool      // a call is under way
	refusedAt         time.Time // when we were not let write there
}

// turnEnding is how a turn ended of which the record says that it runs.
type turnEnding string

const (
	turnEndedIdle   turnEnding = "idle" // the agent waits for text
	turnEndedExited turnEnding = "gone" // the agent has ended
)

// isRunning reports whether a turn runs.
func (w *turnState) isRunning() bool { return w.recorded.Working && w.ending == "" }

// startedAt is when the turn began, as far as that is known.
func (w *turnState) startedAt() time.Time {
	if w.recorded.Since.IsZero() {
		return w.changedAt
	}
	return w.recorded.Since
}

// turnStatus shows in one thread whether its agent works: by a status, or where the workspace has none by one message that is
// edited.
type turnStatus struct {
	*threadState
	turnState
}

// onTurn handles what the agent's record says of its turn; news says that something was added to the record.
func (w *turnStatus) onTurn(turn sessions.Turn, news bool) {
	now := w.svc.Now()
	if turn.Working != w.recorded.Working || !turn.Since.Equal(w.recorded.Since) {
		w.changedAt, w.screenReadAt, w.dialogOpen, w.idleScreens, w.ending = now, now, false, 0, ""
		if now.Sub(turn.Since) > screenCheckEvery {
			w.screenReadAt = time.Time{} // the agent may have been killed since
		}
	}
	if w.recorded = turn; news {
		w.idleScreens, w.ending = 0, ""
	}
	w.endIfAgentEnded()
	if !w.known {
		w.known, w.statusUncertain = true, w.b.TurnRunning // an earlier run of the bot may have had it shown
	}
	w.b.TurnRunning = turn.Working
	w.signals.statusDue()
}

// endIfAgentEnded ends a turn of an agent that has ended: its record goes on saying that it works, and may still grow by what it had
// written before.
func (w *turnState) endIfAgentEnded() {
	if w.recorded.Working && !w.startedAt().After(w.agentEndedAt) {
		w.ending = turnEndedExited
	}
}

// AgentEnded says that a session's agent had ended by then, so that its thread does not show that it works.
func (m *Manager) AgentEnded(ctx context.Context, id string, at time.Time) {
	if t := m.index.of(id); t != nil {
		t.call(ctx, func(context.Context) { t.turn.agentEnded(at) })
	}
}

func (w *turnStatus) agentEnded(at time.Time) {
	if at.After(w.agentEndedAt) {
		w.agentEndedAt = at
		w.endIfAgentEnded()
		w.signals.statusDue()
	}
}

// setDialogOpen says whether a dialog of the agent waits for an answer.
func (w *turnStatus) setDialogOpen(open bool) {
	w.dialogOpen = open
	w.signals.statusDue()
}

// onScreen handles what the agent's screen shows.
func (w *turnStatus) onScreen(state sessions.ViewState, now time.Time, err error) {
	w.screenReadAt = now
	switch {
	case errors.Is(err, sessions.ErrNotRunning), errors.Is(err, sessions.ErrNotRecorded), errors.Is(err, sessions.ErrReplaced):
		w.ending = turnEndedExited
	case err != nil: // nothing is known
	case state == sessions.ViewReady:
		w.dialogOpen = false
		if w.idleScreens++; w.idleScreens >= idleScreensNeeded {
			w.ending = turnEndedIdle
		}
	default:
		w.dialogOpen, w.idleScreens = state == sessions.ViewDialog || state == sessions.ViewMenu, 0
	}
}

// nextStep decides what is to be done next. none: the workspace has no statuses.
func (w *turnStatus) nextStep(now time.Time, none bool) step {
	if w.unbound || w.b.Root == "" {
		return step{}
	}
	s := w.messageStep(now)
	if s.kind != stepNone {
		return s
	}
	if w.isRunning() && w.svc.ScreenReader != nil {
		if next := w.screenReadAt.Add(screenCheckEvery); now.Before(next) {
			s.next = earliestNonZero(s.next, next)
		} else {
			return step{kind: stepReadScreen}
		}
	}
	if none {
		s.next = earliestNonZero(s.next, w.startMessage(now))
		return s
	}
	status := w.statusStep(now)
	status.next = earliestNonZero(s.next, status.next)
	return status
}

func earliestNonZero(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// statusStep is the step that makes the status true.
func (w *turnStatus) statusStep(now time.Time) step {
	want := ""
	switch {
	case w.isRunning() && w.dialogOpen:
		want = statusWaiting
	case w.isRunning():
		want = statusWorking
	}
	switch fresh := w.changedAt.Add(statusDelay); {
	case want == w.shownStatus && !w.statusUncertain && want == "":
		return step{}
	case want == w.shownStatus && !w.statusUncertain && now.Sub(w.statusSetAt) < statusRefreshEvery:
		return step{next: w.statusSetAt.Add(statusRefreshEvery)}
	case now.Before(fresh): // a short turn is not shown, and an answer takes the status away by itself
		return step{next: fresh}
	case now.Before(w.refusedAt.Add(statusRefusedPause)) && !w.refusedAt.IsZero():
		return step{next: w.refusedAt.Add(statusRefusedPause)}
	}
	return step{kind: stepSetStatus, text: want, post: w.newPost("", "")}
}

// onStatusSet handles what became of setting the status.
func (w *turnStatus) onStatusSet(text string, now time.Time, err error) {
	w.statusCallPending = false
	switch {
	case err == nil:
		w.shownStatus, w.statusSetAt = text, now
	case errors.Is(err, chat.ErrNoStatus):
		w.shownStatus, w.statusUncertain = "", false
	case chat.FailureOf(err) == chat.FailureMessage, chat.FailureOf(err) == chat.FailureChannel, chat.FailureOf(err) == chat.FailureApp:
		w.refusedAt = now
	default:
		w.statusUncertain = true
	}
}

// onStatusCleared handles that we posted in the thread: Slack removes the status then.
func (w *turnStatus) onStatusCleared() {
	if w.shownStatus, w.statusUncertain = "", w.statusCallPending; w.isRunning() || w.statusCallPending {
		w.signals.statusDue()
	}
}

// startMessage queues the message that tells of a long turn, and returns when that is due.
func (w *turnStatus) startMessage(now time.Time) time.Time {
	due := w.startedAt().Add(turnMessageAfter)
	switch {
	case !w.isRunning() || w.b.TurnMessage.Nonce != "":
		return time.Time{}
	case now.Before(due):
		return due
	}
	w.b.TurnMessage = TurnMessage{Nonce: w.sessionID + "." + rand.Text(), Since: w.startedAt(), Edited: now, Shown: w.messageText(now)}
	if err := w.save(); err != nil {
		w.svc.Log.Error("could not store that a message tells of a turn", "ref", w.ref, "err", err)
		w.b.TurnMessage = TurnMessage{}
		return now.Add(statusRetry)
	}
	_ = w.svc.outbox.Put(&outbox.Message{Post: w.messagePost(w.b.TurnMessage.Shown), Since: w.svc.slackTime(), LowPriority: true}) // it was logged, and nothing depends on it
	return now.Add(turnMessageEditEvery)
}

func (w *turnStatus) messagePost(text string) chat.Post {
	return w.newPost(text, w.b.TurnMessage.Nonce)
}

// messageText is what the message says of the turn that runs.
func (w *turnStatus) messageText(now time.Time) string {
	if w.dialogOpen {
		return "_Waiting for an answer._"
	}
	return fmt.Sprintf("_Working, for %s so far._", durationText(now.Sub(w.startedAt())))
}

// finalMessageText is what the message says of a turn that has ended.
func (w *turnStatus) finalMessageText() string {
	same := w.startedAt().Equal(w.b.TurnMessage.Since)
	switch {
	case w.svc.answerMode() == AnswersOff:
		return "_What the agent does is no longer shown here._"
	case same && w.ending == turnEndedExited:
		return "_The agent ended while it worked._"
	case same && !w.recorded.Working && !w.recorded.Until.IsZero():
		return fmt.Sprintf("_Worked %s._", durationText(w.recorded.Until.Sub(w.recorded.Since)))
	}
	return "_This turn is over._"
}

// durationText is a time in words.
func durationText(d time.Duration) string {
	d = max(d, time.Second).Round(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds)
	}
	return fmt.Sprintf("%d s", seconds)
}

// messageStep is the step that makes the message true, if there is one.
func (w *turnStatus) messageStep(now time.Time) step {
	m := &w.b.TurnMessage
	if m.Nonce == "" || !w.known {
		return step{}
	}
	over := !w.isRunning() || !w.startedAt().Equal(m.Since)
	if m.TS == "" {
		return w.unconfirmedStep(over)
	}
	text := w.messageText(now)
	if over {
		text = w.finalMessageText()
	}
	next := m.Edited.Add(max(turnMessageEditEvery, now.Sub(m.Since)/10))
	switch {
	case over:
	case now.Before(next):
		return step{next: next}
	case text == m.Shown:
		return step{next: now.Add(turnMessageEditEvery)}
	}
	return step{kind: stepEditMessage, ts: m.TS, post: w.messagePost(text), final: over}
}

// unconfirmedStep is for a message of which it is not known that it was posted.
func (w *turnStatus) unconfirmedStep(over bool) step {
	switch waiting := w.svc.outbox.IsPending(w.b.TurnMessage.Nonce); {
	case waiting && over && w.svc.outbox.Withdraw(w.b.TurnMessage.Nonce):
		w.forgetMessage()
		return step{}
	case waiting:
		return step{} // onPosted hears of it
	}
	return step{kind: stepFindMessage, post: w.messagePost(""), since: w.svc.Clock.FromLocal(w.b.TurnMessage.Since)}
}

// forgetMessage forgets the message: it is not edited any more.
func (w *turnStatus) forgetMessage() {
	w.b.TurnMessage = TurnMessage{}
	w.saveBestEffort()
}

// onMessageFound handles what became of looking for the message.
func (w *turnStatus) onMessageFound(nonce, ts string, err error) {
	switch {
	case nonce != w.b.TurnMessage.Nonce:
	case errors.Is(err, chat.ErrThreadGone), err == nil && ts == "":
		w.forgetMessage()
	case err == nil:
		w.b.TurnMessage.TS = ts
		w.saveBestEffort()
	}
}

// onMessageEdited handles what became of an edit of the message. If somebody deleted it, it is not posted again.
func (w *turnStatus) onMessageEdited(s step, now time.Time, err error) {
	switch gone := errors.Is(err, chat.ErrReplyGone) || errors.Is(err, chat.ErrThreadGone); {
	case s.post.Nonce != w.b.TurnMessage.Nonce || err != nil && !gone:
	case s.final:
		w.forgetMessage()
	default:
		w.b.TurnMessage.Shown, w.b.TurnMessage.Edited = s.post.Text, now
		w.saveBestEffort()
	}
}

// onPosted handles that we posted in the thread, perhaps the message that tells of the turn.
func (w *turnStatus) onPosted(nonce, ts string) {
	w.onStatusCleared()
	if nonce == w.b.TurnMessage.Nonce && nonce != "" {
		w.b.TurnMessage.TS, w.b.TurnMessage.Edited = ts, w.svc.Now()
		w.saveBestEffort()
		w.signals.statusDue()
	}
}

// closeMessage leaves the message of a thread that ends as that of a turn that is over.
func (w *turnStatus) closeMessage() {
	if m := w.b.TurnMessage; m.Nonce != "" && !w.svc.outbox.Withdraw(m.Nonce) {
		post := w.messagePost("_This turn is over._")
		_ = w.svc.outbox.Put(&outbox.Message{Post: post, Edit: true, TS: m.TS, Final: true}) // it was logged
	}
}

// nextStatusStep implements [statusThread].
func (t *thread) nextStatusStep(ctx context.Context, now time.Time, noStatuses bool) (step, bool) {
	return call(ctx, t.actor, func(context.Context) step { return t.turn.nextStep(now, noStatuses) })
}

// beginStatusStep implements [statusThread].
func (t *thread) beginStatusStep(ctx context.Context, s step) {
	if s.kind == stepSetStatus {
		t.call(ctx, func(context.Context) { t.turn.statusCallPending, t.turn.statusUncertain = true, false })
	}
}

// finishStatusStep implements [statusThread].
func (t *thread) finishStatusStep(ctx context.Context, s step, r stepResult) {
	t.call(ctx, func(context.Context) {
		switch s.kind {
		case stepReadScreen:
			t.turn.onScreen(r.view.State, r.at, r.err)
		case stepSetStatus:
			t.turn.onStatusSet(s.text, r.at, r.err)
		case stepFindMessage:
			t.turn.onMessageFound(s.post.Nonce, r.ts, r.err)
		case stepEditMessage:
			t.turn.onMessageEdited(s, r.at, r.err)
		}
	})
}

// retryStatus ends the pause of a thread in which we were not let write.
func (t *thread) retryStatus(context.Context) {
	t.turn.refusedAt = time.Time{}
	t.signals.statusDue()
}

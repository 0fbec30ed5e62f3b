package status

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

const (
	turnMessageAfter     = 15 * time.Second // how long a turn lasts before a message tells of it
	turnMessageEditEvery = 30 * time.Second // how often that message is edited, at most
	screenCheckEvery     = 8 * time.Second  // how often the screen of an agent that claims to work is read
	idleScreensNeeded    = 2                // so many screens in a row have to show an idle agent
)

// turn is what is known of an agent's turn, and what the thread shows of it.
type turn struct {
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
func (w *turn) isRunning() bool { return w.recorded.Working && w.ending == "" }

// startedAt is when the turn began, as far as that is known.
func (w *turn) startedAt() time.Time {
	if w.recorded.Since.IsZero() {
		return w.changedAt
	}
	return w.recorded.Since
}

// Turn shows in one thread whether its agent works: by a status, or where the workspace has none by one message that is
// edited.
type Turn struct {
	*binding.Thread
	turn
	o   Options
	due func() // has the loop check the thread
}

// OnTurn handles what the agent's record says of its turn; news says that something was added to the record.
func (w *Turn) OnTurn(turn sessions.Turn, news bool) {
	now := w.o.Now()
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
		w.known, w.statusUncertain = true, w.B.TurnRunning // an earlier run of the bot may have had it shown
	}
	w.B.TurnRunning = turn.Working
	w.due()
}

// endIfAgentEnded ends a turn of an agent that has ended: its record goes on saying that it works, and may still grow by what it had
// written before.
func (w *turn) endIfAgentEnded() {
	if w.recorded.Working && !w.startedAt().After(w.agentEndedAt) {
		w.ending = turnEndedExited
	}
}

func (w *Turn) AgentEnded(at time.Time) {
	if at.After(w.agentEndedAt) {
		w.agentEndedAt = at
		w.endIfAgentEnded()
		w.due()
	}
}

// SetDialogOpen says whether a dialog of the agent waits for an answer.
func (w *Turn) SetDialogOpen(open bool) {
	w.dialogOpen = open
	w.due()
}

// onScreen handles what the agent's screen shows.
func (w *Turn) onScreen(state sessions.ViewState, now time.Time, err error) {
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

// next decides what is to be done next. none: the workspace has no statuses.
func (w *Turn) next(now time.Time, none bool) Step {
	if w.Unbound || w.B.Root == "" {
		return Step{}
	}
	s := w.messageStep(now)
	if s.kind != stepNone {
		return s
	}
	if w.isRunning() && w.o.ScreenReader != nil {
		if next := w.screenReadAt.Add(screenCheckEvery); now.Before(next) {
			s.next = earliestNonZero(s.next, next)
		} else {
			return Step{kind: stepReadScreen}
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

// statusStep is the Step that makes the status true.
func (w *Turn) statusStep(now time.Time) Step {
	want := ""
	switch {
	case w.isRunning() && w.dialogOpen:
		want = statusWaiting
	case w.isRunning():
		want = statusWorking
	}
	switch fresh := w.changedAt.Add(statusDelay); {
	case want == w.shownStatus && !w.statusUncertain && want == "":
		return Step{}
	case want == w.shownStatus && !w.statusUncertain && now.Sub(w.statusSetAt) < statusRefreshEvery:
		return Step{next: w.statusSetAt.Add(statusRefreshEvery)}
	case now.Before(fresh): // a short turn is not shown, and an answer takes the status away by itself
		return Step{next: fresh}
	case now.Before(w.refusedAt.Add(statusRefusedPause)) && !w.refusedAt.IsZero():
		return Step{next: w.refusedAt.Add(statusRefusedPause)}
	}
	return Step{kind: stepSetStatus, text: want, post: w.NewPost("", "")}
}

// onStatusSet handles what became of setting the status.
func (w *Turn) onStatusSet(text string, now time.Time, err error) {
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
func (w *Turn) onStatusCleared() {
	if w.shownStatus, w.statusUncertain = "", w.statusCallPending; w.isRunning() || w.statusCallPending {
		w.due()
	}
}

// startMessage queues the message that tells of a long turn, and returns when that is due.
func (w *Turn) startMessage(now time.Time) time.Time {
	due := w.startedAt().Add(turnMessageAfter)
	switch {
	case !w.isRunning() || w.B.TurnMessage.Nonce != "":
		return time.Time{}
	case now.Before(due):
		return due
	}
	w.B.TurnMessage = binding.TurnMessage{Nonce: w.SessionID + "." + rand.Text(), Since: w.startedAt(), Edited: now, Shown: w.messageText(now)}
	if err := w.Save(); err != nil {
		w.o.Log.Error("could not store that a message tells of a turn", "ref", w.Ref, "err", err)
		w.B.TurnMessage = binding.TurnMessage{}
		return now.Add(statusRetry)
	}
	_ = w.o.Outbox.Put(&outbox.Message{Post: w.messagePost(w.B.TurnMessage.Shown), Since: w.slackTime(), LowPriority: true}) // it was logged, and nothing depends on it
	return now.Add(turnMessageEditEvery)
}

func (w *Turn) messagePost(text string) chat.Post {
	return w.NewPost(text, w.B.TurnMessage.Nonce)
}

// messageText is what the message says of the turn that runs.
func (w *Turn) messageText(now time.Time) string {
	if w.dialogOpen {
		return "_Waiting for an answer._"
	}
	return fmt.Sprintf("_Working, for %s so far._", durationText(now.Sub(w.startedAt())))
}

// finalMessageText is what the message says of a turn that has ended.
func (w *Turn) finalMessageText() string {
	same := w.startedAt().Equal(w.B.TurnMessage.Since)
	switch {
	case w.o.AnswersOff():
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

// messageStep is the Step that makes the message true, if there is one.
func (w *Turn) messageStep(now time.Time) Step {
	m := &w.B.TurnMessage
	if m.Nonce == "" || !w.known {
		return Step{}
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
		return Step{next: next}
	case text == m.Shown:
		return Step{next: now.Add(turnMessageEditEvery)}
	}
	return Step{kind: stepEditMessage, ts: m.TS, post: w.messagePost(text), final: over}
}

// unconfirmedStep is for a message of which it is not known that it was posted.
func (w *Turn) unconfirmedStep(over bool) Step {
	switch waiting := w.o.Outbox.IsPending(w.B.TurnMessage.Nonce); {
	case waiting && over && w.o.Outbox.Withdraw(w.B.TurnMessage.Nonce):
		w.forgetMessage()
		return Step{}
	case waiting:
		return Step{} // onPosted hears of it
	}
	return Step{kind: stepFindMessage, post: w.messagePost(""), since: w.o.Clock.FromLocal(w.B.TurnMessage.Since)}
}

// forgetMessage forgets the message: it is not edited any more.
func (w *Turn) forgetMessage() {
	w.B.TurnMessage = binding.TurnMessage{}
	w.SaveBestEffort()
}

// onMessageFound handles what became of looking for the message.
func (w *Turn) onMessageFound(nonce, ts string, err error) {
	switch {
	case nonce != w.B.TurnMessage.Nonce:
	case errors.Is(err, chat.ErrThreadGone), err == nil && ts == "":
		w.forgetMessage()
	case err == nil:
		w.B.TurnMessage.TS = ts
		w.SaveBestEffort()
	}
}

// onMessageEdited handles what became of an edit of the message. If somebody deleted it, it is not posted again.
func (w *Turn) onMessageEdited(s Step, now time.Time, err error) {
	switch gone := errors.Is(err, chat.ErrReplyGone) || errors.Is(err, chat.ErrThreadGone); {
	case s.post.Nonce != w.B.TurnMessage.Nonce || err != nil && !gone:
	case s.final:
		w.forgetMessage()
	default:
		w.B.TurnMessage.Shown, w.B.TurnMessage.Edited = s.post.Text, now
		w.SaveBestEffort()
	}
}

// OnPosted handles that we posted in the thread, perhaps the message that tells of the turn.
func (w *Turn) OnPosted(nonce, ts string) {
	w.onStatusCleared()
	if nonce == w.B.TurnMessage.Nonce && nonce != "" {
		w.B.TurnMessage.TS, w.B.TurnMessage.Edited = ts, w.o.Now()
		w.SaveBestEffort()
		w.due()
	}
}

// CloseMessage leaves the message of a thread that ends as that of a turn that is over.
func (w *Turn) CloseMessage() {
	if m := w.B.TurnMessage; m.Nonce != "" && !w.o.Outbox.Withdraw(m.Nonce) {
		post := w.messagePost("_This turn is over._")
		_ = w.o.Outbox.Put(&outbox.Message{Post: post, Edit: true, TS: m.TS, Final: true}) // it was logged
	}
}

// NewTurn is the status of a thread, which the loop keeps true.
func (k *Loop) NewTurn(t *binding.Thread) *Turn {
	w := &Turn{Thread: t, o: k.o}
	w.due = func() { k.RequestCheck(w) }
	return w
}

// slackTime is the time by the chat service's clock; zero: not known.
func (w *Turn) slackTime() time.Time {
	now, _ := w.o.Clock.Now()
	return now
}

// NextStep implements [Thread].
func (w *Turn) NextStep(ctx context.Context, now time.Time, noStatuses bool) (Step, bool) {
	return actor.Call(ctx, w.Actor, func(context.Context) Step { return w.next(now, noStatuses) })
}

// BeginStep implements [Thread].
func (w *Turn) BeginStep(ctx context.Context, s Step) {
	if s.kind == stepSetStatus {
		w.Call(ctx, func(context.Context) { w.statusCallPending, w.statusUncertain = true, false })
	}
}

// FinishStep implements [Thread].
func (w *Turn) FinishStep(ctx context.Context, s Step, r Result) {
	w.Call(ctx, func(context.Context) {
		switch s.kind {
		case stepReadScreen:
			w.onScreen(r.view.State, r.at, r.err)
		case stepSetStatus:
			w.onStatusSet(s.text, r.at, r.err)
		case stepFindMessage:
			w.onMessageFound(s.post.Nonce, r.ts, r.err)
		case stepEditMessage:
			w.onMessageEdited(s, r.at, r.err)
		}
	})
}

// Identity implements [Thread].
func (w *Turn) Identity() (id string, ref sessions.Ref) { return w.SessionID, w.Ref }

// Retry ends the pause of a thread in which we were not let write.
func (w *Turn) Retry(context.Context) {
	w.refusedAt = time.Time{}
	w.due()
}

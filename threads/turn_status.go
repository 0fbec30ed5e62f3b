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
	turnMessageEditEvery = 30 * time.Second // how often that message is changed, at most
	screenCheckEvery     = 8 * time.Second  // how often the screen of an agent is looked at that claims to work
	idleScreensNeeded    = 2                // so many looks in a row have to show an agent at rest
)

// TurnMessage is the one message that tells of a turn where the workspace has no statuses. It is stored before it is posted.
type TurnMessage struct {
	Nonce  string    `json:"nonce,omitempty"` // empty: there is none
	TS     string    `json:"ts,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the turn began
	Shown  string    `json:"shown,omitempty"`
	Edited time.Time `json:"edited,omitzero"`
}

// work is what is known of an agent's turn, and what the thread shows of it. It belongs to the thread's goroutine.
type turnState struct {
	known        bool          // the agent's record was read since the start
	recorded     sessions.Turn // by that record
	changedAt    time.Time     // when it was first heard that this turn runs, or rests
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

// busy reports whether a turn runs.
func (w *turnState) isRunning() bool { return w.recorded.Working && w.ending == "" }

// since is when the turn began, as far as that is known.
func (w *turnState) startedAt() time.Time {
	if w.recorded.Since.IsZero() {
		return w.changedAt
	}
	return w.recorded.Since
}

// turned takes what the agent's record says of its turn; news says that something was added to the record.
func (t *thread) onTurn(turn sessions.Turn, news bool) {
	w, now := &t.turn, t.m.o.Now()
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
		w.known, w.statusUncertain = true, t.b.TurnRunning // an earlier run of the bot may have had it shown
	}
	t.b.TurnRunning = turn.Working
	t.m.statusLoop.requestCheck(t)
}

// endIfAgentEnded ends a turn of an agent that has ended: its record goes on saying that it works, and may still grow by what it had
// written before.
func (w *turnState) endIfAgentEnded() {
	if w.recorded.Working && !w.startedAt().After(w.agentEndedAt) {
		w.ending = turnEndedExited
	}
}

// AgentEnded takes that a session's agent had ended by then, so that its thread does not show that it works: neither before
// nor after it is told.
func (m *Manager) AgentEnded(ctx context.Context, id string, at time.Time) {
	t := m.threadOf(id)
	if t == nil {
		return
	}
	t.call(ctx, func(context.Context) {
		if w := &t.turn; at.After(w.agentEndedAt) {
			w.agentEndedAt = at
			w.endIfAgentEnded()
			t.m.statusLoop.requestCheck(t)
		}
	})
}

// onScreen takes what the agent's screen shows.
func (t *thread) onScreen(state sessions.ViewState, now time.Time, err error) {
	w := &t.turn
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

// nextStep decides what is to be done next.
func (t *thread) nextStep(now time.Time, none bool) step {
	w := &t.turn
	if t.unbound || t.b.Root == "" {
		return step{}
	}
	s := t.turnMessageStep(now)
	if s.kind != stepNone {
		return s
	}
	if w.isRunning() && t.m.o.ScreenReader != nil {
		if next := w.screenReadAt.Add(screenCheckEvery); now.Before(next) {
			s.next = earliestNonZero(s.next, next)
		} else {
			return step{kind: stepReadScreen}
		}
	}
	if none {
		s.next = earliestNonZero(s.next, t.startTurnMessage(now))
		return s
	}
	status := t.statusStep(now)
	status.next = earliestNonZero(s.next, status.next)
	return status
}

func earliestNonZero(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// statusStep has the status say what is true.
func (t *thread) statusStep(now time.Time) step {
	w := &t.turn
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
	return step{kind: stepSetStatus, text: want, post: t.newPost("", "")}
}

// onStatusSet takes what became of a change of the status.
func (t *thread) onStatusSet(text string, now time.Time, err error) {
	w := &t.turn
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

// onStatusCleared takes that we posted in the thread: Slack takes the status away then.
func (t *thread) onStatusCleared() {
	w := &t.turn
	if w.shownStatus, w.statusUncertain = "", w.statusCallPending; w.isRunning() || w.statusCallPending {
		t.m.statusLoop.requestCheck(t)
	}
}

// startTurnMessage puts the message that tells of a long turn into the outbox, and returns when that is due.
func (t *thread) startTurnMessage(now time.Time) time.Time {
	w := &t.turn
	due := w.startedAt().Add(turnMessageAfter)
	switch {
	case !w.isRunning() || t.b.TurnMessage.Nonce != "":
		return time.Time{}
	case now.Before(due):
		return due
	}
	t.b.TurnMessage = TurnMessage{Nonce: t.sessionID + "." + rand.Text(), Since: w.startedAt(), Edited: now, Shown: t.turnMessageText(now)}
	if err := t.save(); err != nil {
		t.m.o.Log.Error("could not store that a message tells of a turn", "ref", t.ref, "err", err)
		t.b.TurnMessage = TurnMessage{}
		return now.Add(statusRetry)
	}
	_ = t.m.outbox.Put(&outbox.Message{Post: t.turnMessagePost(t.b.TurnMessage.Shown), Since: t.m.slackTime(), LowPriority: true}) // it was logged, and nothing depends on it
	return now.Add(turnMessageEditEvery)
}

func (t *thread) turnMessagePost(text string) chat.Post {
	return t.newPost(text, t.b.TurnMessage.Nonce)
}

// turnMessageText is what the message says of the turn that runs.
func (t *thread) turnMessageText(now time.Time) string {
	if t.turn.dialogOpen {
		return "_Waiting for an answer._"
	}
	return fmt.Sprintf("_Working, for %s so far._", durationText(now.Sub(t.turn.startedAt())))
}

// finalTurnMessageText is what the message says of a turn that has ended.
func (t *thread) finalTurnMessageText() string {
	w := &t.turn
	same := w.startedAt().Equal(t.b.TurnMessage.Since)
	switch {
	case t.m.answerMode() == AnswersOff:
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

// turnMessageStep keeps the message true that tells of a turn, if there is one.
func (t *thread) turnMessageStep(now time.Time) step {
	m := &t.b.TurnMessage
	if m.Nonce == "" || !t.turn.known {
		return step{}
	}
	over := !t.turn.isRunning() || !t.turn.startedAt().Equal(m.Since)
	if m.TS == "" {
		return t.unconfirmedMessageStep(over)
	}
	text := t.turnMessageText(now)
	if over {
		text = t.finalTurnMessageText()
	}
	next := m.Edited.Add(max(turnMessageEditEvery, now.Sub(m.Since)/10))
	switch {
	case over:
	case now.Before(next):
		return step{next: next}
	case text == m.Shown:
		return step{next: now.Add(turnMessageEditEvery)}
	}
	return step{kind: stepEditMessage, ts: m.TS, post: t.turnMessagePost(text), final: over}
}

// unconfirmedMessageStep is for a message of which it is not known that it was posted.
func (t *thread) unconfirmedMessageStep(over bool) step {
	switch waiting := t.m.outbox.IsPending(t.b.TurnMessage.Nonce); {
	case waiting && over && t.m.outbox.Withdraw(t.b.TurnMessage.Nonce):
		t.forgetTurnMessage()
		return step{}
	case waiting:
		return step{} // its posting is heard of
	}
	return step{kind: stepFindMessage, post: t.turnMessagePost(""), since: t.m.o.Clock.FromLocal(t.b.TurnMessage.Since)}
}

// forgetTurnMessage ends the keeping of a message.
func (t *thread) forgetTurnMessage() {
	t.b.TurnMessage = TurnMessage{}
	t.saveBestEffort()
}

// onTurnMessageFound takes what became of looking for the message.
func (t *thread) onTurnMessageFound(nonce, ts string, err error) {
	switch {
	case nonce != t.b.TurnMessage.Nonce:
	case errors.Is(err, chat.ErrThreadGone), err == nil && ts == "":
		t.forgetTurnMessage()
	case err == nil:
		t.b.TurnMessage.TS = ts
		t.saveBestEffort()
	}
}

// onTurnMessageEdited takes what became of a change of the message. Somebody may have deleted it: it is not posted again.
func (t *thread) onTurnMessageEdited(s step, now time.Time, err error) {
	switch gone := errors.Is(err, chat.ErrReplyGone) || errors.Is(err, chat.ErrThreadGone); {
	case s.post.Nonce != t.b.TurnMessage.Nonce || err != nil && !gone:
	case s.final:
		t.forgetTurnMessage()
	default:
		t.b.TurnMessage.Shown, t.b.TurnMessage.Edited = s.post.Text, now
		t.saveBestEffort()
	}
}

// onTurnMessagePosted handles that we posted in the thread, perhaps the message that tells of the turn.
func (t *thread) onTurnMessagePosted(nonce, ts string) {
	t.onStatusCleared()
	if nonce == t.b.TurnMessage.Nonce && nonce != "" {
		t.b.TurnMessage.TS, t.b.TurnMessage.Edited = ts, t.m.o.Now()
		t.saveBestEffort()
		t.m.statusLoop.requestCheck(t)
	}
}

// closeTurnMessage leaves the message of a thread that ends as one of a turn that is over.
func (t *thread) closeTurnMessage() {
	if w := t.b.TurnMessage; w.Nonce != "" && !t.m.outbox.Withdraw(w.Nonce) {
		_ = t.m.outbox.Put(&outbox.Message{Post: t.turnMessagePost("_This turn is over._"), Edit: true, TS: w.TS, Final: true}) // it was logged
	}
}

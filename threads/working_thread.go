package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"the-loop/sessions"
)

const (
	tellAfter = 15 * time.Second // how long a turn lasts before a message tells of it
	editAfter = 30 * time.Second // how often that message is changed, at most
	lookAgain = 8 * time.Second  // how often the screen of an agent is looked at that claims to work
	idleLooks = 2                // so many looks in a row have to show an agent at rest
)

// WorkMessage is the one message that tells of a turn where the workspace has no statuses. It is stored before it is posted.
type WorkMessage struct {
	Nonce  string    `json:"nonce,omitempty"` // empty: there is none
	TS     string    `json:"ts,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the turn began
	Shown  string    `json:"shown,omitempty"`
	Edited time.Time `json:"edited,omitzero"`
}

// work is what is known of an agent's turn, and what the thread shows of it. It belongs to the thread's goroutine.
type work struct {
	known  bool          // the agent's record was read since the start
	turn   sessions.Turn // by that record
	heard  time.Time     // when it was first heard that this turn runs, or rests
	over   ending        // what the pane says against the record
	waits  bool          // a dialog is open
	looked time.Time
	idle   int
	ended  time.Time // when the last agent was found to have ended; zero: not since the bot began

	status  string // what the status says; empty: nothing
	unsure  bool   // or something else
	set     time.Time
	setting bool      // a call is under way
	refused time.Time // when we were not let write there
}

// ending is how a turn ended of which the record says that it runs.
type ending string

const (
	overIdle ending = "idle" // the agent waits for text
	overGone ending = "gone" // the agent has ended
)

// busy reports whether a turn runs.
func (w *work) busy() bool { return w.turn.Working && w.over == "" }

// since is when the turn began, as far as that is known.
func (w *work) since() time.Time {
	if w.turn.Since.IsZero() {
		return w.heard
	}
	return w.turn.Since
}

// turned takes what the agent's record says of its turn; news says that something was added to the record.
func (t *thread) turned(turn sessions.Turn, news bool) {
	w, now := &t.work, t.m.o.Now()
	if turn.Working != w.turn.Working || !turn.Since.Equal(w.turn.Since) {
		w.heard, w.looked, w.waits, w.idle, w.over = now, now, false, 0, ""
		if now.Sub(turn.Since) > lookAgain {
			w.looked = time.Time{} // the agent may have been killed since
		}
	}
	if w.turn = turn; news {
		w.idle, w.over = 0, ""
	}
	w.buried()
	if !w.known {
		w.known, w.unsure = true, t.b.Busy // an earlier run of the bot may have had it shown
	}
	t.b.Busy = turn.Working
	t.m.working.want(t)
}

// buried ends a turn of an agent that has ended: its record goes on saying that it works, and may still grow by what it had
// written before.
func (w *work) buried() {
	if w.turn.Working && !w.since().After(w.ended) {
		w.over = overGone
	}
}

// AgentEnded takes that a session's agent had ended by then, so that its thread does not show that it works: neither before
// nor after it is told.
func (m *Manager) AgentEnded(ctx context.Context, id string, at time.Time) {
	t := m.of(id)
	if t == nil {
		return
	}
	t.call(ctx, func(context.Context) {
		if w := &t.work; at.After(w.ended) {
			w.ended = at
			w.buried()
			t.m.working.want(t)
		}
	})
}

// saw takes what the agent's screen shows.
func (t *thread) saw(state sessions.ViewState, now time.Time, err error) {
	w := &t.work
	w.looked = now
	switch {
	case errors.Is(err, sessions.ErrNotRunning), errors.Is(err, sessions.ErrNotRecorded), errors.Is(err, sessions.ErrReplaced):
		w.over = overGone
	case err != nil: // nothing is known
	case state == sessions.ViewReady:
		w.waits = false
		if w.idle++; w.idle >= idleLooks {
			w.over = overIdle
		}
	default:
		w.waits, w.idle = state == sessions.ViewDialog || state == sessions.ViewMenu, 0
	}
}

// step decides what is to be done next.
func (t *thread) step(now time.Time, none bool) step {
	w := &t.work
	if t.gone || t.b.Root == "" {
		return step{}
	}
	s := t.messageStep(now)
	if s.kind != stepNone {
		return s
	}
	if w.busy() && t.m.o.Viewer != nil {
		if next := w.looked.Add(lookAgain); now.Before(next) {
			s.next = sooner(s.next, next)
		} else {
			return step{kind: stepLook}
		}
	}
	if none {
		s.next = sooner(s.next, t.tellStep(now))
		return s
	}
	status := t.statusStep(now)
	status.next = sooner(s.next, status.next)
	return status
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// statusStep has the status say what is true.
func (t *thread) statusStep(now time.Time) step {
	w := &t.work
	want := ""
	switch {
	case w.busy() && w.waits:
		want = statusWaits
	case w.busy():
		want = statusWorks
	}
	switch fresh := w.heard.Add(workSettles); {
	case want == w.status && !w.unsure && want == "":
		return step{}
	case want == w.status && !w.unsure && now.Sub(w.set) < statusRenew:
		return step{next: w.set.Add(statusRenew)}
	case now.Before(fresh): // a short turn is not shown, and an answer takes the status away by itself
		return step{next: fresh}
	case now.Before(w.refused.Add(workRefused)) && !w.refused.IsZero():
		return step{next: w.refused.Add(workRefused)}
	}
	return step{kind: stepStatus, text: want, post: t.message("", "")}
}

// statusSet takes what became of a change of the status.
func (t *thread) statusSet(text string, now time.Time, err error) {
	w := &t.work
	w.setting = false
	switch {
	case err == nil:
		w.status, w.set = text, now
	case errors.Is(err, ErrNoStatus):
		w.status, w.unsure = "", false
	case FailureOf(err) == FailureMessage, FailureOf(err) == FailureChannel, FailureOf(err) == FailureApp:
		w.refused = now
	default:
		w.unsure = true
	}
}

// statusGone takes that we posted in the thread: Slack takes the status away then.
func (t *thread) statusGone() {
	w := &t.work
	if w.status, w.unsure = "", w.setting; w.busy() || w.setting {
		t.m.working.want(t)
	}
}

// tellStep puts the message that tells of a long turn into the outbox, and returns when that is due.
func (t *thread) tellStep(now time.Time) time.Time {
	w := &t.work
	due := w.since().Add(tellAfter)
	switch {
	case !w.busy() || t.b.Working.Nonce != "":
		return time.Time{}
	case now.Before(due):
		return due
	}
	t.b.Working = WorkMessage{Nonce: t.id + "." + rand.Text(), Since: w.since(), Edited: now, Shown: t.workText(now)}
	if err := t.save(); err != nil {
		t.m.o.Log.Error("could not store that a message tells of a turn", "ref", t.ref, "err", err)
		t.b.Working = WorkMessage{}
		return now.Add(workRetry)
	}
	_ = t.m.outbox.put(&letter{Post: t.workPost(t.b.Working.Shown), Since: t.m.slackTime(), Quiet: true}) // it was logged, and nothing depends on it
	return now.Add(editAfter)
}

func (t *thread) workPost(text string) Post { return t.message(text, t.b.Working.Nonce) }

// workText is what the message says of the turn that runs.
func (t *thread) workText(now time.Time) string {
	if t.work.waits {
		return "_Waiting for an answer._"
	}
	return fmt.Sprintf("_Working, for %s so far._", lasting(now.Sub(t.work.since())))
}

// workOver is what the message says of a turn that has ended.
func (t *thread) workOver() string {
	w := &t.work
	same := w.since().Equal(t.b.Working.Since)
	switch {
	case t.m.answers() == AnswersOff:
		return "_What the agent does is no longer shown here._"
	case same && w.over == overGone:
		return "_The agent ended while it worked._"
	case same && !w.turn.Working && !w.turn.Until.IsZero():
		return fmt.Sprintf("_Worked %s._", lasting(w.turn.Until.Sub(w.turn.Since)))
	}
	return "_This turn is over._"
}

// lasting is a time in words.
func lasting(d time.Duration) string {
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

// messageStep keeps the message true that tells of a turn, if there is one.
func (t *thread) messageStep(now time.Time) step {
	m := &t.b.Working
	if m.Nonce == "" || !t.work.known {
		return step{}
	}
	over := !t.work.busy() || !t.work.since().Equal(m.Since)
	if m.TS == "" {
		return t.unseenStep(over)
	}
	text := t.workText(now)
	if over {
		text = t.workOver()
	}
	next := m.Edited.Add(max(editAfter, now.Sub(m.Since)/10))
	switch {
	case over:
	case now.Before(next):
		return step{next: next}
	case text == m.Shown:
		return step{next: now.Add(editAfter)}
	}
	return step{kind: stepEdit, ts: m.TS, post: t.workPost(text), final: over}
}

// unseenStep is for a message of which it is not known that it was posted.
func (t *thread) unseenStep(over bool) step {
	switch waiting := t.m.outbox.holds(t.b.Working.Nonce); {
	case waiting && over && t.m.outbox.withdraw(t.b.Working.Nonce):
		t.workForgotten()
		return step{}
	case waiting:
		return step{} // its posting is heard of
	}
	return step{kind: stepFind, post: t.workPost(""), since: t.m.o.Clock.Of(t.b.Working.Since)}
}

// workForgotten ends the keeping of a message.
func (t *thread) workForgotten() {
	t.b.Working = WorkMessage{}
	t.keep()
}

// workFound takes what became of looking for the message.
func (t *thread) workFound(nonce, ts string, err error) {
	switch {
	case nonce != t.b.Working.Nonce:
	case errors.Is(err, ErrThreadGone), err == nil && ts == "":
		t.workForgotten()
	case err == nil:
		t.b.Working.TS = ts
		t.keep()
	}
}

// workEdited takes what became of a change of the message. Somebody may have deleted it: it is not posted again.
func (t *thread) workEdited(s step, now time.Time, err error) {
	switch gone := errors.Is(err, ErrReplyGone) || errors.Is(err, ErrThreadGone); {
	case s.post.Nonce != t.b.Working.Nonce || err != nil && !gone:
	case s.final:
		t.workForgotten()
	default:
		t.b.Working.Shown, t.b.Working.Edited = s.post.Text, now
		t.keep()
	}
}

// spoke takes that a message of ours was posted in a session's thread.
func (m *Manager) spoke(p Post, ts string) {
	t := m.of(p.Session)
	if t == nil {
		return
	}
	t.do(func(context.Context) {
		t.statusGone()
		if p.Nonce == t.b.Working.Nonce && p.Nonce != "" {
			t.b.Working.TS, t.b.Working.Edited = ts, t.m.o.Now()
			t.keep()
			t.m.working.want(t)
		}
	})
}

// workAbandoned leaves the message of a thread that ends as one of a turn that is over.
func (t *thread) workAbandoned() {
	if w := t.b.Working; w.Nonce != "" && !t.m.outbox.withdraw(w.Nonce) {
		_ = t.m.outbox.put(&letter{Post: t.workPost("_This turn is over._"), Change: true, TS: w.TS, Last: true}) // it was logged
	}
}

package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"the-loop/sessions"
	"the-loop/threads"
)

// How often agents' records are looked at of which the system does not tell that they change: those in which something
// happened lately, and the others. Where it tells, looks only make sure. Without a change they are read all the same from
// time to time. A look is two calls of stat.
const (
	listenEvery  = 25 * time.Millisecond
	listenRoll   = 250 * time.Millisecond // which sessions there are
	listenIdle   = 250 * time.Millisecond
	listenSure   = 2 * time.Second  // where the system tells
	listenRarely = 10 * time.Second // and nothing happened lately
	listenActive = 5 * time.Minute
	listenAgain  = 2 * time.Second // after a change: an agent may open its next record a moment later
	listenAnyway = 30 * time.Second
	listenRetry  = 5 * time.Second
)

// A record is read beside the others, so that a slow disk holds up one session, but not of all at once.
const (
	listenAtOnce  = 32
	listenTimeout = 20 * time.Second
)

// listener has what agents say posted in their threads. One goroutine owns it; reading goes on beside it.
type listener struct {
	b     *Bot
	watch *recordWatch
	all   map[string]*listened // by session id
	roll  time.Time            // when it is asked which sessions there are
	mode  threads.Answers
	gate  chan struct{}
	done  chan heard

	mu   sync.Mutex // guards the fields that follow
	runs map[string]runMark
	deaf bool // of some record the system does not tell that it changes
}

// listened is what is known of the record of one session.
type listened struct {
	watch  []string
	told   bool       // the system tells when one of them changes
	read   time.Time  // when a reading began last
	marks  []fileMark // of the files in watch, from before they were read
	seen   []fileMark // what marks becomes when the reading that is under way is done
	run    runMark
	active time.Time // when something was new
	next   time.Time // when it is looked at again
	anyway time.Time // when it is read again without a change
	busy   bool
	failed bool
}

// runMark tells one run of a session, in one conversation, from another.
type runMark struct {
	conversation string
	changed      time.Time
}

// heard is what became of one reading.
type heard struct {
	id    string
	watch []string
	marks []fileMark
	err   error
}

func newListener(b *Bot) *listener {
	return &listener{b: b, watch: &recordWatch{}, all: map[string]*listened{}, gate: make(chan struct{}, listenAtOnce), done: make(chan heard),
		runs: map[string]runMark{}}
}

// listed takes how the sessions are: one that was started again may write elsewhere.
func (l *listener) listed(rows []sessions.Row) {
	runs := make(map[string]runMark, len(rows))
	for _, r := range rows {
		runs[r.ID] = runMark{conversation: r.Conversation, changed: r.Changed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = runs
}

func (l *listener) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	watch, err := newRecordWatch()
	if err != nil {
		l.b.o.Log.Warn("this system does not tell when agents' records change; they are looked at often", "err", err)
	}
	defer watch.close()
	l.watch = watch
	events, failures := watch.events()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-l.done:
			l.took(h)
		case e := <-events:
			if !l.happened(e, time.Now()) {
				continue
			}
		case err := <-failures:
			l.b.o.Log.Warn("changes of agents' records may have been missed; all are looked at", "err", err)
			l.allStirred(time.Now())
		case <-timer.C:
		}
		timer.Reset(l.look(ctx, &wg, time.Now()))
	}
}

// happened takes what the system tells, and reports whether it is about a record. Folders may hold much else.
func (l *listener) happened(e fsnotify.Event, now time.Time) bool {
	ids, anew := l.watch.concerned(e)
	for id := range ids {
		l.stirred(id, now)
		if e := l.all[id]; anew && e != nil {
			e.anyway = now
		}
	}
	if len(ids) > 0 {
		l.b.announcer.stirred()
	}
	return len(ids) > 0
}

// told reports whether every change of a record will be told.
func (l *listener) told() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.deaf
}

// stirred has the record of a session looked at, and not more often than the others are.
func (l *listener) stirred(id string, now time.Time) {
	if e := l.all[id]; e != nil {
		if e.next = e.read.Add(listenEvery); e.next.Before(now) {
			e.next = now
		}
	}
}

func (l *listener) allStirred(now time.Time) {
	for id := range l.all {
		l.stirred(id, now)
	}
}

// look has the records read in which there may be something new, and returns when to look again.
func (l *listener) look(ctx context.Context, wg *sync.WaitGroup, now time.Time) time.Duration {
	if !now.Before(l.roll) {
		l.roll = onBeat(now).Add(listenRoll)
		l.call(now)
	}
	again, deaf := l.roll, false
	for id, e := range l.all {
		deaf = deaf || !e.told
		if l.due(id, e, now) {
			l.read(ctx, wg, id, e)
		}
		if !e.busy && e.next.Before(again) {
			again = e.next
		}
	}
	l.mu.Lock()
	l.deaf = deaf
	l.mu.Unlock()
	return max(time.Millisecond, again.Sub(now))
}

// onBeat is the beat before that time. What may wait is looked at on it, so that a thousand sessions wake us as often as one does.
func onBeat(t time.Time) time.Time { return t.Add(-time.Duration(t.UnixNano() % int64(listenRoll))) }

// call brings the sessions in line with those that have a thread, and reads all again when what is posted changes.
func (l *listener) call(now time.Time) {
	if mode := l.b.o.Config().Settings.Answers; mode != l.mode {
		l.mode = mode
		for _, e := range l.all {
			e.next, e.anyway = now, now
		}
	}
	there := l.b.threads.Sessions()
	for id, e := range l.all {
		if _, ok := there[id]; !ok && !e.busy {
			l.watch.watch(id, e.watch, nil)
			delete(l.all, id)
		}
	}
	for id := range there {
		if l.all[id] == nil && l.b.threads.IsBound(id) {
			l.all[id] = &listened{}
		}
	}
}

// due reports whether a session's record is to be read now.
func (l *listener) due(id string, e *listened, now time.Time) (due bool) {
	run := l.runOf(id)
	if e.busy || now.Before(e.next) && run == e.run {
		return false
	}
	marks := marksOf(e.watch)
	changed := run != e.run || !slices.Equal(marks, e.marks)
	if due = changed || !now.Before(e.anyway); due {
		if changed && len(e.watch) > 0 && run == e.run {
			e.active = now
		}
		e.anyway = onBeat(now.Add(listenAnyway))
		if changed {
			e.anyway = now.Add(listenAgain)
		}
		e.seen, e.run, e.busy, e.read = marks, run, true, now
	}
	if e.next = now.Add(e.pace(now)); e.told {
		e.next = onBeat(e.next)
	}
	if e.anyway.Before(e.next) {
		e.next = e.anyway
	}
	return due
}

// pace is how long to wait before a record is looked at again.
func (e *listened) pace(now time.Time) time.Duration {
	active := now.Sub(e.active) < listenActive
	switch {
	case e.told && active:
		return listenSure
	case e.told:
		return listenRarely
	case active:
		return listenEvery
	}
	return listenIdle
}

func (l *listener) runOf(id string) runMark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

// read reads one record. A file that changes meanwhile is read again: its mark is from before.
func (l *listener) read(ctx context.Context, wg *sync.WaitGroup, id string, e *listened) {
	before, known := e.seen, e.watch
	wg.Go(func() {
		h := heard{id: id}
		select {
		case l.gate <- struct{}{}:
			defer func() { <-l.gate }()
		case <-ctx.Done():
			return
		}
		reading, cancel := context.WithTimeout(ctx, listenTimeout)
		defer cancel()
		h.watch, h.err = l.b.threads.Relay(reading, id)
		if h.marks = before; !slices.Equal(h.watch, known) {
			h.marks = nil // another file: it is read once more
		}
		select {
		case l.done <- h:
		case <-ctx.Done():
		}
	})
}

// took keeps what a reading found out.
func (l *listener) took(h heard) {
	e := l.all[h.id]
	e.busy = false
	now := time.Now()
	if h.err == nil || errors.Is(h.err, errors.ErrUnsupported) || errors.Is(h.err, sessions.ErrNotRecorded) {
		before := e.told
		if e.told = l.watch.watch(h.id, e.watch, h.watch); e.told && !before {
			e.next = now // nothing was told of what came before
		}
		e.watch, e.marks, e.failed = h.watch, h.marks, false
		if h.marks == nil && len(h.watch) > 0 {
			e.next = now
		}
		return
	}
	if !e.failed {
		l.b.o.Log.Warn("could not read what an agent said; it is tried again", "session", h.id, "err", h.err)
	}
	e.failed, e.next, e.anyway = true, now.Add(listenRetry), now
}

package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"the-loop/sessions"
	"the-loop/threads/relay"
)

// How often agents' records are looked at of which the system does not tell that they change: those in which something
// happened lately, and the others. Where it tells, looks only make sure. Without a change they are read all the same from
// time to time. A look is two calls of stat.
const (
	pollEvery            = 25 * time.Millisecond
	sessionListEvery     = 250 * time.Millisecond // which sessions there are
	pollIdleEvery        = 250 * time.Millisecond
	pollWatchedEvery     = 2 * time.Second  // where the system tells
	pollWatchedIdleEvery = 10 * time.Second // and nothing happened lately
	activeFor            = 5 * time.Minute
	rereadAfterChange    = 2 * time.Second // after a change: an agent may open its next record a moment later
	rereadEvery          = 30 * time.Second
	readRetry            = 5 * time.Second
)

// A record is read beside the others, so that a slow disk holds up one session, but not of all at once.
const (
	maxConcurrentReads = 32
	readTimeout        = 20 * time.Second
)

// listener has what agents say posted in their threads. One goroutine owns it; reading goes on beside it.
type transcriptWatcher struct {
	b           *Bot
	files       *fileWatcher
	transcripts map[string]*watchedTranscript // by session id
	nextListing time.Time                     // when it is asked which sessions there are
	mode        relay.Answers
	slots       chan struct{}
	results     chan readResult

	mu        sync.Mutex // guards the fields that follow
	runs      map[string]runKey
	unwatched bool // of some record the system does not tell that it changes
}

// watchedTranscript is what is known of the record of one session.
type watchedTranscript struct {
	files         []string
	isWatched     bool        // the system tells when one of them changes
	lastRead      time.Time   // when a reading began last
	stamps        []fileStamp // of the files in watch, from before they were read
	pendingStamps []fileStamp // what marks becomes when the reading that is under way is done
	run           runKey
	lastActive    time.Time // when something was new
	nextCheck     time.Time // when it is looked at again
	rereadAt      time.Time // when it is read again without a change
	isReading     bool
	failed        bool
}

// runKey tells one run of a session, in one conversation, from another.
type runKey struct {
	conversation string
	changed      time.Time
}

// heard is what became of one reading.
type readResult struct {
	id     string
	files  []string
	stamps []fileStamp
	err    error
}

func newTranscriptWatcher(b *Bot) *transcriptWatcher {
	return &transcriptWatcher{b: b, files: &fileWatcher{}, transcripts: map[string]*watchedTranscript{}, slots: make(chan struct{}, maxConcurrentReads), results: make(chan readResult),
		runs: map[string]runKey{}}
}

// listed takes how the sessions are: one that was started again may write elsewhere.
func (l *transcriptWatcher) setRuns(rows []sessions.Row) {
	runs := make(map[string]runKey, len(rows))
	for _, r := range rows {
		runs[r.ID] = runKey{conversation: r.Conversation, changed: r.Changed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = runs
}

func (l *transcriptWatcher) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	watch, err := newFileWatcher()
	if err != nil {
		l.b.o.Log.Warn("this system does not tell when agents' records change; they are looked at often", "err", err)
	}
	defer watch.close()
	l.files = watch
	events, failures := watch.events()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-l.results:
			l.applyResult(h)
		case e := <-events:
			if !l.handleEvent(e, time.Now()) {
				continue
			}
		case err := <-failures:
			l.b.o.Log.Warn("changes of agents' records may have been missed; all are looked at", "err", err)
			l.scheduleAll(time.Now())
		case <-timer.C:
		}
		timer.Reset(l.checkAll(ctx, &wg, time.Now()))
	}
}

// handleEvent takes what the system tells, and reports whether it is about a record. Folders may hold much else.
func (l *transcriptWatcher) handleEvent(e fsnotify.Event, now time.Time) bool {
	ids, anew := l.files.affectedSessions(e)
	for id := range ids {
		l.scheduleCheck(id, now)
		if e := l.transcripts[id]; anew && e != nil {
			e.rereadAt = now
		}
	}
	if len(ids) > 0 {
		l.b.announcer.noteActivity()
	}
	return len(ids) > 0
}

// told reports whether every change of a record will be told.
func (l *transcriptWatcher) allWatched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.unwatched
}

// stirred has the record of a session looked at, and not more often than the others are.
func (l *transcriptWatcher) scheduleCheck(id string, now time.Time) {
	if e := l.transcripts[id]; e != nil {
		if e.nextCheck = e.lastRead.Add(pollEvery); e.nextCheck.Before(now) {
			e.nextCheck = now
		}
	}
}

func (l *transcriptWatcher) scheduleAll(now time.Time) {
	for id := range l.transcripts {
		l.scheduleCheck(id, now)
	}
}

// look has the records read in which there may be something new, and returns when to look again.
func (l *transcriptWatcher) checkAll(ctx context.Context, wg *sync.WaitGroup, now time.Time) time.Duration {
	if !now.Before(l.nextListing) {
		l.nextListing = alignToTick(now).Add(sessionListEvery)
		l.syncSessions(now)
	}
	again, deaf := l.nextListing, false
	for id, e := range l.transcripts {
		deaf = deaf || !e.isWatched
		if l.beginReadIfDue(id, e, now) {
			l.startRead(ctx, wg, id, e)
		}
		if !e.isReading && e.nextCheck.Before(again) {
			again = e.nextCheck
		}
	}
	l.mu.Lock()
	l.unwatched = deaf
	l.mu.Unlock()
	return max(time.Millisecond, again.Sub(now))
}

// alignToTick is the beat before that time. What may wait is looked at on it, so that a thousand sessions wake us as often as one does.
func alignToTick(t time.Time) time.Time {
	return t.Add(-time.Duration(t.UnixNano() % int64(sessionListEvery)))
}

// syncSessions brings the sessions in line with those that have a thread, and reads all again when what is posted changes.
func (l *transcriptWatcher) syncSessions(now time.Time) {
	if mode := l.b.o.Config().Settings.Answers; mode != l.mode {
		l.mode = mode
		for _, e := range l.transcripts {
			e.nextCheck, e.rereadAt = now, now
		}
	}
	there := l.b.threads.Sessions()
	for id, e := range l.transcripts {
		if _, ok := there[id]; !ok && !e.isReading {
			l.files.watch(id, e.files, nil)
			delete(l.transcripts, id)
		}
	}
	for id := range there {
		if l.transcripts[id] == nil && l.b.threads.IsBound(id) {
			l.transcripts[id] = &watchedTranscript{}
		}
	}
}

// beginReadIfDue reports whether a session's record is to be read now.
func (l *transcriptWatcher) beginReadIfDue(id string, e *watchedTranscript, now time.Time) (due bool) {
	run := l.currentRun(id)
	if e.isReading || now.Before(e.nextCheck) && run == e.run {
		return false
	}
	marks := stampsOf(e.files)
	changed := run != e.run || !slices.Equal(marks, e.stamps)
	if due = changed || !now.Before(e.rereadAt); due {
		if changed && len(e.files) > 0 && run == e.run {
			e.lastActive = now
		}
		e.rereadAt = alignToTick(now.Add(rereadEvery))
		if changed {
			e.rereadAt = now.Add(rereadAfterChange)
		}
		e.pendingStamps, e.run, e.isReading, e.lastRead = marks, run, true, now
	}
	if e.nextCheck = now.Add(e.pollInterval(now)); e.isWatched {
		e.nextCheck = alignToTick(e.nextCheck)
	}
	if e.rereadAt.Before(e.nextCheck) {
		e.nextCheck = e.rereadAt
	}
	return due
}

// pollInterval is how long to wait before a record is looked at again.
func (e *watchedTranscript) pollInterval(now time.Time) time.Duration {
	active := now.Sub(e.lastActive) < activeFor
	switch {
	case e.isWatched && active:
		return pollWatchedEvery
	case e.isWatched:
		return pollWatchedIdleEvery
	case active:
		return pollEvery
	}
	return pollIdleEvery
}

func (l *transcriptWatcher) currentRun(id string) runKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

// read reads one record. A file that changes meanwhile is read again: its mark is from before.
func (l *transcriptWatcher) startRead(ctx context.Context, wg *sync.WaitGroup, id string, e *watchedTranscript) {
	before, known := e.pendingStamps, e.files
	wg.Go(func() {
		h := readResult{id: id}
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-ctx.Done():
			return
		}
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		h.files, h.err = l.b.threads.Relay(reading, id)
		if h.stamps = before; !slices.Equal(h.files, known) {
			h.stamps = nil // another file: it is read once more
		}
		select {
		case l.results <- h:
		case <-ctx.Done():
		}
	})
}

// applyResult keeps what a reading found out.
func (l *transcriptWatcher) applyResult(h readResult) {
	e := l.transcripts[h.id]
	e.isReading = false
	now := time.Now()
	if h.err == nil || errors.Is(h.err, errors.ErrUnsupported) || errors.Is(h.err, sessions.ErrNotRecorded) {
		before := e.isWatched
		if e.isWatched = l.files.watch(h.id, e.files, h.files); e.isWatched && !before {
			e.nextCheck = now // nothing was told of what came before
		}
		e.files, e.stamps, e.failed = h.files, h.stamps, false
		if h.stamps == nil && len(h.files) > 0 {
			e.nextCheck = now
		}
		return
	}
	if !e.failed {
		l.b.o.Log.Warn("could not read what an agent said; it is tried again", "session", h.id, "err", h.err)
	}
	e.failed, e.nextCheck, e.rereadAt = true, now.Add(readRetry), now
}

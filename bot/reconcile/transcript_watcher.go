package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"the-loop/sessions"
	"the-loop/threads/relay"
)

// How often transcripts are checked for changes, with two calls of stat: those that changed lately, and the others. Where the system
// signals changes, checks are only a safeguard. Now and then a transcript is read even without a change.
const (
	pollEvery            = 25 * time.Millisecond
	sessionListEvery     = 250 * time.Millisecond // of the sessions that have a thread
	pollIdleEvery        = 250 * time.Millisecond
	pollWatchedEvery     = 2 * time.Second  // where changes are signalled
	pollWatchedIdleEvery = 10 * time.Second // and nothing changed lately
	activeFor            = 5 * time.Minute
	rereadAfterChange    = 2 * time.Second // an agent may open its next transcript a moment after a change
	rereadEvery          = 30 * time.Second
	readRetry            = 5 * time.Second
)

// Transcripts are read concurrently, so that a slow disk delays one session only, but not all at once.
const (
	maxConcurrentReads = 32
	readTimeout        = 20 * time.Second
)

// Relay posts what agents say.
type Relay interface {
	// Relay posts what the agent of a session said since the last call, and returns the files that change when it says more.
	Relay(ctx context.Context, id string) (files []string, err error)
	Sessions() map[string]sessions.Ref
	IsBound(id string) bool
}

// TranscriptWatcherOptions are what a [TranscriptWatcher] is made of. All fields are required.
type TranscriptWatcherOptions struct {
	Relay      Relay
	Answers    func() relay.Answers // which texts are posted now
	OnActivity func()               // called when an agent's transcript changed; must not block
	Log        *slog.Logger
}

// TranscriptWatcher relays what agents say to their threads, when their transcripts change. One goroutine owns it; others read.
type TranscriptWatcher struct {
	o           TranscriptWatcherOptions
	files       *fileWatcher
	transcripts map[string]*watchedTranscript // by session id
	nextListing time.Time                     // when the sessions are listed next
	mode        relay.Answers
	slots       chan struct{}
	results     chan readResult

	mu        sync.Mutex // guards the fields that follow
	runs      map[string]runKey
	unwatched bool // changes of some transcript are not signalled
}

// watchedTranscript is what is known of the transcript of one session.
type watchedTranscript struct {
	files         []string
	isWatched     bool        // their changes are signalled
	lastRead      time.Time   // when the last read began
	stamps        []fileStamp // of files, from before they were read
	pendingStamps []fileStamp // becomes stamps when the present read is done
	run           runKey
	lastActive    time.Time // when something changed last
	nextCheck     time.Time // when its files are checked next
	rereadAt      time.Time // when it is read even without a change
	isReading     bool
	failed        bool
}

// runKey tells one run of a session, in one conversation, from another.
type runKey struct {
	conversation string
	changed      time.Time
}

// readResult is the result of one read.
type readResult struct {
	id     string
	files  []string
	stamps []fileStamp
	err    error
}

// NewTranscriptWatcher returns a watcher that [TranscriptWatcher.Run] starts.
func NewTranscriptWatcher(o TranscriptWatcherOptions) *TranscriptWatcher {
	return &TranscriptWatcher{o: o, files: &fileWatcher{}, transcripts: map[string]*watchedTranscript{}, slots: make(chan struct{}, maxConcurrentReads), results: make(chan readResult),
		runs: map[string]runKey{}}
}

// SetRuns updates the runs of the sessions: one that was restarted may write another transcript.
func (l *TranscriptWatcher) SetRuns(rows []sessions.Row) {
	runs := make(map[string]runKey, len(rows))
	for _, r := range rows {
		runs[r.ID] = runKey{conversation: r.Conversation, changed: r.Changed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = runs
}

// Run watches until ctx ends, and returns when every read has.
func (l *TranscriptWatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	watch, err := newFileWatcher()
	if err != nil {
		l.o.Log.Warn("cannot watch agents' transcripts for changes; polling them", "err", err)
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
			l.o.Log.Warn("may have missed changes of agents' transcripts; checking all", "err", err)
			l.scheduleAll(time.Now())
		case <-timer.C:
		}
		timer.Reset(l.checkAll(ctx, &wg, time.Now()))
	}
}

// handleEvent handles a change of a file, and reports whether the file is a transcript: its folder may hold much else.
func (l *TranscriptWatcher) handleEvent(e fsnotify.Event, now time.Time) bool {
	ids, remade := l.files.affectedSessions(e)
	for id := range ids {
		l.scheduleCheck(id, now)
		if e := l.transcripts[id]; remade && e != nil {
			e.rereadAt = now
		}
	}
	if len(ids) > 0 {
		l.o.OnActivity()
	}
	return len(ids) > 0
}

// AllWatched reports whether every change of a transcript is signalled.
func (l *TranscriptWatcher) AllWatched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.unwatched
}

// scheduleCheck makes the next check of a transcript due, but not more often than every pollEvery.
func (l *TranscriptWatcher) scheduleCheck(id string, now time.Time) {
	if e := l.transcripts[id]; e != nil {
		if e.nextCheck = e.lastRead.Add(pollEvery); e.nextCheck.Before(now) {
			e.nextCheck = now
		}
	}
}

func (l *TranscriptWatcher) scheduleAll(now time.Time) {
	for id := range l.transcripts {
		l.scheduleCheck(id, now)
	}
}

// checkAll starts reading the transcripts that may have changed, and returns when to check again.
func (l *TranscriptWatcher) checkAll(ctx context.Context, wg *sync.WaitGroup, now time.Time) time.Duration {
	if !now.Before(l.nextListing) {
		l.nextListing = alignToTick(now).Add(sessionListEvery)
		l.syncSessions(now)
	}
	again, unwatched := l.nextListing, false
	for id, e := range l.transcripts {
		unwatched = unwatched || !e.isWatched
		if l.beginReadIfDue(id, e, now) {
			l.startRead(ctx, wg, id, e)
		}
		if !e.isReading && e.nextCheck.Before(again) {
			again = e.nextCheck
		}
	}
	l.mu.Lock()
	l.unwatched = unwatched
	l.mu.Unlock()
	return max(time.Millisecond, again.Sub(now))
}

// alignToTick rounds a time down to a common tick, so that a thousand sessions wake the process as often as one.
func alignToTick(t time.Time) time.Time {
	return t.Add(-time.Duration(t.UnixNano() % int64(sessionListEvery)))
}

// syncSessions watches the sessions that have a thread, and rereads all when the kind of texts that are posted changes.
func (l *TranscriptWatcher) syncSessions(now time.Time) {
	if mode := l.o.Answers(); mode != l.mode {
		l.mode = mode
		for _, e := range l.transcripts {
			e.nextCheck, e.rereadAt = now, now
		}
	}
	there := l.o.Relay.Sessions()
	for id, e := range l.transcripts {
		if _, ok := there[id]; !ok && !e.isReading {
			l.files.watch(id, e.files, nil)
			delete(l.transcripts, id)
		}
	}
	for id := range there {
		if l.transcripts[id] == nil && l.o.Relay.IsBound(id) {
			l.transcripts[id] = &watchedTranscript{}
		}
	}
}

// beginReadIfDue reports whether a transcript is to be read now, and stamps it as being read.
func (l *TranscriptWatcher) beginReadIfDue(id string, e *watchedTranscript, now time.Time) (due bool) {
	run := l.currentRun(id)
	if e.isReading || now.Before(e.nextCheck) && run == e.run {
		return false
	}
	stamps := stampsOf(e.files)
	changed := run != e.run || !slices.Equal(stamps, e.stamps)
	if due = changed || !now.Before(e.rereadAt); due {
		if changed && len(e.files) > 0 && run == e.run {
			e.lastActive = now
		}
		e.rereadAt = alignToTick(now.Add(rereadEvery))
		if changed {
			e.rereadAt = now.Add(rereadAfterChange)
		}
		e.pendingStamps, e.run, e.isReading, e.lastRead = stamps, run, true, now
	}
	if e.nextCheck = now.Add(e.pollInterval(now)); e.isWatched {
		e.nextCheck = alignToTick(e.nextCheck)
	}
	if e.rereadAt.Before(e.nextCheck) {
		e.nextCheck = e.rereadAt
	}
	return due
}

// pollInterval is how long to wait before the next check.
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

func (l *TranscriptWatcher) currentRun(id string) runKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

// startRead reads one transcript. A file that changes meanwhile is read again: its stamp is from before.
func (l *TranscriptWatcher) startRead(ctx context.Context, wg *sync.WaitGroup, id string, e *watchedTranscript) {
	before, known := e.pendingStamps, e.files
	wg.Go(func() {
		h := readResult{id: id}
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-ctx.Done():
			return
		}
		readCtx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		h.files, h.err = l.o.Relay.Relay(readCtx, id)
		if h.stamps = before; !slices.Equal(h.files, known) {
			h.stamps = nil // other files: read once more
		}
		select {
		case l.results <- h:
		case <-ctx.Done():
		}
	})
}

// applyResult keeps the result of a read.
func (l *TranscriptWatcher) applyResult(h readResult) {
	e := l.transcripts[h.id]
	e.isReading = false
	now := time.Now()
	if h.err == nil || errors.Is(h.err, errors.ErrUnsupported) || errors.Is(h.err, sessions.ErrNotRecorded) {
		before := e.isWatched
		if e.isWatched = l.files.watch(h.id, e.files, h.files); e.isWatched && !before {
			e.nextCheck = now // earlier changes were not signalled
		}
		e.files, e.stamps, e.failed = h.files, h.stamps, false
		if h.stamps == nil && len(h.files) > 0 {
			e.nextCheck = now
		}
		return
	}
	if !e.failed {
		l.o.Log.Warn("could not read an agent's transcript; retrying", "session", h.id, "err", h.err)
	}
	e.failed, e.nextCheck, e.rereadAt = true, now.Add(readRetry), now
}

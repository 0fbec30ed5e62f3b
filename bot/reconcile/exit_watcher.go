package reconcile

import (
	"os"
	"sync"
	"time"
)

// exitLag is how long after a process's end tmux may still show it as running.
const exitLag = 5 * time.Second

// exitWatcher reports when agents' processes end. Each process has a goroutine that sleeps until then; close ends them.
type exitWatcher struct {
	onExit func() // called when one has ended
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the field that follows
	watched map[int]*watchedProcess
}

type watchedProcess struct {
	process     *os.File
	exitedAt    time.Time // zero: it runs, or that is not known
	unwatchable bool      // its end will not be reported
}

func newExitWatcher(onExit func()) *exitWatcher {
	return &exitWatcher{onExit: onExit, watched: map[int]*watchedProcess{}}
}

// watch watches these processes instead of the earlier ones. It reports whether the end of each will be reported.
func (e *exitWatcher) watch(pids map[int]bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for pid, p := range e.watched {
		if !pids[pid] {
			_ = p.process.Close() // it holds nothing that could be lost
			delete(e.watched, pid)
		}
	}
	all := true
	for pid := range pids {
		if e.watched[pid] == nil {
			process, err := openProcess(pid)
			if err != nil {
				all = false
				continue
			}
			p := &watchedProcess{process: process}
			e.watched[pid] = p
			e.wg.Go(func() { e.await(p) })
		}
		all = all && !e.watched[pid].unwatchable
	}
	return all
}

func (e *exitWatcher) await(p *watchedProcess) {
	err := awaitExit(p.process)
	e.mu.Lock()
	if err != nil {
		p.unwatchable = true
	} else {
		p.exitedAt = time.Now()
	}
	e.mu.Unlock()
	if err == nil {
		e.onExit()
	}
}

// exitedRecently reports whether one of those that are watched ended a moment ago.
func (e *exitWatcher) exitedRecently() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.watched {
		if !p.exitedAt.IsZero() && time.Since(p.exitedAt) < exitLag {
			return true
		}
	}
	return false
}

func (e *exitWatcher) close() {
	e.watch(nil)
	e.wg.Wait()
}

package bot

import (
	"os"
	"sync"
	"time"
)

// endLag is how long after a process's end tmux may still show it as running.
const endLag = 5 * time.Second

// ends hears when the agents' processes end, so that nobody has to ask. Each process has a goroutine that sleeps until then; close
// ends them.
type ends struct {
	heard func() // called when one has ended
	wg    sync.WaitGroup

	mu      sync.Mutex // guards the field that follows
	watched map[int]*processEnd
}

type processEnd struct {
	process *os.File
	at      time.Time // when it ended; zero: it lives, or it cannot be known
	unheard bool      // the end will not be heard
}

func newEnds(heard func()) *ends { return &ends{heard: heard, watched: map[int]*processEnd{}} }

// watch has these processes watched instead of those before. It reports whether the end of each will be heard.
func (e *ends) watch(pids map[int]bool) bool {
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
			p := &processEnd{process: process}
			e.watched[pid] = p
			e.wg.Go(func() { e.await(p) })
		}
		all = all && !e.watched[pid].unheard
	}
	return all
}

func (e *ends) await(p *processEnd) {
	err := awaitEnd(p.process)
	e.mu.Lock()
	if err != nil {
		p.unheard = true
	} else {
		p.at = time.Now()
	}
	e.mu.Unlock()
	if err == nil {
		e.heard()
	}
}

// justEnded reports whether one of those that are watched ended a moment ago.
func (e *ends) justEnded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.watched {
		if !p.at.IsZero() && time.Since(p.at) < endLag {
			return true
		}
	}
	return false
}

func (e *ends) close() {
	e.watch(nil)
	e.wg.Wait()
}

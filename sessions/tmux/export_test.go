package tmux

import "the-loop/sessions/process"

// UsePS makes t ask ps for processes, as it does where there is no /proc.
func (t *Tmux) UsePS() { t.processes = process.WithoutProc() }

// HoldClients keeps lines that can share a client waiting until release is called; waiting counts them.
func (t *Tmux) HoldClients() (waiting func() int, release func()) {
	all := []*clientBatch{&t.spawnBatch, &t.endBatch}
	for _, b := range all {
		b.prepare()
		b.running <- struct{}{}
	}
	waiting = func() (n int) {
		for _, b := range all {
			b.mu.Lock()
			n += len(b.waiting)
			b.mu.Unlock()
		}
		return n
	}
	return waiting, func() {
		for _, b := range all {
			<-b.running
		}
	}
}

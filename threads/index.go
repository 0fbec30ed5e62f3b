package threads

import (
	"sync"

	"the-loop/threads/chat"
)

// threadIndex finds threads by their session and by where they are. Its lock is taken after a thread's, never before.
type threadIndex struct {
	moves *channelMoves

	mu       sync.Mutex // guards the fields that follow
	byID     map[string]*thread
	byThread map[chat.ThreadID]*thread
}

func newThreadIndex(moves *channelMoves) *threadIndex {
	return &threadIndex{moves: moves, byID: map[string]*thread{}, byThread: map[chat.ThreadID]*thread{}}
}

// put adds a thread, or says that it is bound now.
func (x *threadIndex) put(t *thread) {
	at := t.ThreadID() // takes the thread's lock
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byID[t.SessionID] = t
	if at.Root != "" {
		x.byThread[at] = t
	}
}

func (x *threadIndex) remove(t *thread) {
	at := t.ThreadID()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, t.SessionID)
	delete(x.byThread, at)
}

// removeRoot forgets where a thread was, and keeps the session.
func (x *threadIndex) removeRoot(t *thread, channel string) {
	at := t.SetThreadID(chat.ThreadID{Channel: channel})
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byThread, at)
}

// move changes the channel under which a thread is found.
func (x *threadIndex) move(t *thread, channel string) {
	from := t.ThreadID()
	to := chat.ThreadID{Channel: channel, Root: from.Root}
	t.SetThreadID(to)
	x.mu.Lock()
	defer x.mu.Unlock()
	if from.Root != "" && x.byID[t.SessionID] == t {
		delete(x.byThread, from)
		x.byThread[to] = t
	}
}

func (x *threadIndex) all() []*thread {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*thread, 0, len(x.byID))
	for _, t := range x.byID {
		all = append(all, t)
	}
	return all
}

// at is the thread with that root, in a channel by its id of now or by an older one; nil: there is none.
func (x *threadIndex) at(channel, root string) *thread {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byThread[chat.ThreadID{Channel: x.moves.current(channel), Root: root}]
}

// of is the thread of a session; nil: there is none.
func (x *threadIndex) of(id string) *thread {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byID[id]
}

// boundCount is how many threads are bound.
func (x *threadIndex) boundCount() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byThread)
}

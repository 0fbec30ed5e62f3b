package binding

import (
	"context"
	"sync"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/chat"
	"the-loop/threads/permission"
)

// Thread is one thread: its binding, and the actor that uses it. Everything but what mu guards is used by the actor only.
type Thread struct {
	*actor.Actor
	Store     Store
	SessionID string
	Ref       sessions.Ref
	B         Binding
	Unbound   bool // the session was deleted: nothing is stored any more

	mu        sync.Mutex    // guards the field that follows
	currentID chat.ThreadID // B.Channel and B.Root, for readers outside
}

// NewThread is the thread of a binding. start runs a function in a goroutine; false: too late.
func NewThread(b Binding, store Store, start func(func(context.Context)) bool) *Thread {
	t := &Thread{Actor: actor.New(start), Store: store, SessionID: b.ID, Ref: b.Ref, currentID: chat.ThreadID{Channel: b.Channel, Root: b.Root}}
	t.SetBinding(b)
	return t
}

// ThreadID is where the thread is. It may be called from anywhere.
func (t *Thread) ThreadID() chat.ThreadID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.currentID
}

// SetThreadID changes where the thread is for [Thread.ThreadID], and returns where it was.
func (t *Thread) SetThreadID(to chat.ThreadID) (from chat.ThreadID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, t.currentID = t.currentID, to
	return from
}

// SetBinding replaces the binding.
func (t *Thread) SetBinding(b Binding) {
	if b.Replies == nil {
		b.Replies = map[string]Entry{}
	}
	if b.Traces == nil {
		b.Traces = map[string]Trace{}
	}
	if b.ResendPrompts == nil {
		b.ResendPrompts = map[string]ResendPrompt{}
	}
	if b.PermissionRequests == nil {
		b.PermissionRequests = permission.Requests{}
	}
	t.B = b
}

// Snapshot is the binding as it is now. It may be called from anywhere; false: ctx ended.
func (t *Thread) Snapshot(ctx context.Context) (Binding, bool) {
	return actor.Call(ctx, t.Actor, func(context.Context) Binding { return t.B.Clone() })
}

// IsBound reports whether the thread is there.
func (t *Thread) IsBound() bool { return !t.Unbound && t.B.Root != "" }

// Save stores the binding. A failure is logged, and storing is tried again; what is in memory stays true.
func (t *Thread) Save() error {
	if t.Unbound {
		return nil
	}
	return t.Store.Save(t.B)
}

// SaveBestEffort is Save where nothing depends on it at once.
func (t *Thread) SaveBestEffort() { _ = t.Save() }

// NewPost is a message for this thread.
func (t *Thread) NewPost(text, nonce string) chat.Post {
	return chat.Post{Channel: t.B.Channel, Root: t.B.Root, Text: text, Nonce: nonce, Session: t.SessionID}
}

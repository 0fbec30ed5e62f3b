package threads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Channels lists channels. Slack gives one another id when it is shared, and from then on does not know the old one.
type Channels interface {
	// Joined are the ids of the channels that the bot is in.
	Joined(ctx context.Context) ([]string, error)
}

// moves are the channels that have another id now, by the old one, in a file. It is stored before any binding is changed, so
// that a crash in between leaves nothing half moved: whatever still has the old id is read as if it had the new one.
type moves struct {
	path string

	mu     sync.Mutex // guards the fields that follow
	to     map[string]move
	broken error // the file cannot be read, and is left alone
}

// move is where a channel went.
type move struct {
	To string `json:"to"`
	TS string `json:"ts,omitempty"` // of Slack's event: an older one never undoes a later one
}

// maxMoves bounds the file; the oldest are forgotten.
const maxMoves = 200

func loadMoves(path string) *moves {
	m := &moves{path: path, to: map[string]move{}}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m.to)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.broken = fmt.Errorf("read which channels have another id: %w", err)
	}
	return m
}

// now is the id that a channel has now.
func (m *moves) now(channel string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, moved := m.to[channel]; moved {
		return to.To
	}
	return channel
}

// record stores that a channel has another id. False: it is known, or an event of long ago that comes again.
func (m *moves) record(from, to, ts string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	back, returns := m.to[to]
	if from == "" || to == "" || from == to || m.to[from].To == to || returns && CompareTS(ts, back.TS) <= 0 {
		return false, nil
	}
	delete(m.to, to)
	for old, next := range m.to {
		if next.To == from {
			m.to[old] = move{To: to, TS: next.TS}
		}
	}
	m.to[from] = move{To: to, TS: ts}
	oldest := slices.SortedFunc(maps.Keys(m.to), func(a, b string) int { return CompareTS(m.to[a].TS, m.to[b].TS) })
	for _, old := range oldest[:max(0, len(oldest)-maxMoves)] {
		delete(m.to, old)
	}
	if m.broken != nil {
		return true, m.broken
	}
	return true, writeJSON(m.path, m.to)
}

// Channel is the id that a channel has now.
func (m *Manager) Channel(id string) string { return m.moves.now(id) }

// ChannelMoved says that a channel has another id now: its threads, and what is still to be posted in them, go with it. ts is
// of Slack's event. It may be said again, and also late.
func (m *Manager) ChannelMoved(from, to, ts string) {
	news, err := m.moves.record(from, to, ts)
	if err != nil {
		m.o.Log.Error("could not store that a channel has another id", "from", from, "to", to, "err", err)
	}
	if !news {
		return
	}
	for _, t := range m.threads() {
		if t.place().channel != from {
			continue
		}
		m.relocate(t, to)
		t.do(func(ctx context.Context) {
			t.b.Channel = to
			m.relocate(t, to) // again: it may have been bound meanwhile
			t.keep()
			m.receipts.want(t)
			t.doubtful(ctx)
		})
	}
	poke(m.outbox.wake)
}

// relocate changes under which channel a thread is found.
func (m *Manager) relocate(t *thread, channel string) {
	from := t.place()
	to := place{channel, from.root}
	t.moved(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if from.root != "" && m.byID[t.id] == t {
		delete(m.byThread, from)
		m.byThread[to] = t
	}
}

// follow finds the thread that a reply belongs to whose channel is not known: a channel has another id, and the event that
// says so did not come. The root's ts stays, and it is our announcement.
func (m *Manager) follow(ctx context.Context, r Reply) *thread {
	for _, t := range m.threads() {
		at := t.place()
		if at.root != r.Root || at.channel == r.Channel || at.root == "" {
			continue
		}
		if m.isRoot(ctx, t, r.Channel) {
			m.ChannelMoved(at.channel, r.Channel, r.TS)
			return t
		}
	}
	return nil
}

// isRoot reports whether a channel has the thread's announcement.
func (m *Manager) isRoot(ctx context.Context, t *thread, channel string) bool {
	b, ok := t.snapshot(ctx)
	if !ok || b.Announcement.Nonce == "" {
		return false
	}
	ts, err := m.o.History.FindPost(ctx, channel, b.Root, b.Announcement.Nonce, time.Time{})
	if err != nil && !errors.Is(err, ErrThreadGone) {
		m.o.Log.Warn("could not look whether a thread has moved", "ref", t.ref, "channel", channel, "err", err)
	}
	return err == nil && ts != "" && ts == b.Root
}

// How often, and in how many channels, a thread is looked for whose channel Slack does not know.
const (
	seekEvery = 10 * time.Minute
	seekMost  = 100
)

// seek looks for a thread in the channels that the bot is in, when Slack does not know its channel any more.
func (r *reader) seek(ctx context.Context, t *thread, channel string) {
	if r.m.o.Channels == nil || !r.seekNow(channel) {
		return
	}
	joined, err := r.m.o.Channels.Joined(ctx)
	if err != nil {
		r.m.o.Log.Warn("could not list the channels of the bot", "err", err)
		return
	}
	if slices.Contains(joined, channel) { // it is there, and something else is wrong with it
		return
	}
	for _, c := range joined[:min(len(joined), seekMost)] {
		if r.limit.Wait(ctx) != nil {
			return
		}
		if r.m.isRoot(ctx, t, c) {
			r.m.ChannelMoved(channel, c, TimeTS(r.m.now()))
			return
		}
	}
}

// seekNow reports whether a channel was not looked for just now.
func (r *reader) seekNow(channel string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.sought, func(_ string, at time.Time) bool { return now.Sub(at) >= seekEvery })
	if _, sought := r.sought[channel]; sought {
		return false
	}
	r.sought[channel] = now
	return true
}

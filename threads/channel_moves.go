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

	"the-loop/threads/chat"
)

// channelMoves are the channels that have another id now, by the old one, in a file. It is stored before any binding is changed, so
// that a crash in between leaves nothing half moved: whatever still has the old id is read as if it had the new one.
type channelMoves struct {
	path string

	mu      sync.Mutex // guards the fields that follow
	targets map[string]channelMove
	loadErr error // the file cannot be read, and is left alone
}

// channelMove is where a channel went.
type channelMove struct {
	To string `json:"to"`
	TS string `json:"ts,omitempty"` // of Slack's event: an older one never undoes a later one
}

// maxMoves bounds the file; the oldest are forgotten.
const maxMoves = 200

func loadChannelMoves(path string) *channelMoves {
	m := &channelMoves{path: path, targets: map[string]channelMove{}}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m.targets)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.loadErr = fmt.Errorf("read which channels have another id: %w", err)
	}
	return m
}

// now is the id that a channel has now.
func (m *channelMoves) current(channel string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, moved := m.targets[channel]; moved {
		return to.To
	}
	return channel
}

// add stores that a channel has another id. False: it is known, or an event of long ago that comes again.
func (m *channelMoves) add(from, to, ts string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	back, returns := m.targets[to]
	if from == "" || to == "" || from == to || m.targets[from].To == to || returns && chat.CompareTS(ts, back.TS) <= 0 {
		return false, nil
	}
	delete(m.targets, to)
	for old, next := range m.targets {
		if next.To == from {
			m.targets[old] = channelMove{To: to, TS: next.TS}
		}
	}
	m.targets[from] = channelMove{To: to, TS: ts}
	oldest := slices.SortedFunc(maps.Keys(m.targets), func(a, b string) int { return chat.CompareTS(m.targets[a].TS, m.targets[b].TS) })
	for _, old := range oldest[:max(0, len(oldest)-maxMoves)] {
		delete(m.targets, old)
	}
	if m.loadErr != nil {
		return true, m.loadErr
	}
	return true, writeJSON(m.path, m.targets)
}

// CurrentChannel is the id that a channel has now.
func (m *Manager) CurrentChannel(id string) string { return m.channelMoves.current(id) }

// ChannelMoved says that a channel has another id now: its threads, and what is still to be posted in them, go with it. ts is
// of Slack's event. It may be said again, and also late.
func (m *Manager) ChannelMoved(from, to, ts string) {
	news, err := m.channelMoves.add(from, to, ts)
	if err != nil {
		m.o.Log.Error("could not store that a channel has another id", "from", from, "to", to, "err", err)
	}
	if !news {
		return
	}
	for _, t := range m.threads() {
		if t.threadID().Channel != from {
			continue
		}
		m.relocate(t, to)
		t.do(func(ctx context.Context) {
			t.b.Channel = to
			m.relocate(t, to) // again: it may have been bound meanwhile
			t.saveBestEffort()
			m.receipts.markDirty(t)
			t.requireRead(ctx)
		})
	}
	m.outbox.Wake()
}

// relocate changes under which channel a thread is found.
func (m *Manager) relocate(t *thread, channel string) {
	from := t.threadID()
	to := chat.ThreadID{Channel: channel, Root: from.Root}
	t.setThreadID(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if from.Root != "" && m.byID[t.sessionID] == t {
		delete(m.byThread, from)
		m.byThread[to] = t
	}
}

// findMovedThread finds the thread that a reply belongs to whose channel is not known: a channel has another id, and the event that
// says so did not come. The root's ts stays, and it is our announcement.
func (m *Manager) findMovedThread(ctx context.Context, r chat.Reply) *thread {
	for _, t := range m.threads() {
		at := t.threadID()
		if at.Root != r.Root || at.Channel == r.Channel || at.Root == "" {
			continue
		}
		if m.hasAnnouncement(ctx, t, r.Channel) {
			m.ChannelMoved(at.Channel, r.Channel, r.TS)
			return t
		}
	}
	return nil
}

// hasAnnouncement reports whether a channel has the thread's announcement.
func (m *Manager) hasAnnouncement(ctx context.Context, t *thread, channel string) bool {
	b, ok := t.snapshot(ctx)
	if !ok || b.Announcement.Nonce == "" {
		return false
	}
	ts, err := m.o.History.FindPost(ctx, channel, b.Root, b.Announcement.Nonce, time.Time{})
	if err != nil && !errors.Is(err, chat.ErrThreadGone) {
		m.o.Log.Warn("could not look whether a thread has moved", "ref", t.ref, "channel", channel, "err", err)
	}
	return err == nil && ts != "" && ts == b.Root
}

// How often, and in how many channels, a thread is looked for whose channel Slack does not know.
const (
	searchEvery         = 10 * time.Minute
	maxSearchedChannels = 100
)

// findChannel looks for a thread in the channels that the bot is in, when Slack does not know its channel any more.
func (r *threadReader) findChannel(ctx context.Context, t *thread, channel string) {
	if r.m.o.Channels == nil || !r.shouldSearch(channel) {
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
	for _, c := range joined[:min(len(joined), maxSearchedChannels)] {
		if r.limit.Wait(ctx) != nil {
			return
		}
		if r.m.hasAnnouncement(ctx, t, c) {
			r.m.ChannelMoved(channel, c, chat.TimeTS(r.m.now()))
			return
		}
	}
}

// shouldSearch reports whether a channel was not looked for just now.
func (r *threadReader) shouldSearch(channel string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.searchedAt, func(_ string, at time.Time) bool { return now.Sub(at) >= searchEvery })
	if _, sought := r.searchedAt[channel]; sought {
		return false
	}
	r.searchedAt[channel] = now
	return true
}

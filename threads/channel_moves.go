package threads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"the-loop/threads/binding"
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

// current is the id that a channel has now.
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
func (m *Manager) CurrentChannel(id string) string { return m.index.moves.current(id) }

// ChannelMoved says that a channel has another id now: its threads, and what is still to be posted in them, go with it. ts is
// of Slack's event. It may be said again, and also late.
func (m *Manager) ChannelMoved(from, to, ts string) { m.relocator.move(from, to, ts) }

// relocator keeps threads together with their channels, which Slack may give other ids.
type relocator struct {
	*services
	index *threadIndex

	mu         sync.Mutex           // guards the field that follows
	searchedAt map[string]time.Time // channels that Slack did not know, and when they were looked for
}

func (l *relocator) move(from, to, ts string) {
	news, err := l.index.moves.add(from, to, ts)
	if err != nil {
		l.Log.Error("could not store that a channel has another id", "from", from, "to", to, "err", err)
	}
	if !news {
		return
	}
	for _, t := range l.index.all() {
		if t.ThreadID().Channel != from {
			continue
		}
		l.index.move(t, to)
		t.Do(func(ctx context.Context) {
			t.B.Channel = to
			l.index.move(t, to) // again: it may have been bound meanwhile
			t.SaveBestEffort()
			t.signals.receiptsDue()
			t.requireRead(ctx)
		})
	}
	l.outbox.Wake()
}

// find finds the thread of a reply whose channel is not known: perhaps the channel has another id, and the event that says so did not
// come. The root's ts stays the same, and the root is our announcement.
func (l *relocator) find(ctx context.Context, r chat.Reply) *thread {
	for _, t := range l.index.all() {
		at := t.ThreadID()
		if at.Root != r.Root || at.Channel == r.Channel || at.Root == "" {
			continue
		}
		if b, ok := t.Snapshot(ctx); ok && l.hasAnnouncement(ctx, b, r.Channel) {
			l.move(at.Channel, r.Channel, r.TS)
			return t
		}
	}
	return nil
}

// hasAnnouncement reports whether a channel has the announcement of a binding.
func (l *relocator) hasAnnouncement(ctx context.Context, b binding.Binding, channel string) bool {
	if b.Announcement.Nonce == "" {
		return false
	}
	ts, err := l.History.FindPost(ctx, channel, b.Root, b.Announcement.Nonce, time.Time{})
	if err != nil && !errors.Is(err, chat.ErrThreadGone) {
		l.Log.Warn("could not look whether a thread has moved", "ref", b.Ref, "channel", channel, "err", err)
	}
	return err == nil && ts != "" && ts == b.Root
}

// How often, and in how many channels, a thread is looked for whose channel Slack does not know.
const (
	searchEvery         = 10 * time.Minute
	maxSearchedChannels = 100
)

// FindChannel looks for a thread in the channels that the bot is in, when Slack does not know its channel any more.
func (l *relocator) FindChannel(ctx context.Context, b binding.Binding, pace func(context.Context) error) {
	if l.Channels == nil || !l.shouldSearch(b.Channel) {
		return
	}
	joined, err := l.Channels.Joined(ctx)
	if err != nil {
		l.Log.Warn("could not list the channels of the bot", "err", err)
		return
	}
	if slices.Contains(joined, b.Channel) { // it is there, and something else is wrong with it
		return
	}
	for _, c := range joined[:min(len(joined), maxSearchedChannels)] {
		if pace(ctx) != nil {
			return
		}
		if l.hasAnnouncement(ctx, b, c) {
			l.move(b.Channel, c, chat.TimeTS(l.now()))
			return
		}
	}
}

// shouldSearch reports whether a channel was not looked for just now.
func (l *relocator) shouldSearch(channel string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.searchedAt, func(_ string, at time.Time) bool { return now.Sub(at) >= searchEvery })
	if _, searched := l.searchedAt[channel]; searched {
		return false
	}
	l.searchedAt[channel] = now
	return true
}

// writeJSON writes atomically and durably, 0600 in a folder of 0700.
func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

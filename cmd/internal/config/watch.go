package config

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Snapshot is what a [Watcher] knows at a moment.
type Snapshot struct {
	Config *Config   // the last valid one
	Err    error     // why the file as it is now is refused, naming the key; nil when Config is the file
	Since  time.Time // when this became so
}

// WatchOptions sets a [Watcher]'s pace. The zero value is what a bot wants.
type WatchOptions struct {
	Debounce     time.Duration    // how long a changed file must be left alone before it is read; 500 ms
	PollInterval time.Duration    // how often to look without being told, for file systems and folders that tell nothing; 2 s
	Now          func() time.Time // time.Now
	Log          *slog.Logger     // none
}

func (o WatchOptions) withDefaults() WatchOptions {
	if o.Debounce <= 0 {
		o.Debounce = 500 * time.Millisecond
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Watcher follows a configuration's file. While the file is not valid, the last valid configuration stays and the
// snapshot carries the error. Run owns all that it starts and has ended it when it returns; the other methods may be
// called from anywhere at any time.
type Watcher struct {
	loader         Loader
	path           string
	options        WatchOptions
	current        atomic.Pointer[Snapshot]
	changes        chan struct{}
	reloadRequests chan struct{}
}

// NewWatcher makes a watcher of the file at path, from which first was loaded. The loader should have its Workdir set, so
// that a later change of the current folder changes no path.
func NewWatcher(l Loader, path string, first *Config, o WatchOptions) *Watcher {
	w := &Watcher{loader: l, path: path, options: o.withDefaults(), changes: make(chan struct{}, 1), reloadRequests: make(chan struct{}, 1)}
	w.current.Store(&Snapshot{Config: first, Since: w.options.Now()})
	return w
}

// Current is the newest snapshot.
func (w *Watcher) Current() Snapshot { return *w.current.Load() }

// Changes has a value whenever there is a newer snapshot than the reader has seen. It is for one reader; several changes
// may come as one.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Reload asks for the file to be read again, after the usual quiet, because what [Loader.Check] looks at has changed.
func (w *Watcher) Reload() {
	select {
	case w.reloadRequests <- struct{}{}:
	default: // one is asked for already
	}
}

// Run follows the file until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	n, err := fsnotify.NewWatcher()
	if err != nil { // out of inotify instances: looking now and then is enough
		w.options.Log.Warn("cannot watch the configuration; polling it instead", "every", w.options.PollInterval, "err", err)
		w.loop(ctx, nil, nil, func() {})
		return
	}
	defer n.Close()
	f := &folderWatch{path: filepath.Dir(w.path), notifier: n}
	f.refresh()
	w.loop(ctx, n.Events, n.Errors, f.refresh)
}

// folderWatch keeps the notification on a folder that may go away and come back as another one.
type folderWatch struct {
	path     string
	notifier *fsnotify.Watcher
	watched  fs.FileInfo // nil: none
}

// refresh watches the folder that is there now. Failing is no harm: the next look tries again.
func (f *folderWatch) refresh() {
	now, err := os.Stat(f.path)
	if err != nil {
		f.watched = nil
		return
	}
	if f.watched != nil && os.SameFile(f.watched, now) {
		return
	}
	if f.watched = nil; f.notifier.Add(f.path) == nil {
		f.watched = now
	}
}

// loop waits for signs of a change and reads the file once they have stopped for a while.
func (w *Watcher) loop(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error, follow func()) {
	poll := time.NewTicker(w.options.PollInterval)
	defer poll.Stop()
	quiet := time.NewTimer(w.options.Debounce) // the file may have changed between its first reading and now
	defer quiet.Stop()
	waiting, seen := true, statFile(w.path)
	wait := func() { waiting = true; quiet.Reset(w.options.Debounce) }
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if w.isRelevant(e) {
				wait()
			}
		case err := <-failures: // an overflow, for instance: something was missed
			w.options.Log.Warn("missed changes of files", "err", err)
			wait()
		case <-poll.C:
			follow()
			if now := statFile(w.path); !now.equal(seen) {
				seen = now
				wait()
			}
		case <-w.reloadRequests:
			if !waiting { // asking again and again puts nothing off
				wait()
			}
		case <-quiet.C:
			waiting, seen = false, statFile(w.path)
			if !w.reload(seen) {
				wait()
			}
		}
	}
}

// isRelevant reports whether an event may mean another content at our path: the file's own, and those of its folder itself.
func (w *Watcher) isRelevant(e fsnotify.Event) bool {
	return filepath.Base(e.Name) == filepath.Base(w.path) || filepath.Clean(e.Name) == filepath.Dir(w.path)
}

// fileStamp is by what a changed file is known without reading it.
type fileStamp struct{ info fs.FileInfo } // nil: there is none

func statFile(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info}
}

func (s fileStamp) equal(o fileStamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.Mode() == o.info.Mode() &&
		s.info.ModTime().Equal(o.info.ModTime())
}

// reload reads the file and publishes what is new. It reports false, and publishes nothing, when the file changed while
// it was read.
func (w *Watcher) reload(before fileStamp) bool {
	c, err := w.loader.Load(w.path)
	if !statFile(w.path).equal(before) {
		return false
	}
	old := w.Current()
	next := Snapshot{Config: c, Err: err, Since: w.options.Now()}
	switch {
	case err == nil && old.Err == nil && old.Config != nil && old.Config.sum == c.sum:
		return true
	case err != nil && old.Err != nil && old.Err.Error() == err.Error():
		return true
	case err != nil:
		next.Config = old.Config
		w.options.Log.Error("the configuration is invalid; the last valid one stays in use", "err", err)
	default:
		w.options.Log.Info("the configuration was reloaded", "path", w.path)
	}
	w.publish(next)
	return true
}

func (w *Watcher) publish(s Snapshot) {
	w.current.Store(&s)
	select {
	case w.changes <- struct{}{}:
	default: // the reader has not taken the last one yet and will find this
	}
}

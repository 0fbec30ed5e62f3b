package reconcile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// fileWatcher reports changes of transcripts. It watches folders, since a file may be replaced or not exist yet; of a folder that does not
// exist, the nearest one above. The goroutine of the [TranscriptWatcher] owns it.
type fileWatcher struct {
	notifier    *fsnotify.Watcher            // nil: not available
	folders     map[string]int               // how many files are watched by each
	files       map[string]map[string]string // by file and session: the folder that is watched for it
	viaAncestor int                          // how many of them are watched by a folder above theirs
}

func newFileWatcher() (*fileWatcher, error) {
	w := &fileWatcher{folders: map[string]int{}, files: map[string]map[string]string{}}
	n, err := fsnotify.NewWatcher()
	if err == nil {
		w.notifier = n
	}
	return w, err
}

func (w *fileWatcher) close() {
	if w.notifier != nil {
		_ = w.notifier.Close() // it holds nothing that could be lost
	}
}

// events returns channels that stay silent where watching is not available.
func (w *fileWatcher) events() (<-chan fsnotify.Event, <-chan error) {
	if w.notifier == nil {
		return nil, nil
	}
	return w.notifier.Events, w.notifier.Errors
}

// watch watches these files of a session instead of the earlier ones. It reports whether every change will be reported: the system may
// have no more watches.
func (w *fileWatcher) watch(id string, before, files []string) bool {
	if w.notifier == nil {
		return false
	}
	all := true
	for _, f := range files {
		all = w.add(id, f) && all
	}
	for _, f := range before {
		if !slices.Contains(files, f) {
			w.remove(id, f)
		}
	}
	return all
}

func (w *fileWatcher) add(id, file string) bool {
	dir := filepath.Dir(file)
	switch w.files[file][id] {
	case dir:
		return w.folders[dir] > 0
	case "":
	default: // one above it, which may be there by now
		w.remove(id, file)
	}
	watched := w.watchNearest(dir)
	if watched == "" {
		return false
	}
	w.folders[watched]++
	if watched != dir {
		w.viaAncestor++
	}
	if w.files[file] == nil {
		w.files[file] = map[string]string{}
	}
	w.files[file][id] = watched
	return true
}

// watchNearest watches the folder or, while it does not exist, the nearest one above. It returns the watched folder; empty: neither could
// be watched.
func (w *fileWatcher) watchNearest(dir string) string {
	for up, below := dir, ""; ; up, below = filepath.Dir(up), up {
		if w.folders[up] == 0 {
			err := w.notifier.Add(up)
			if errors.Is(err, fs.ErrNotExist) && filepath.Dir(up) != up {
				continue
			}
			if err != nil {
				return ""
			}
		}
		if below == "" {
			return up
		}
		if _, err := os.Lstat(below); err != nil {
			return up
		}
		if w.folders[up] == 0 { // the one below was made a moment ago
			_ = w.notifier.Remove(up) // it may be gone
		}
		return w.watchNearest(dir)
	}
}

func (w *fileWatcher) remove(id, file string) {
	dir := w.files[file][id]
	if dir == "" {
		return
	}
	if delete(w.files[file], id); len(w.files[file]) == 0 {
		delete(w.files, file)
	}
	if dir != filepath.Dir(file) {
		w.viaAncestor--
	}
	if w.folders[dir]--; w.folders[dir] <= 0 {
		delete(w.folders, dir)
		_ = w.notifier.Remove(dir) // it may be gone
	}
}

// affectedSessions are the sessions whose transcript an event is about. remade: a folder was created or removed, and the files in it have
// to be watched anew.
func (w *fileWatcher) affectedSessions(e fsnotify.Event) (ids map[string]bool, remade bool) {
	switch {
	case e.Op == fsnotify.Chmod:
		return nil, false
	case w.folders[e.Name] > 0 && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)):
		return w.forgetFolder(e.Name), true
	case w.viaAncestor > 0 && e.Has(fsnotify.Create):
		if ids = w.sessionsBelow(e.Name); len(ids) > 0 {
			return ids, true
		}
	}
	ids = map[string]bool{}
	for id := range w.files[e.Name] {
		ids[id] = true
	}
	return ids, false
}

// forgetFolder forgets a removed folder, and returns the sessions whose files were watched by it.
func (w *fileWatcher) forgetFolder(dir string) map[string]bool {
	ids := map[string]bool{}
	delete(w.folders, dir)
	for file, watched := range w.files {
		for id, by := range watched {
			if by != dir {
				continue
			}
			ids[id] = true
			if delete(watched, id); dir != filepath.Dir(file) {
				w.viaAncestor--
			}
		}
		if len(watched) == 0 {
			delete(w.files, file)
		}
	}
	return ids
}

// sessionsBelow are the sessions that wait for a folder at that path, or below it.
func (w *fileWatcher) sessionsBelow(made string) map[string]bool {
	ids := map[string]bool{}
	for file, watched := range w.files {
		for id, by := range watched {
			if by == filepath.Dir(made) && by != filepath.Dir(file) && strings.HasPrefix(file, made+string(filepath.Separator)) {
				ids[id] = true
			}
		}
	}
	return ids
}

// fileStamp changes when the file does.
type fileStamp struct {
	size    int64
	modTime int64 // Unix nanoseconds
}

// stampsOf returns the stamps of files; of one that does not exist the zero stamp.
func stampsOf(files []string) []fileStamp {
	marks := make([]fileStamp, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			marks[i] = stampOf(info)
		}
	}
	return marks
}

func stampOf(info fs.FileInfo) fileStamp {
	return fileStamp{size: info.Size(), modTime: info.ModTime().UnixNano()}
}

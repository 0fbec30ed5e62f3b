package bot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// fileWatcher tells when one of the records changes that are listened to. It watches folders: a file may be replaced, or not
// be there yet; of a folder that is not, one above it. The goroutine of the [listener] owns it.
type fileWatcher struct {
	notifier    *fsnotify.Watcher            // nil: this system does not tell, and everything is looked at often
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

// events never tells anything where the system does not.
func (w *fileWatcher) events() (<-chan fsnotify.Event, <-chan error) {
	if w.notifier == nil {
		return nil, nil
	}
	return w.notifier.Events, w.notifier.Errors
}

// watch has the files of a session watched instead of those of before. It reports whether a change of each will be told:
// it is not where the system has no more watches to give.
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

// watchNearest has the folder watched or, while that is not there, the nearest one above in which it will be made. Empty: the system
// watches neither.
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

// affectedSessions are the sessions whose record an event is about. anew: it is about a folder that was made or went away, and
// everybody with a file in it has to ask again.
func (w *fileWatcher) affectedSessions(e fsnotify.Event) (ids map[string]bool, anew bool) {
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

// lost forgets a folder that went away, and returns whose files were watched by it.
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

// within are the sessions that wait for a folder at that path, or below it.
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

// stampsOf looks at files. One that is not there has no size.
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

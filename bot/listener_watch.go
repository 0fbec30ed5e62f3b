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

// recordWatch tells when one of the records changes that are listened to. It watches folders: a file may be replaced, or not
// be there yet; of a folder that is not, one above it. The goroutine of the [listener] owns it.
type recordWatch struct {
	notifier *fsnotify.Watcher            // nil: this system does not tell, and everything is looked at often
	folders  map[string]int               // how many files are watched by each
	files    map[string]map[string]string // by file and session: the folder that is watched for it
	waiting  int                          // how many of them are watched by a folder above theirs
}

func newRecordWatch() (*recordWatch, error) {
	w := &recordWatch{folders: map[string]int{}, files: map[string]map[string]string{}}
	n, err := fsnotify.NewWatcher()
	if err == nil {
		w.notifier = n
	}
	return w, err
}

func (w *recordWatch) close() {
	if w.notifier != nil {
		_ = w.notifier.Close() // it holds nothing that could be lost
	}
}

// events never tells anything where the system does not.
func (w *recordWatch) events() (<-chan fsnotify.Event, <-chan error) {
	if w.notifier == nil {
		return nil, nil
	}
	return w.notifier.Events, w.notifier.Errors
}

// watch has the files of a session watched instead of those of before. It reports whether a change of each will be told:
// it is not where the system has no more watches to give.
func (w *recordWatch) watch(id string, before, files []string) bool {
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

func (w *recordWatch) add(id, file string) bool {
	dir := filepath.Dir(file)
	switch w.files[file][id] {
	case dir:
		return w.folders[dir] > 0
	case "":
	default: // one above it, which may be there by now
		w.remove(id, file)
	}
	watched := w.nearest(dir)
	if watched == "" {
		return false
	}
	w.folders[watched]++
	if watched != dir {
		w.waiting++
	}
	if w.files[file] == nil {
		w.files[file] = map[string]string{}
	}
	w.files[file][id] = watched
	return true
}

// nearest has the folder watched or, while that is not there, the nearest one above in which it will be made. Empty: the system
// watches neither.
func (w *recordWatch) nearest(dir string) string {
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
		return w.nearest(dir)
	}
}

func (w *recordWatch) remove(id, file string) {
	dir := w.files[file][id]
	if dir == "" {
		return
	}
	if delete(w.files[file], id); len(w.files[file]) == 0 {
		delete(w.files, file)
	}
	if dir != filepath.Dir(file) {
		w.waiting--
	}
	if w.folders[dir]--; w.folders[dir] <= 0 {
		delete(w.folders, dir)
		_ = w.notifier.Remove(dir) // it may be gone
	}
}

// concerned are the sessions whose record an event is about. anew: it is about a folder that was made or went away, and
// everybody with a file in it has to ask again.
func (w *recordWatch) concerned(e fsnotify.Event) (ids map[string]bool, anew bool) {
	switch {
	case e.Op == fsnotify.Chmod:
		return nil, false
	case w.folders[e.Name] > 0 && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)):
		return w.lost(e.Name), true
	case w.waiting > 0 && e.Has(fsnotify.Create):
		if ids = w.within(e.Name); len(ids) > 0 {
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
func (w *recordWatch) lost(dir string) map[string]bool {
	ids := map[string]bool{}
	delete(w.folders, dir)
	for file, watched := range w.files {
		for id, by := range watched {
			if by != dir {
				continue
			}
			ids[id] = true
			if delete(watched, id); dir != filepath.Dir(file) {
				w.waiting--
			}
		}
		if len(watched) == 0 {
			delete(w.files, file)
		}
	}
	return ids
}

// within are the sessions that wait for a folder at that path, or below it.
func (w *recordWatch) within(made string) map[string]bool {
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

// fileMark changes when the file does.
type fileMark struct {
	size    int64
	changed int64 // Unix nanoseconds
}

// marksOf looks at files. One that is not there has no size.
func marksOf(files []string) []fileMark {
	marks := make([]fileMark, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			marks[i] = markOf(info)
		}
	}
	return marks
}

func markOf(info fs.FileInfo) fileMark {
	return fileMark{size: info.Size(), changed: info.ModTime().UnixNano()}
}

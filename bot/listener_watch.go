package bot

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// recordWatch tells when one of the records changes that are listened to. It watches folders: a file may be replaced, or not
// be there yet. The goroutine of the [listener] owns it.
type recordWatch struct {
	notifier *fsnotify.Watcher // nil: this system does not tell, and everything is looked at often
	folders  map[string]int    // how many files are watched in each
	files    map[string]map[string]bool
}

func newRecordWatch() (*recordWatch, error) {
	w := &recordWatch{folders: map[string]int{}, files: map[string]map[string]bool{}}
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
// it is not where the folder is not there yet, or the system has no more watches to give.
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
	if w.files[file][id] {
		return w.folders[filepath.Dir(file)] > 0
	}
	dir := filepath.Dir(file)
	if w.folders[dir] == 0 && w.notifier.Add(dir) != nil {
		return false
	}
	w.folders[dir]++
	if w.files[file] == nil {
		w.files[file] = map[string]bool{}
	}
	w.files[file][id] = true
	return true
}

func (w *recordWatch) remove(id, file string) {
	if !w.files[file][id] {
		return
	}
	if delete(w.files[file], id); len(w.files[file]) == 0 {
		delete(w.files, file)
	}
	dir := filepath.Dir(file)
	if w.folders[dir]--; w.folders[dir] <= 0 {
		delete(w.folders, dir)
		_ = w.notifier.Remove(dir) // it may be gone
	}
}

// concerned are the sessions whose record an event is about. A folder that goes away is watched no more: everybody with a
// file in it has to ask again.
func (w *recordWatch) concerned(e fsnotify.Event) map[string]bool {
	if e.Op == fsnotify.Chmod {
		return nil
	}
	if w.folders[e.Name] == 0 || !e.Has(fsnotify.Remove) && !e.Has(fsnotify.Rename) {
		return w.files[e.Name]
	}
	lost := map[string]bool{}
	delete(w.folders, e.Name)
	for file, ids := range w.files {
		if filepath.Dir(file) != e.Name {
			continue
		}
		for id := range ids {
			lost[id] = true
		}
		delete(w.files, file)
	}
	return lost
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

package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// waitChange waits until the watch tells of a session.
func waitChange(t *testing.T, w *fileWatcher, id string) {
	t.Helper()
	events, failures := w.events()
	late := time.After(20 * time.Second)
	for {
		select {
		case e := <-events:
			if ids, _ := w.affectedSessions(e); ids[id] {
				return
			}
		case err := <-failures:
			t.Fatal(err)
		case <-late:
			t.Fatalf("nothing was told of %s", id)
		}
	}
}

func appendFile(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfTranscriptsAreNoticedWhateverHappensToTheirFiles(t *testing.T) {
	t.Parallel()
	w, err := newFileWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	dir := filepath.Join(t.TempDir(), "of", "records")
	a, b := filepath.Join(dir, "a.db"), filepath.Join(dir, "a.db-wal")
	if !w.watch("1", nil, []string{a, b}) {
		t.Error("a folder that is not there yet is not waited for")
	}
	for _, made := range []string{filepath.Dir(dir), dir} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
		waitChange(t, w, "1")
		if !w.watch("1", []string{a, b}, []string{a, b}) {
			t.Errorf("it is not waited for when %s is made", made)
		}
	}
	if w.viaAncestor > 0 || !w.watch("2", nil, []string{a}) {
		t.Fatal("a folder is not watched")
	}
	appendFile(t, b, "made after the watch")
	waitChange(t, w, "1")
	appendFile(t, filepath.Join(dir, "other"), "nobody's")
	appendFile(t, a, "of both")
	waitChange(t, w, "2")
	if !w.watch("1", []string{a, b}, []string{b}) {
		t.Error("a file less is not watched any more")
	}
	next := filepath.Join(dir, "next")
	appendFile(t, next, "to replace it")
	if err := os.Rename(next, b); err != nil {
		t.Fatal(err)
	}
	waitChange(t, w, "1")
	w.watch("1", []string{b}, nil)
	w.watch("2", []string{a}, nil)
	if len(w.files) > 0 || len(w.folders) > 0 {
		t.Errorf("still watched: %v %v", slices.Collect(maps.Keys(w.files)), w.folders)
	}
}

func TestATranscriptWhoseFolderIsMadeAgainIsWatchedAgain(t *testing.T) {
	t.Parallel()
	w, err := newFileWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	dir := filepath.Join(t.TempDir(), "records")
	file := filepath.Join(dir, "a")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if !w.watch("1", nil, []string{file}) {
		t.Fatal("the folder is not watched")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	waitChange(t, w, "1")
	if !w.watch("1", []string{file}, []string{file}) {
		t.Error("a folder that is gone is not waited for")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	waitChange(t, w, "1")
	if !w.watch("1", []string{file}, []string{file}) {
		t.Fatal("a folder that was made again is not watched")
	}
	appendFile(t, file, "in the new one")
	waitChange(t, w, "1")
}

// newIdleWatcher is a watcher of sessions in which nothing happens.
func newIdleWatcher(tb testing.TB, n int, told bool) *TranscriptWatcher {
	tb.Helper()
	dir := tb.TempDir()
	l := NewTranscriptWatcher(TranscriptWatcherOptions{Log: slog.New(slog.DiscardHandler)})
	l.nextListing = time.Now().Add(time.Hour)
	for i := range n {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			tb.Fatal(err)
		}
		e := &watchedTranscript{files: []string{file, file + "-wal"}, isWatched: told, rereadAt: l.nextListing}
		e.stamps = stampsOf(e.files)
		l.transcripts[fmt.Sprint(i)] = e
	}
	return l
}

// minute lets a minute pass, and returns how often a record was looked at.
func (l *TranscriptWatcher) minute(ctx context.Context, now time.Time) (looks int) {
	var wg sync.WaitGroup
	end := now.Add(time.Minute)
	for now.Before(end) {
		for _, e := range l.transcripts {
			if !now.Before(e.nextCheck) {
				looks++
			}
		}
		now = now.Add(l.checkAll(ctx, &wg, now))
	}
	wg.Wait()
	return looks
}

func TestAWatchedIdleSessionIsRarelyRead(t *testing.T) {
	t.Parallel()
	if n := newIdleWatcher(t, 100, true).minute(t.Context(), time.Now()); n > 100*8 {
		t.Errorf("100 sessions were looked at %d times in a minute", n)
	}
	if n := newIdleWatcher(t, 10, false).minute(t.Context(), time.Now()); n < 10*200 {
		t.Errorf("10 sessions of which nothing is told were looked at %d times in a minute", n)
	}
}

// BenchmarkThousandIdleSessions is what a minute with them costs, reading them from time to time aside.
func BenchmarkThousandIdleSessions(b *testing.B) {
	for _, told := range []bool{true, false} {
		b.Run(fmt.Sprintf("told=%t", told), func(b *testing.B) {
			l := newIdleWatcher(b, 1000, told)
			now := time.Now()
			for b.Loop() {
				l.minute(b.Context(), now)
				now = now.Add(time.Minute)
			}
		})
	}
}

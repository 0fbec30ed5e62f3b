package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testSession        = "5e551011-0000-4000-8000-000000000001"
	firstConversation  = "aaaaaaaa-0000-4000-8000-000000000001"
	secondConversation = "bbbbbbbb-0000-4000-8000-000000000002"
)

// logSize is how much a log takes, with all of its files.
func logSize(t testing.TB, path string) (size int64, files int) {
	t.Helper()
	all, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size, len(all)
}

// conversationReport is a report of a conversation, of some size.
func conversationReport(event, conv string, size int) Report {
	payload, _ := json.Marshal(map[string]string{"transcript_path": "/t/" + conv + ".jsonl", "prompt": strings.Repeat("x", size)})
	return Report{At: time.Now(), Event: event, Conversation: conv, Payload: payload}
}

func mustAppend(t testing.TB, path string, r Report) {
	t.Helper()
	if err := Append(path, r); err != nil {
		t.Fatal(err)
	}
}

// Reports of months take no more room than those of a day, and a reader that keeps up hears each of them once.
func TestReportLogSizeIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports", "s.jsonl")
	var at int64
	next := 0
	for i := range 600 {
		mustAppend(t, path, conversationReport(EventStop, fmt.Sprint("n", i), 30_000))
		if i%7 > 0 {
			continue
		}
		reports, end, err := Read(path, at)
		if err != nil || end <= at {
			t.Fatalf("read to %d after %d: %v", end, at, err)
		}
		for _, r := range reports {
			if r.Conversation != fmt.Sprint("n", next) {
				t.Fatalf("report %s after %d", r.Conversation, next)
			}
			next++
		}
		at = end
	}
	if size, files := logSize(t, path); size > (maxFullFiles+1)*(maxFile+64<<10) || files != maxFullFiles+1 {
		t.Errorf("%d files of %d bytes", files, size)
	}
	if at < 15<<20 {
		t.Errorf("offsets began anew: %d", at)
	}
}

// A reader that was away goes on at its place, or with the oldest report that is kept.
func TestAReaderThatIsBehindGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	places := []int64{0}
	for i := range 200 {
		if i > 0 {
			_, end, err := Read(path, places[i-1])
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, end)
		}
		mustAppend(t, path, conversationReport(EventStop, fmt.Sprint("n", i), 50_000))
	}
	oldest := -1
	for i := 0; i < len(places); i += 4 {
		reports, end, err := Read(path, places[i])
		if err != nil || len(reports) == 0 || reports[len(reports)-1].Conversation != "n199" {
			t.Fatalf("from place %d: %d reports, %v", i, len(reports), err)
		}
		first := strings.TrimPrefix(reports[0].Conversation, "n")
		if fmt.Sprint(i) != first && oldest >= 0 {
			t.Errorf("from place %d the first is %s", i, first)
		}
		if fmt.Sprint(i) == first && oldest < 0 {
			oldest = i
		}
		if again, _, err := Read(path, end); err != nil || len(again) > 0 {
			t.Errorf("after the end: %v, %v", again, err)
		}
	}
	if kept := 200 - oldest; oldest < 1 || kept < maxFullFiles*maxFile/50_200 {
		t.Errorf("%d reports are kept", kept)
	}
}

// A file that an earlier program let grow stays readable at the places that were stored, and is followed by a small one.
func TestReportFileOfAnOlderVersionIsContinued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	old := writeOldReportFile(t, path, 5<<20)
	mid := int64(bytes.IndexByte(old[2<<20:], '\n')) + 2<<20 + 1
	before, end, err := Read(path, mid)
	if err != nil || end != int64(len(old)) {
		t.Fatalf("read to %d, %v", end, err)
	}
	mustAppend(t, path, conversationReport(EventStop, "fresh", 10))
	after, _, err := Read(path, mid)
	if err != nil || len(after) != len(before)+1 || after[0].Conversation != before[0].Conversation || after[len(before)].Conversation != "fresh" {
		t.Errorf("%d reports, then %d, %v", len(before), len(after), err)
	}
	if fresh, _, err := Read(path, end); err != nil || len(fresh) != 1 {
		t.Errorf("from the end of the old file: %v, %v", fresh, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 64<<10 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file now: %v, %v", info, err)
	}
	for i := range 200 {
		mustAppend(t, path, conversationReport(EventStop, fmt.Sprint(i), 50_000))
	}
	if size, _ := logSize(t, path); size > 5<<20 {
		t.Errorf("the old file is still there: %d bytes", size)
	}
}

// writeOldReportFile writes a file as programs before wrote it.
func writeOldReportFile(t testing.TB, path string, size int) []byte {
	t.Helper()
	var all bytes.Buffer
	for i := 0; all.Len() < size; i++ {
		line, err := json.Marshal(conversationReport(EventStop, fmt.Sprint("old", i%50), 5000))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// Many hooks that report while the files follow each other lose, tear and double nothing, and readers see each report once.
func TestHooksLoseNothingDuringRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	const hooks, each = 8, 40 // no more than the log keeps for a reader that gets no processor
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range hooks {
		writers.Go(func() {
			for i := range each {
				mustAppend(t, path, conversationReport(EventStop, fmt.Sprintf("w%d-%d", w, i), 9000))
			}
		})
	}
	seen := make([][]string, 3)
	for n := range seen {
		readers.Go(func() {
			for at, last := int64(0), false; ; {
				reports, end, err := Read(path, at)
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range reports {
					seen[n] = append(seen[n], r.Conversation)
				}
				if last {
					return
				}
				at = end
				select {
				case <-done:
					last = true
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for n, got := range seen {
		slices.Sort(got)
		if whole := len(got); whole != hooks*each || len(slices.Compact(got)) != whole {
			t.Errorf("reader %d: %d reports, %d different ones", n, whole, len(slices.Compact(got)))
		}
	}
}

// What all reports together say is the same whether they are read at once, bit by bit, or from the head of the last file.
func TestRotatedFileKeepsTheFactsOfEarlierFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	var all Facts
	index := &Index{}
	launch, _ := json.Marshal(LaunchPayload{Prompt: true, SubmitKey: true})
	for i := range 80 {
		r := conversationReport(EventStop, fmt.Sprintf("c%d", i/9), 60_000)
		switch i % 9 {
		case 0:
			r.Event = EventSessionStart
		case 3:
			r.Event = EventPromptSubmit
		case 5:
			if i/9%2 == 0 {
				r = Report{At: time.Now(), Event: EventLaunch, Conversation: r.Conversation, Payload: launch}
			}
		}
		mustAppend(t, path, r)
		all.Add(r)
		for name, x := range map[string]*Index{"remembered": index, "read anew": nil} {
			if x == nil && i%5 > 0 {
				continue
			}
			if err := x.WithFacts(path, func(facts *Facts, _ int64) {
				if got, want := mustJSON(facts), mustJSON(&all); got != want {
					t.Fatalf("%s after %d reports:\n%s\nwant\n%s", name, i, got, want)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func mustJSON(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

func TestRememberedConversationsAreBounded(t *testing.T) {
	t.Parallel()
	var facts Facts
	for i := range 3 * maxConversations {
		facts.Add(conversationReport(EventSessionStart, fmt.Sprint("c", i), 10))
	}
	if len(facts.Conversations) != maxConversations || facts.CurrentConversation(fmt.Sprint("c", 3*maxConversations-2)) != fmt.Sprint("c", 3*maxConversations-1) || facts.CurrentConversation("c0") != "" {
		t.Errorf("%d conversations", len(facts.Conversations))
	}
}

// A look reads what was added and nothing before it: what stands there could be anything.
func TestReportIndexReadsOnlyWhatWasAdded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	mustAppend(t, path, conversationReport(EventSessionStart, firstConversation, 10))
	index := &Index{}
	became := func() (now string) {
		if err := index.WithFacts(path, func(facts *Facts, _ int64) { now = facts.CurrentConversation(firstConversation) }); err != nil {
			t.Fatal(err)
		}
		return now
	}
	if became() != firstConversation {
		t.Fatal("not read")
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.Repeat([]byte{'?'}, len(old)-1), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, conversationReport(EventSessionStart, secondConversation, 10))
	if got := became(); got != secondConversation {
		t.Errorf("became %q", got)
	}
}

func TestReportsAreRemovedWithTheirSession(t *testing.T) {
	t.Parallel()
	r := Reader{Dir: t.TempDir(), Index: &Index{}}
	for _, id := range []string{testSession, "other"} {
		for range 90 {
			mustAppend(t, filepath.Join(r.Dir, id+".jsonl"), conversationReport(EventStop, firstConversation, 50_000))
		}
	}
	now := ""
	err := r.Index.WithFacts(filepath.Join(r.Dir, testSession+".jsonl"), func(f *Facts, _ int64) { now = f.CurrentConversation(firstConversation) })
	if now != firstConversation || err != nil {
		t.Fatalf("%q, %v", now, err)
	}
	if err := r.Remove(t.Context(), testSession); err != nil {
		t.Fatal(err)
	}
	if size, _ := logSize(t, filepath.Join(r.Dir, testSession)); size > 0 || len(r.Index.logs) > 0 {
		t.Errorf("%d bytes stay, %v", size, r.Index.logs)
	}
	if _, files := logSize(t, filepath.Join(r.Dir, "other")); files != maxFullFiles+1 {
		t.Errorf("%d files of another session", files)
	}
	if err := r.Remove(t.Context(), testSession); err != nil {
		t.Errorf("again: %v", err)
	}
	if r.Remove(t.Context(), "../x") == nil {
		t.Error("what is no id was removed")
	}
}

// BenchmarkReportIndex measures what a look costs, as each reply has several, at reports of 50 MB and of 50 kB: the ratio
// is to be one.
func BenchmarkReportIndex(b *testing.B) {
	dir := b.TempDir()
	look := map[string]func(){}
	for name, size := range map[string]int{"small": 50 << 10, "large": 50 << 20} {
		path := filepath.Join(dir, name+".jsonl")
		writeOldReportFile(b, path, size)
		index := &Index{}
		look[name] = func() {
			if err := index.WithFacts(path, func(f *Facts, _ int64) { f.CurrentConversation("old1") }); err != nil {
				b.Fatal(err)
			}
		}
		look[name]() // the first one reads it
	}
	took := map[string]time.Duration{}
	for b.Loop() {
		for name, do := range look {
			began := time.Now()
			do()
			took[name] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took["large"])/float64(took["small"]), "large/small")
	b.ReportMetric(float64(took["large"].Microseconds())/float64(b.N), "µs/large")
}

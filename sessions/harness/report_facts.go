package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"the-loop/sessions"
)

// reportFacts are what all reports of a session together say of its agent's start and of its conversations.
type reportFacts struct {
	Count  int64               `json:"count"`            // of the reports
	Launch *launchFact         `json:"launch,omitempty"` // of the last agent; nil: none was launched
	Talks  map[string]talkFact `json:"talks,omitempty"`  // by the conversation's id
	Start  string              `json:"start,omitempty"`  // the conversation that began last
	Began  int64               `json:"began,omitempty"`  // the report that said so
}

// launchFact is what is known of the agent that was launched last.
type launchFact struct {
	At       time.Time  `json:"at"`
	Note     launchNote `json:"note"`
	Began    time.Time  `json:"began,omitzero"` // when it said that it had started
	Prompted bool       `json:"prompted"`       // it has taken a prompt
}

// talkFact is what is known of a conversation.
type talkFact struct {
	Last int64  `json:"last"`           // the last report of it
	Path string `json:"path,omitempty"` // where it is written
}

// maxTalks bounds how many conversations are remembered, the last ones.
const maxTalks = 200

// addLine takes up a line of a report file.
func (f *reportFacts) addLine(line []byte) {
	var r Report
	if json.Unmarshal(line, &r) == nil {
		f.add(r)
	}
}

// add takes up one more report.
func (f *reportFacts) add(r Report) {
	f.Count++
	f.addTalk(r)
	var note launchNote
	switch {
	case r.Event == EventLaunch && json.Unmarshal(r.Payload, &note) == nil:
		f.Launch = &launchFact{At: r.At, Note: note}
	case f.Launch == nil:
	case r.Event == EventSessionStart && f.Launch.Began.IsZero():
		f.Launch.Began = r.At
	case r.Event == EventPromptSubmit:
		f.Launch.Prompted = true
	}
}

func (f *reportFacts) addTalk(r Report) {
	if !sessions.ValidConversation(r.Conversation) {
		return
	}
	talk := f.Talks[r.Conversation]
	if talk.Last = f.Count; talk.Path == "" {
		talk.Path = transcriptPath(r)
	}
	if f.Talks == nil {
		f.Talks = map[string]talkFact{}
	}
	if f.Talks[r.Conversation] = talk; r.Event == EventSessionStart {
		f.Start, f.Began = r.Conversation, f.Count
	}
	if len(f.Talks) > maxTalks {
		f.forgetOldest()
	}
}

func (f *reportFacts) forgetOldest() {
	oldest, at := "", f.Count
	for id, talk := range f.Talks {
		if talk.Last < at {
			oldest, at = id, talk.Last
		}
	}
	delete(f.Talks, oldest)
}

// transcriptPath is where the agent says that its conversation is written; empty: it does not say so.
func transcriptPath(r Report) string {
	var said struct {
		Path string `json:"transcript_path"`
	}
	if json.Unmarshal(r.Payload, &said) != nil || !filepath.IsAbs(said.Path) {
		return ""
	}
	return said.Path
}

// became is the conversation that one with the given id has become: what began last after the last word of it. Empty: nothing
// was reported of it.
func (f *reportFacts) became(id string) string {
	talk, known := f.Talks[id]
	switch {
	case !known:
		return ""
	case f.Began > talk.Last:
		return f.Start
	}
	return id
}

// starts reports whether the agent that was launched last may still lose what is typed. Its box is on the screen for
// some 300 ms before it takes the prompt that it was started with, and what was pasted until then goes away with that
// (2.1.197); nothing on the screen tells.
func (f *reportFacts) starts(now time.Time) bool {
	switch l := f.Launch; {
	case l == nil, l.Prompted:
		return false
	case l.Began.IsZero():
		return now.Sub(l.At) < startPatience
	default:
		return l.Note.Prompt && now.Sub(l.Began) < bootPatience
	}
}

// ReportIndex remembers what the reports of each session say together, so that only what was added since is read. The zero
// index is ready, and many goroutines may use it.
type ReportIndex struct {
	mu   sync.Mutex // guards the field that follows
	logs map[string]*indexedLog
}

// indexedLog is one log, as far as it was read.
type indexedLog struct {
	mu    sync.Mutex // guards the fields that follow
	facts reportFacts
	next  int64
}

// look calls see with the facts of a log and the offset of its end. A nil index reads them anew.
func (x *ReportIndex) look(path string, see func(facts *reportFacts, end int64)) error {
	l := x.log(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.update(path); err != nil {
		return err
	}
	see(&l.facts, l.next)
	return nil
}

func (x *ReportIndex) log(path string) *indexedLog {
	if x == nil {
		return &indexedLog{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.logs == nil {
		x.logs = map[string]*indexedLog{}
	}
	if x.logs[path] == nil {
		x.logs[path] = &indexedLog{}
	}
	return x.logs[path]
}

// update reads what was added since the last time. A head says what was before it.
func (l *indexedLog) update(path string) error {
	f, err := openReports(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		l.facts, l.next = reportFacts{}, 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the agent's reports: %w", err)
	}
	defer func() { _ = f.Close() }()
	if l.next < f.base || l.next > f.end() { // or it is another log
		l.facts, l.next = f.facts(), f.base
	}
	if l.next, err = f.lines(l.next, -1, l.facts.addLine); err != nil {
		return fmt.Errorf("read the agent's reports: %w", err)
	}
	return nil
}

// forget lets go of a log that was removed.
func (x *ReportIndex) forget(path string) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.logs, path)
}

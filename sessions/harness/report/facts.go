package report

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

// Facts are what all reports of a session together say of its agent's start and of its conversations.
type Facts struct {
	Count           int64                       `json:"count"`            // of the reports
	Launch          *LaunchFact                 `json:"launch,omitempty"` // of the last agent; nil: none was launched
	Conversations   map[string]ConversationFact `json:"talks,omitempty"`  // by the conversation's id
	LastStarted     string                      `json:"start,omitempty"`  // the conversation that began last
	LastStartReport int64                       `json:"began,omitempty"`  // the report that said so
}

// LaunchFact is what is known of the agent that was launched last.
type LaunchFact struct {
	At        time.Time     `json:"at"`
	Payload   LaunchPayload `json:"note"`
	StartedAt time.Time     `json:"began,omitzero"` // when it reported its start
	Prompted  bool          `json:"prompted"`       // it has accepted a prompt
}

// ConversationFact is what is known of a conversation.
type ConversationFact struct {
	LastReport int64  `json:"last"`           // the last report of it
	Path       string `json:"path,omitempty"` // where it is written
}

// maxConversations bounds how many conversations are remembered, the last ones.
const maxConversations = 200

// addLine adds a line of a report file.
func (f *Facts) addLine(line []byte) {
	var r Report
	if json.Unmarshal(line, &r) == nil {
		f.Add(r)
	}
}

// Add adds a report.
func (f *Facts) Add(r Report) {
	f.Count++
	f.addConversation(r)
	var note LaunchPayload
	switch {
	case r.Event == EventLaunch && json.Unmarshal(r.Payload, &note) == nil:
		f.Launch = &LaunchFact{At: r.At, Payload: note}
	case f.Launch == nil:
	case r.Event == EventSessionStart && f.Launch.StartedAt.IsZero():
		f.Launch.StartedAt = r.At
	case r.Event == EventPromptSubmit:
		f.Launch.Prompted = true
	}
}

func (f *Facts) addConversation(r Report) {
	if !sessions.ValidConversation(r.Conversation) {
		return
	}
	conv := f.Conversations[r.Conversation]
	if conv.LastReport = f.Count; conv.Path == "" {
		conv.Path = transcriptPath(r)
	}
	if f.Conversations == nil {
		f.Conversations = map[string]ConversationFact{}
	}
	if f.Conversations[r.Conversation] = conv; r.Event == EventSessionStart {
		f.LastStarted, f.LastStartReport = r.Conversation, f.Count
	}
	if len(f.Conversations) > maxConversations {
		f.forgetOldest()
	}
}

func (f *Facts) forgetOldest() {
	oldest, at := "", f.Count
	for id, conv := range f.Conversations {
		if conv.LastReport < at {
			oldest, at = id, conv.LastReport
		}
	}
	delete(f.Conversations, oldest)
}

// transcriptPath returns the file of the conversation as the agent reports it; empty: it does not.
func transcriptPath(r Report) string {
	var payload struct {
		Path string `json:"transcript_path"`
	}
	if json.Unmarshal(r.Payload, &payload) != nil || !filepath.IsAbs(payload.Path) {
		return ""
	}
	return payload.Path
}

// CurrentConversation returns the conversation that the one with the given id has become: the one that began last after the last
// report of it. Empty: nothing was reported of it.
func (f *Facts) CurrentConversation(id string) string {
	conv, known := f.Conversations[id]
	switch {
	case !known:
		return ""
	case f.LastStartReport > conv.LastReport:
		return f.LastStarted
	}
	return id
}

// Index remembers what the reports of each session say together, so that only what was added since is read. The zero
// index is ready, and many goroutines may use it.
type Index struct {
	mu   sync.Mutex // guards the field that follows
	logs map[string]*indexedLog
}

// indexedLog is one log, as far as it was read.
type indexedLog struct {
	mu    sync.Mutex // guards the fields that follow
	facts Facts
	next  int64
}

// WithFacts calls see with the facts of a log and the offset of its end. A nil index reads them anew.
func (x *Index) WithFacts(path string, see func(facts *Facts, end int64)) error {
	l := x.logFor(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.update(path); err != nil {
		return err
	}
	see(&l.facts, l.next)
	return nil
}

func (x *Index) logFor(path string) *indexedLog {
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
	f, err := openFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		l.facts, l.next = Facts{}, 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the agent's reports: %w", err)
	}
	defer func() { _ = f.Close() }()
	if l.next < f.base || l.next > f.end() { // or it is another log
		l.facts, l.next = f.facts(), f.base
	}
	if l.next, err = f.eachLine(l.next, -1, l.facts.addLine); err != nil {
		return fmt.Errorf("read the agent's reports: %w", err)
	}
	return nil
}

// forget removes a log from the index.
func (x *Index) forget(path string) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.logs, path)
}

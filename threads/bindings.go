package threads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"the-loop/sessions"
	"the-loop/threads/permission"
)

// Binding is what is stored of one thread: whose it is, and how far it is settled. It holds no text of anybody, but for what
// an agent asks as long as that is open.
type Binding struct {
	Version          int          `json:"version"`
	ID               string       `json:"id"` // Record.ID of the session
	Ref              sessions.Ref `json:"ref"`
	Channel          string       `json:"channel"`
	Root             string       `json:"root,omitempty"` // ts of the announcement; empty: not bound yet
	Announcement     Announcement `json:"announcement"`
	Cursor           string       `json:"cursor,omitempty"` // everything up to this ts is settled, or is in Replies
	LastActive       time.Time    `json:"active"`           // when somebody last spoke in it
	LastNotification string       `json:"told,omitempty"`   // the name of what the thread was told last, see [Notification]

	TranscriptOffset sessions.Offset `json:"heard,omitempty"`     // how far the transcript was read, see [sessions.TranscriptBatch]
	TranscriptSince  time.Time       `json:"heardSince,omitzero"` // where there is no offset yet: what was said before is not posted
	ReportOffset     sessions.Offset `json:"noted,omitempty"`     // how far the reports were read, see [sessions.ReportBatch]
	ReportsSince     time.Time       `json:"notedSince,omitzero"` // where there is no offset yet

	TurnRunning bool        `json:"busy,omitempty"` // a turn ran at that place
	TurnMessage TurnMessage `json:"working,omitzero"`

	Replies            map[string]Entry        `json:"replies,omitempty"`   // by ts: what is open, and the newest of what is not
	Traces             map[string]Trace        `json:"done,omitempty"`      // by ts, all after Cursor: nothing is left to do
	ResendPrompts      map[string]ResendPrompt `json:"questions,omitempty"` // by token
	PermissionRequests permission.Requests     `json:"asks,omitempty"`      // by the value of their buttons
	Waiting            *WaitState              `json:"waiting,omitempty"`   // the agent waits for its operator
	LastUser           string                  `json:"speaker,omitempty"`   // member id of who spoke last, and was let in
}

// bindingVersion is the version that this program writes. It reads the earlier ones too: what they do not have is empty.
// A program that does not know Done must not read a file that has it, since it would type those replies again.
const bindingVersion = 2

// Announcement is the intent of a thread's root: it is on disk before the message is posted.
type Announcement struct {
	Nonce     string    `json:"nonce"`
	Since     time.Time `json:"since,omitzero"`     // when it was tried, by Slack's clock
	Tried     bool      `json:"tried,omitempty"`    // a message with the nonce may be there
	Shown     string    `json:"shown,omitempty"`    // fingerprint of what the message shows
	Dismissed time.Time `json:"dismissed,omitzero"` // when somebody deleted it: only a later start announces anew
}

// State says how far a reply is.
type State string

// The stored states of a reply. One that waits in the queue for the first time is not stored: Slack has it.
const (
	StateHeld     State = "held"     // the pane would not take it yet
	StateInflight State = "inflight" // it may be in the pane
	StateDoubt    State = "doubt"    // after a crash or a silence: the operator is asked
	StateOffered  State = "offered"  // too old to be typed unasked
	StateApproved State = "approved" // somebody chose to have it typed; it waits again
	StateSettled  State = "settled"
)

// Outcome says how a reply was settled.
type Outcome string

// The outcomes of a reply.
const (
	OutcomeAccepted  Outcome = "accepted"
	OutcomeTyped     Outcome = "typed"
	OutcomeFailed    Outcome = "failed"
	OutcomeDropped   Outcome = "dropped"   // by authorization
	OutcomeWithdrawn Outcome = "withdrawn" // deleted before it was typed
	OutcomeSkipped   Outcome = "skipped"   // by choice
	OutcomeCommand   Outcome = "command"   // it spoke to the bot
)

// Entry is what is stored of one reply.
type Entry struct {
	State   State           `json:"state"`
	Outcome Outcome         `json:"outcome,omitempty"`
	At      time.Time       `json:"at"`
	User    string          `json:"user,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Raw     bool            `json:"raw,omitempty"`
	Intent  sessions.Intent `json:"intent,omitzero"`

	Approved bool   `json:"approved,omitempty"` // somebody chose to have it typed: its age is not asked
	Edited   string `json:"edited,omitempty"`   // edited.ts of the version that was taken to be typed
	Changed  string `json:"changed,omitempty"`  // edited.ts of a later version, which came too late
	Deleted  bool   `json:"deleted,omitempty"`  // its deletion came too late

	Notification string `json:"tell,omitempty"` // what the thread is still to be told of it, in our words

	Wanted Mark   `json:"wanted,omitempty"` // the receipt that should be seen
	Shown  []Mark `json:"shown,omitempty"`  // the receipts that are there
}

// isComplete reports whether nothing is left to do for the entry.
func (e Entry) isComplete() bool {
	if e.State != StateSettled {
		return false
	}
	if e.Wanted == "" {
		return len(e.Shown) == 0
	}
	return len(e.Shown) == 1 && e.Shown[0] == e.Wanted
}

// ResendPromptKind says what is asked.
type ResendPromptKind string

// The kinds of questions.
const (
	ResendPromptInDoubt ResendPromptKind = "doubt" // may have been typed
	ResendPromptOffer   ResendPromptKind = "offer" // missed, or held for too long
)

// ResendPrompt is a choice that was put to the operator.
type ResendPrompt struct {
	Kind    ResendPromptKind `json:"kind"`
	Replies []string         `json:"replies"` // ts
	TS      string           `json:"ts,omitempty"`
	Choice  string           `json:"choice,omitempty"` // the action; empty: open
	By      string           `json:"by,omitempty"`     // member id; empty: nobody chose, see the lapsed choices
	At      time.Time        `json:"at,omitzero"`
	Omitted int              `json:"left,omitempty"` // older replies that it was about too, and that are no longer to be had
}

// clone is a copy that shares nothing that may be changed.
func (b Binding) clone() Binding {
	b.Replies = maps.Clone(b.Replies)
	b.Traces = maps.Clone(b.Traces)
	b.ResendPrompts = maps.Clone(b.ResendPrompts)
	b.PermissionRequests = maps.Clone(b.PermissionRequests)
	return b
}

// bindings keeps the bindings as files in dir, one a session.
type bindings struct {
	dir     string
	storage *storage // optional: nobody keeps account of what could not be stored
}

func (s bindings) path(id string) string { return filepath.Join(s.dir, id+".json") }

// load reads all bindings. A file that cannot be used is returned as an error of its own, and left alone.
func (s bindings) load() ([]Binding, []*sessions.UnreadableError, error) {
	removePartialFiles(s.dir)
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the bindings: %w", err)
	}
	var all []Binding
	var broken []*sessions.UnreadableError
	for _, n := range names {
		id, ok := strings.CutSuffix(n.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		b, err := s.read(id)
		if err != nil {
			broken = append(broken, &sessions.UnreadableError{Path: s.path(id), Err: err})
			continue
		}
		all = append(all, b)
	}
	return all, broken, nil
}

func (s bindings) read(id string) (Binding, error) {
	data, err := os.ReadFile(s.path(id))
	if err != nil {
		return Binding{}, err
	}
	var b Binding
	if err := json.Unmarshal(data, &b); err != nil {
		return Binding{}, err
	}
	switch {
	case b.Version < 1 || b.Version > bindingVersion:
		return Binding{}, fmt.Errorf("it has version %d, and this program reads up to %d", b.Version, bindingVersion)
	case b.ID != id:
		return Binding{}, fmt.Errorf("it is about another session, %q", b.ID)
	}
	return b, nil
}

func (s bindings) save(b Binding) error {
	b.Version = bindingVersion
	return s.storage.Save(s.path(b.ID), b)
}

func (s bindings) remove(id string) error {
	s.storage.Forget(s.path(id))
	err := os.Remove(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removePartialFiles removes what writes left behind whose process was killed. There is one bot, so nobody is at it.
func removePartialFiles(dir string) {
	halves, _ := filepath.Glob(filepath.Join(dir, ".*.json*")) // the pattern is well-formed
	for _, half := range halves {
		_ = os.Remove(half) // one that stays does no harm
	}
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

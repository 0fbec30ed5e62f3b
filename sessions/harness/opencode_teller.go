package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

var _ sessions.Teller = OpenCode{}

// openCodeSpot is how far OpenCode's answers were read. As a string it is JSON. Where its files are is kept, so that what an
// agent said last can be read when it has ended.
type openCodeSpot struct {
	Since  time.Time               `json:"since"` // of the session's listening: what was said before does not count
	DB     string                  `json:"db,omitempty"`
	Binary string                  `json:"binary,omitempty"`
	Log    string                  `json:"log,omitempty"`
	LogAt  int64                   `json:"logAt,omitzero"` // offset in the log
	Run    string                  `json:"run,omitempty"`  // the log's name for the process in the pane
	Read   map[string]openCodeMark `json:"read,omitempty"` // the session's conversations
	Turn   sessions.Turn           `json:"turn,omitzero"`
}

// openCodeMark is the last message that was read of a conversation.
type openCodeMark struct {
	At int64  `json:"at"` // milliseconds
	ID string `json:"id,omitempty"`
}

func openCodeSpotOf(talk sessions.Conversation, place string) (openCodeSpot, error) {
	s := openCodeSpot{Since: talk.Started}
	if place != "" {
		if err := json.Unmarshal([]byte(place), &s); err != nil || s.LogAt < 0 || s.Since.IsZero() {
			return openCodeSpot{}, fmt.Errorf("%q is no place in opencode's record", place)
		}
	}
	if s.Read == nil {
		s.Read = map[string]openCodeMark{}
	}
	return s, nil
}

func (s openCodeSpot) String() string {
	data, _ := json.Marshal(s) // strings, numbers and times always encode
	return string(data)
}

// Told reads the database when the log tells of a turn, or when nothing does. The log also tells which conversations the
// program in the pane went to. Steps come as they are completed.
func (o OpenCode) Told(ctx context.Context, talk sessions.Conversation, place string) (sessions.Told, error) {
	s, err := openCodeSpotOf(talk, place)
	if err != nil {
		return sessions.Told{}, err
	}
	if s.DB == "" || s.grown() == 0 {
		o.find(talk, &s)
	}
	if s.DB == "" {
		return sessions.Told{Next: place, Turn: s.Turn}, nil // it has not begun yet
	}
	told := sessions.Told{Watch: []string{s.Log}, Turn: s.Turn}
	if news, err := o.follow(ctx, talk, &s); err != nil {
		return sessions.Told{}, err
	} else if news {
		if err := s.hear(ctx, &told); err != nil {
			return sessions.Told{}, err
		}
	}
	told.Next = s.String()
	return told, nil
}

// grown is by how many bytes the log has become longer. One that became shorter was begun anew.
func (s *openCodeSpot) grown() int64 {
	info, err := os.Stat(s.Log)
	if err != nil {
		return 0
	}
	if info.Size() < s.LogAt {
		s.LogAt = 0
	}
	return info.Size() - s.LogAt
}

// find keeps where the files of the program in the pane are.
func (o OpenCode) find(talk sessions.Conversation, s *openCodeSpot) {
	if r, ok := o.run(talk.Session); ok {
		s.DB, s.Binary = r.file("opencode.db"), r.binary
		if log := r.log(); log != s.Log {
			s.Log, s.LogAt = log, 0
		}
	}
}

// follow reads the log on. It reports whether the database may have something new: the log is quiet, or says so.
func (o OpenCode) follow(ctx context.Context, talk sessions.Conversation, s *openCodeSpot) (news bool, err error) {
	quiet := s.grown() == 0
	id := talk.ID
	if !strings.HasPrefix(id, openCodePrefix) && (quiet || len(s.Read) == 0) {
		if id, err = o.Follow(ctx, talk); err != nil {
			return false, err
		}
	}
	if _, known := s.Read[id]; !known && strings.HasPrefix(id, openCodePrefix) {
		s.Read[id] = openCodeMark{At: s.Since.UnixMilli()}
		if s.LogAt, err = tailStart(s.Log, maxLog); err != nil {
			return false, fmt.Errorf("read opencode's log: %w", err)
		}
	}
	l := openCodeLog{run: s.Run, in: map[string]time.Time{}, kids: map[string]bool{}}
	for id := range s.Read {
		l.in[id] = time.Time{}
	}
	if s.LogAt, err = readLines(s.Log, s.LogAt, l.see); err != nil {
		return false, fmt.Errorf("read opencode's log: %w", err)
	}
	s.Run = l.run
	for id, at := range l.in {
		if _, known := s.Read[id]; !known {
			s.Read[id] = openCodeMark{At: latest(s.Since, at.Add(-openCodeBegins)).UnixMilli()}
		}
	}
	return l.news || quiet, nil
}

// openCodeBegins is how long before the log tells of its first turn a text may have begun a conversation.
const openCodeBegins = 5 * time.Second

// hear reads what is new in the session's conversations.
func (s *openCodeSpot) hear(ctx context.Context, told *sessions.Told) error {
	if len(s.Read) == 0 {
		return nil
	}
	rows, err := openCodeDB{file: s.DB, binary: s.Binary}.said(ctx, s.Read)
	if err != nil {
		return err
	}
	for id := range s.Read {
		var of []openCodeSaid
		for _, r := range rows {
			if r.Conversation == id {
				of = append(of, r)
			}
		}
		s.take(id, of, told)
	}
	slices.SortStableFunc(told.Said, func(a, b sessions.Said) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
	return nil
}

// take keeps what the messages of one conversation say, up to the first that is still being written. One that was never
// completed although another came after it is of a program that was killed.
func (s *openCodeSpot) take(id string, rows []openCodeSaid, told *sessions.Told) {
	last := -1 // the newest of the agent's
	for i, r := range rows {
		if r.Role == "assistant" {
			last = i
		}
	}
	taken := true
	for i, r := range rows {
		taken = taken && (r.Role != "assistant" || r.Completed > 0 || r.Error != "" || i < last)
		told.Turn = r.turn(told.Turn)
		if taken {
			told.Said = append(told.Said, r.said()...)
			s.Read[id], s.Turn = openCodeMark{At: r.At, ID: r.ID}, told.Turn
		}
	}
}

// openCodeAborted is the error of a turn that a person ended with Escape.
const openCodeAborted = "MessageAbortedError"

// goesOn reports that the turn does not end with this message.
func (m openCodeSaid) goesOn() bool {
	return m.Error == "" && (m.Completed == 0 || m.Finish == "tool-calls" || m.Finish == "unknown")
}

// turn is the turn after the message.
func (m openCodeSaid) turn(t sessions.Turn) sessions.Turn {
	switch at := time.UnixMilli(m.At); {
	case m.Role == "user":
		return t.Begin(at)
	case m.goesOn():
		return t.Goes(at)
	default:
		return t.End(time.UnixMilli(max(m.At, m.Completed)))
	}
}

// said are the text of a message, and the error that ended the turn with it. Summaries of compacted conversations are left out.
func (m openCodeSaid) said() []sessions.Said {
	if m.Role != "assistant" || m.Summary == "true" {
		return nil
	}
	var all []sessions.Said
	failed := m.Error != "" && m.Error != openCodeAborted
	at := time.UnixMilli(max(m.At, m.Completed))
	if text := strings.TrimSpace(m.Text); text != "" {
		all = append(all, sessions.Said{Text: text, Final: !failed && !m.goesOn(), At: at, Key: m.ID})
	}
	if failed {
		all = append(all, sessions.Said{Text: orDefault(m.Message, m.Error), Final: true, Failed: true, At: at, Key: m.ID + "!"})
	}
	return all
}

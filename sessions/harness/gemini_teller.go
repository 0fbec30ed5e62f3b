package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"the-loop/sessions"
)

var _ sessions.Teller = Gemini{}

// geminiSpot is how far Gemini's answers were read. As a string it is JSON.
type geminiSpot struct {
	Since time.Time        `json:"since"`            // what was said before does not count
	Now   string           `json:"now"`              // the conversation
	Dir   string           `json:"dir,omitempty"`    // of the working folder's log and conversations, once it is known
	Asked int64            `json:"asked,omitzero"`   // when the log was changed last, as of the last look, in nanoseconds
	Files map[string]int64 `json:"files,omitempty"`  // offsets in the files of conversations, by name
	Last  string           `json:"lastly,omitempty"` // the message that was told last: it may be written again with more in it
	Turn  sessions.Turn    `json:"turn,omitzero"`

	waits    *geminiWait // not stored: it is read again
	projects string      // not stored: it changes when there is a Dir
}

func geminiSpotOf(talk sessions.Conversation, place string) (geminiSpot, error) {
	s := geminiSpot{Since: talk.Started, Now: talk.ID}
	if place != "" {
		s = geminiSpot{}
		if err := json.Unmarshal([]byte(place), &s); err != nil || s.Since.IsZero() {
			return geminiSpot{}, fmt.Errorf("%q is no place in gemini's record", place)
		}
	}
	if !sessions.ValidConversation(s.Now) {
		return geminiSpot{}, fmt.Errorf("%q is no id of a conversation", s.Now)
	}
	if s.Files == nil {
		s.Files = map[string]int64{}
	}
	return s, nil
}

func (s geminiSpot) String() string {
	data, _ := json.Marshal(s) // strings, numbers and times always encode
	return string(data)
}

// Told reads the files of the conversation, and follows /clear by the log. A file does not tell whether a text ends the turn
// until the next one comes: when nothing follows it for a while and the screen waits for text, it did.
func (g Gemini) Told(ctx context.Context, talk sessions.Conversation, place string) (sessions.Told, error) {
	s, err := geminiSpotOf(talk, place)
	if err != nil {
		return sessions.Told{}, err
	}
	next, err := g.moved(ctx, talk, &s)
	if err != nil {
		return sessions.Told{}, err
	}
	var told sessions.Told
	if next != "" {
		if err := s.hear(&told); err != nil {
			return sessions.Told{}, err
		}
		s.settle(&told) // nothing comes there any more
		s.Now, s.Last, s.Turn = next, "", sessions.Turn{}
	}
	if err := s.attend(ctx, talk, &told); err != nil {
		return sessions.Told{}, err
	}
	told.Next, told.Watch = s.String(), s.watch()
	return told, nil
}

// logChanged is when the log of the folder was changed last; 0: there is none.
func (s geminiSpot) logChanged() int64 {
	info, err := os.Stat(filepath.Join(s.Dir, "logs.json"))
	if s.Dir == "" || err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// moved is the conversation that the pane has gone to; empty: it is where it was. It looks at the pane's process only when
// the log was changed, and for a while after: what /clear begins has no file at once.
func (g Gemini) moved(ctx context.Context, talk sessions.Conversation, s *geminiSpot) (string, error) {
	changed := s.logChanged()
	if s.Dir != "" && changed == s.Asked && time.Since(time.Unix(0, changed)) > 2*clearWithin && talk.ID == s.Now {
		return "", nil
	}
	r, err := g.run(talk)
	if err != nil {
		return "", err
	}
	if s.projects = r.projects; r.dir != "" {
		s.Dir = r.dir
	}
	s.Asked = changed
	now, err := g.Follow(ctx, talk)
	if err != nil || now == s.Now {
		return "", err
	}
	return now, nil
}

// files are those of the conversation, by name. One that is resumed has an empty one beside its own.
func (s geminiSpot) files() []string {
	if s.Dir == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(s.Dir, "chats", "session-*-"+s.Now[:min(8, len(s.Now))]+".jsonl")) // a glob that is well formed
	var ours []string
	for _, file := range files {
		var head struct {
			ID string `json:"sessionId"`
		}
		if firstLine(file, &head) == nil && head.ID == s.Now {
			ours = append(ours, file)
		}
	}
	return ours
}

func (s geminiSpot) watch() []string {
	if s.Dir == "" {
		return []string{s.projects}
	}
	return append([]string{filepath.Join(s.Dir, "logs.json")}, s.files()...)
}

// geminiWait is a text of which only what comes next tells whether it ended the turn.
type geminiWait struct {
	said sessions.Said
	file string
	end  int64 // offset after all that was read with it
}

// hear reads the conversation on.
func (s *geminiSpot) hear(told *sessions.Told) error {
	s.waits = nil
	for _, file := range s.files() {
		name := filepath.Base(file)
		l := geminiLines{last: s.Last, turnLines: turnLines{turn: s.Turn, at: s.Files[name], held: -1}}
		end, err := readLines(file, s.Files[name], l.see)
		if err != nil {
			return fmt.Errorf("read gemini's conversation: %w", err)
		}
		if s.Files[name] = end; l.held >= 0 {
			s.Files[name] = l.held
			s.waits = &geminiWait{said: l.waiting[0], file: name, end: end}
		}
		s.Last, s.Turn = l.last, l.turn
		for _, said := range l.said {
			s.tell(told, said)
		}
	}
	told.Turn = s.Turn
	return nil
}

func (s *geminiSpot) tell(told *sessions.Told, said sessions.Said) {
	if !said.At.Before(s.Since) {
		told.Said = append(told.Said, said)
	}
}

// settle takes the text that stands last: no turn runs any more.
func (s *geminiSpot) settle(told *sessions.Told) {
	if s.waits == nil {
		return
	}
	w := s.waits
	w.said.Final = true
	s.tell(told, w.said)
	s.Files[w.file], s.Last, s.Turn, s.waits = w.end, w.said.Key, s.Turn.End(w.said.At), nil
	told.Turn = s.Turn
}

// How long a text must stand last before the screen tells whether it ended the turn, which comes a little after what is
// written; how often the screen is looked at then, and for how long. It is looked at once more when that was in vain.
const (
	geminiSettles = 400 * time.Millisecond
	geminiLooks   = 100 * time.Millisecond
	geminiWaits   = 1500 * time.Millisecond
)

// attend reads to the end, and waits for the end of a turn whose last text stands there.
func (s *geminiSpot) attend(ctx context.Context, talk sessions.Conversation, told *sessions.Told) error {
	looking, cancel := context.WithTimeout(ctx, geminiWaits)
	defer cancel()
	for idle := 0; ; {
		before := s.String()
		if err := s.hear(told); err != nil {
			return err
		}
		switch {
		case s.waits == nil, talk.Idle == nil:
			return nil
		case s.String() != before:
			idle = 0
		case idle >= 2:
			s.settle(told)
			return nil
		}
		ok, err := s.idle(looking, talk)
		switch {
		case looking.Err() != nil:
			return nil // it is read again
		case err != nil:
			return err
		case ok:
			idle++
		default:
			idle = 0
		}
	}
}

// idle looks at the screen once the text that stands last has stood there long enough.
func (s *geminiSpot) idle(ctx context.Context, talk sessions.Conversation) (bool, error) {
	wait := time.NewTimer(max(geminiLooks, geminiSettles-time.Since(s.waits.said.At)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-wait.C:
		return talk.Idle(ctx)
	}
}

// geminiLines gathers what the lines of a conversation say. A message is written again when there is more in it: the tools that
// it called, once they are done.
type geminiLines struct {
	turnLines
	last string // the message that was told last
}

// geminiLine is a line of a conversation, as far as it tells of what the agent said.
type geminiLine struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"timestamp"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Tools   []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// geminiCancelled is written when Escape has ended a turn.
const geminiCancelled = "Request cancelled."

func (l *geminiLines) see(line []byte) {
	start := l.at
	l.at += int64(len(line)) + 1
	var m geminiLine
	if json.Unmarshal(line, &m) != nil || m.ID == "" {
		return
	}
	switch {
	case m.Type == "gemini":
		l.answer(m, start)
	case m.Type == "user" && bytes.Contains(m.Content, []byte(`"functionResponse"`)) && m.text() == "":
		l.finish(false) // a tool's result, which goes to the agent in the user's name
	case m.Type == "user":
		l.finish(true)
		l.turn = l.turn.Begin(m.At)
	case m.Type == "error" && len(l.waiting) > 0: // of a command: the text that stands there has ended the turn
		l.turn = l.turn.End(m.At)
		l.finish(true)
	case m.Type == "error" && l.turn.Working:
		l.last, l.turn = m.ID, l.turn.End(m.At)
		l.said = append(l.said, sessions.Said{Text: m.text(), Final: true, Failed: true, At: m.At, Key: m.ID})
	case m.Type == "info" && m.text() == geminiCancelled:
		l.finish(true)
		l.turn = l.turn.End(m.At)
	}
}

// answer takes a message of the agent's.
func (l *geminiLines) answer(m geminiLine, start int64) {
	l.turn = l.turn.Goes(m.At)
	again := len(l.waiting) > 0 && l.waiting[0].Key == m.ID
	if !again {
		l.finish(false)
	}
	if !again && m.ID != l.last {
		l.wait(sessions.Said{Text: m.text(), At: m.At, Key: m.ID}, start)
	}
	if len(m.Tools) > 0 {
		l.finish(false)
	}
}

// finish takes the text that waits.
func (l *geminiLines) finish(final bool) {
	if len(l.waiting) > 0 {
		l.last = l.waiting[0].Key
	}
	l.settle(final)
}

// text is what the message says: a string, or parts.
func (m geminiLine) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return strings.TrimSpace(text)
	}
	var parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		if !p.Thought {
			text += p.Text
		}
	}
	return strings.TrimSpace(text)
}

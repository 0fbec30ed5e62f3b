package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"the-loop/sessions"
)

var _ sessions.Teller = Codex{}

// Told reads the file of the conversation, and follows /new, /clear and /resume by the files that the pane's process has
// open. It looks at the processes only when something was said since: that takes milliseconds.
func (c Codex) Told(ctx context.Context, talk sessions.Conversation, place string) (sessions.Told, error) {
	s, err := spotOf(talk, place)
	if err != nil {
		return sessions.Told{}, err
	}
	var told sessions.Told
	if s.File != "" {
		err = hearCodex(&s, &told)
	}
	if at := lastText(s.File); err == nil && (s.File == "" || at != s.Reports || time.Now().Unix()-at < codexSettles) {
		s.Reports = at
		err = c.moves(ctx, talk, &s, &told)
	}
	if err != nil {
		return sessions.Told{}, err
	}
	if s.Talk = talk.ID; s.File != "" {
		told.Watch = []string{historyPath(s.File), s.File}
	}
	told.Next, told.Turn = s.String(), s.Turn
	return told, nil
}

// codexSettles is for how many seconds after a text the file of its conversation may not be open yet.
const codexSettles = 3

// historyPath is the history beside the file of a conversation, which lies in sessions/YEAR/MONTH/DAY.
func historyPath(file string) string {
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "history.jsonl")
}

// lastText is when something was said last, in seconds since 1970; 0: that is not known.
func lastText(file string) int64 {
	info, err := os.Stat(historyPath(file))
	if err != nil {
		return 0
	}
	return info.ModTime().Unix()
}

// moves goes on in the conversation that the pane is in now, when that is another one.
func (c Codex) moves(ctx context.Context, talk sessions.Conversation, s *spot, told *sessions.Told) error {
	r, err := c.run(talk.Session)
	if err != nil {
		return err
	}
	told.Watch = []string{r.history()}
	now, err := c.Follow(ctx, talk)
	if err != nil || now == "" || now == s.Now && s.File != "" {
		return err
	}
	if err := r.enter(s, now); err != nil || s.File == "" {
		return err
	}
	return hearCodex(s, told)
}

// enter goes on in another conversation. Of one that began before the last was read, what was said until now is old.
func (r codexRun) enter(s *spot, id string) error {
	file := r.files[id]
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read codex's conversation: %w", err)
	}
	began := rolloutMeta(file).Timestamp
	if s.File != "" && began.Before(rolloutMeta(s.File).Timestamp) {
		s.At = info.Size()
	} else {
		s.At = 0
	}
	s.Now, s.File, s.Turn = id, file, sessions.Turn{}
	return nil
}

func hearCodex(s *spot, told *sessions.Told) error {
	l := codexLines{id: s.Now, turnLines: turnLines{turn: s.Turn, at: s.At, held: -1}}
	end, err := readLines(s.File, s.At, l.see)
	if err != nil {
		return fmt.Errorf("read codex's conversation: %w", err)
	}
	s.Turn = l.turn
	if s.At = end; l.held >= 0 {
		s.At = l.held
	}
	for _, said := range l.said {
		if !said.At.Before(s.Since) {
			told.Said = append(told.Said, said)
		}
	}
	return nil
}

// codexLines gathers what the lines of a conversation say. Whether a text ends the turn is known by the line after it.
type codexLines struct {
	turnLines
	id string
}

// codexEntry is a line of a conversation, as far as it tells of what the agent said.
type codexEntry struct {
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
	Payload   struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"payload"`
}

func (l *codexLines) see(line []byte) {
	start := l.at
	l.at += int64(len(line)) + 1
	var e codexEntry
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch p := e.Payload; {
	case e.Type == "response_item" && p.Type == "message" && p.Role == "assistant":
		l.settle(false)
		text := ""
		for _, c := range p.Content {
			if c.Type == "output_text" {
				text += c.Text
			}
		}
		l.wait(sessions.Said{Text: text, At: e.Timestamp, Key: fmt.Sprintf("%s@%d", l.id, start)}, start)
	case e.Type == "response_item" && p.Type != "reasoning" && p.Role == "":
		l.settle(false) // a tool
	case e.Type == "event_msg" && p.Type == "task_started":
		l.turn = l.turn.Begin(e.Timestamp)
	case e.Type == "event_msg" && (p.Type == "task_complete" || p.Type == "turn_aborted"):
		l.turn = l.turn.End(e.Timestamp)
		l.settle(true)
		if p.Error != nil && p.Error.Message != "" {
			l.said = append(l.said, sessions.Said{Text: p.Error.Message, Final: true, Failed: true, At: e.Timestamp,
				Key: fmt.Sprintf("%s@%d", l.id, start)})
		}
	}
}

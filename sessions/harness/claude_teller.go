package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"the-loop/sessions"
)

var _ sessions.Teller = Claude{}

// Told reads the transcript, and follows /clear and /resume through the reports. What subagents say is left out.
func (c Claude) Told(_ context.Context, talk sessions.Conversation, place string) (sessions.Told, error) {
	s, err := spotOf(talk, place)
	if err != nil {
		return sessions.Told{}, err
	}
	reports, end, err := c.reports(talk, s.Reports)
	if err != nil {
		return sessions.Told{}, err
	}
	e := &claudeEar{c: c, talk: talk, spot: s}
	var quiet time.Time
	for _, r := range reports {
		if claudeRests(r) && r.Conversation == e.spot.Now {
			quiet = r.At
		}
		if r.Event != EventSessionStart || r.Conversation == e.spot.Now || !sessions.ValidConversation(r.Conversation) {
			continue
		}
		if place != "" || !r.At.Before(s.Since) {
			err = errors.Join(err, e.hear())
		}
		e.enter(r.Conversation, latest(s.Since, r.At))
	}
	e.spot.Reports = end
	if err = errors.Join(err, e.hear(), e.changed()); err != nil {
		return sessions.Told{}, err
	}
	if e.spot.Turn.Since.Before(quiet) {
		e.spot.Turn = e.spot.Turn.End(quiet)
	}
	e.told.Next, e.told.Turn = e.spot.String(), e.spot.Turn
	return e.told, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// claudeEar reads what an agent said, from a spot on.
type claudeEar struct {
	c    Claude
	talk sessions.Conversation
	spot spot
	told sessions.Told
}

// enter goes on in another conversation. It may be an old one: what was said in it before does not count.
func (e *claudeEar) enter(id string, since time.Time) {
	e.spot.Now, e.spot.At, e.spot.File, e.spot.Since, e.spot.Turn = id, 0, "", since, sessions.Turn{}
}

// changed goes on in the session's recorded conversation, when that is another one than before and nothing was reported
// of it: it is a fresh one, and there are no hooks.
func (e *claudeEar) changed() error {
	if e.talk.ID == e.spot.Talk {
		return nil
	}
	e.spot.Talk = e.talk.ID
	known := false
	err := e.c.facts(e.talk, func(facts *reportFacts, _ int64) { _, known = facts.Talks[e.talk.ID] })
	if err != nil || e.talk.ID == e.spot.Now || known {
		return err
	}
	e.enter(e.talk.ID, time.Time{})
	return e.hear()
}

// hear reads to the end of the transcript of one conversation.
func (e *claudeEar) hear() error {
	path, err := e.file()
	if err != nil {
		return err
	}
	l := claudeLines{turnLines{turn: e.spot.Turn, at: e.spot.At, held: -1}}
	end, err := readLines(path, e.spot.At, l.see)
	if err != nil {
		return fmt.Errorf("read the transcript: %w", err)
	}
	e.spot.Turn = l.turn
	if e.spot.At = end; l.held >= 0 {
		e.spot.At = l.held
	}
	for _, s := range l.said {
		if !s.At.Before(e.spot.Since) {
			e.told.Said = append(e.told.Said, s)
		}
	}
	e.told.Watch = []string{path}
	if report, err := ReportPath(e.c.Reports, e.talk.Session); err == nil && len(e.c.Hook) > 0 {
		e.told.Watch = append(e.told.Watch, report)
	}
	return nil
}

// file is where the conversation is written. It is kept once it is there.
func (e *claudeEar) file() (string, error) {
	if e.spot.File != "" {
		return e.spot.File, nil
	}
	path, err := e.c.transcript(e.talk, e.spot.Now)
	if err != nil {
		return "", err
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		e.spot.File = path
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read the transcript: %w", err)
	}
	return path, nil
}

// claudeLines gathers what the lines of a transcript say. A text whose line does not tell yet whether it ends the turn (a
// stop reason that is null, as older versions write it) waits for the next one.
type claudeLines struct{ turnLines }

func (l *claudeLines) see(line []byte) {
	start := l.at
	l.at += int64(len(line)) + 1
	var a claudeAnswer
	if json.Unmarshal(line, &a) != nil || a.Sidechain {
		return
	}
	l.turn = a.turn(l.turn)
	switch {
	case a.Type == "assistant" && a.Message.Model == claudeSynthetic && !a.Error:
	case a.Type == "assistant":
		l.answer(a, start)
	case a.Type == "user":
		l.settle(!a.isResult())
	case a.Type == "system" && a.Subtype == "turn_duration":
		l.settle(true)
	}
}

func (l *claudeLines) answer(a claudeAnswer, start int64) {
	l.settle(false)
	text := blocksText(a.Message.Content)
	if text == "" {
		return
	}
	said := sessions.Said{Text: text, Failed: a.Error, At: a.Timestamp, Key: orDefault(a.UUID, fmt.Sprintf("%s@%d", a.Session, start))}
	if a.Message.Stop == nil {
		l.wait(said, start)
		return
	}
	said.Final = !a.goesOn()
	l.said = append(l.said, said)
}

// claudeSynthetic is the model of what Claude Code says itself: errors, and notes that nobody needs to read.
const claudeSynthetic = "<synthetic>"

// claudeAnswer is a line of a transcript, as far as it tells of what the agent said.
type claudeAnswer struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"`
	Sidechain bool      `json:"isSidechain"`
	Error     bool      `json:"isApiErrorMessage"`
	Meta      bool      `json:"isMeta"`
	Compact   bool      `json:"isCompactSummary"`
	UUID      string    `json:"uuid"`
	Session   string    `json:"sessionId"`
	Timestamp time.Time `json:"timestamp"`
	Message   struct {
		Model   string          `json:"model"`
		Stop    *string         `json:"stop_reason"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// isResult reports a tool's result, which goes to the agent in the user's name.
func (a claudeAnswer) isResult() bool {
	var blocks []struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(a.Message.Content, &blocks) == nil && len(blocks) > 0 && blocks[0].Type == "tool_result"
}

package core

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// staleDrafts are the texts that agents were proved to have taken last. Claude Code sometimes takes one that is submitted when
// a turn just ends and shows it in its input box as well (2.1.197), where it looks like somebody's draft and would hold up
// everything that follows.
type staleDrafts struct {
	mu        sync.Mutex // guards the field that follows
	bySession map[string]acceptedText
}

// taken is a text that an agent took, as far as it can be known again.
type acceptedText struct {
	sum   sessions.Sum
	lines int // line feeds in it
	at    time.Time
}

// A copy is there at once; later on, equal words are somebody's own.
const (
	staleDraftMaxAge = time.Minute
	staleDraftTries  = 8 // one a line
	staleDraftPause  = 50 * time.Millisecond
)

func (l *staleDrafts) remember(id, text, normal string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bySession[id] = acceptedText{sum: sessions.Fingerprint(screenForm(normal)), lines: strings.Count(text, "\n"), at: now}
}

// isCopy reports whether what stands in a box, normal its words, is a copy of what the agent took last.
func (l *staleDrafts) isCopy(id string, v sessions.View, normal string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.bySession[id]
	if !ok || now.Sub(t.at) > staleDraftMaxAge {
		return false
	}
	return v.FoldedLines > 0 && v.FoldedLines == t.lines || sessions.Fingerprint(screenForm(normal)) == t.sum
}

// screenForm is what a screen shows of a text for certain: lines wrap, and terminals drop marks and joiners that they cannot
// place.
func screenForm(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.In(r, unicode.M, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFD.String(text))
}

// clearStaleDraft takes the copy of a text that the agent has taken out of its box, and reports whether the box is empty then.
func (s *submission) clearStaleDraft(ctx context.Context, v sessions.View) (bool, error) {
	if s.capabilities.ClearLine == "" || !s.typist.staleDrafts.isCopy(s.rec.ID, v, s.capabilities.Normalized(v.Box), s.typist.now()) {
		return false, nil
	}
	for range staleDraftTries {
		if err := s.typist.panes.terminalOf(s.rec).Press(ctx, s.rec.Target(), s.capabilities.ClearLine); err != nil {
			return false, sessions.WrapTerminalError(s.rec, err)
		}
		if !loop.Sleep(ctx, staleDraftPause) {
			return false, ctx.Err()
		}
		now, err := s.typist.agents.readScreen(ctx, s.harness, s.rec)
		if err != nil {
			return false, err
		}
		if now.State != sessions.ViewReady && now.State != sessions.ViewWorking || now.Box == "" {
			return now.Box == "" && (now.State == sessions.ViewReady || now.State == sessions.ViewWorking), nil
		}
	}
	return false, nil
}

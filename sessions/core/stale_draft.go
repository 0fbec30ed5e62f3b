package core

import (
	"context"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// staleDrafts are the texts that agents accepted last. Claude Code sometimes accepts a text that is submitted when a turn just
// ends and shows it in its input box as well (2.1.197). There it looks like somebody's draft and would hold everything that
// follows.
type staleDrafts struct {
	mu        sync.Mutex // guards the field that follows
	bySession map[string]sessions.AcceptedText
}

// How a stale draft is cleared.
const (
	staleDraftTries = 8 // one a line
	staleDraftPause = 50 * time.Millisecond
)

func (l *staleDrafts) remember(id string, text sessions.AcceptedText) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bySession[id] = text
}

// isCopy reports whether the text in a session's box, normal its words, is a copy of the one that its agent accepted last.
func (l *staleDrafts) isCopy(id string, v sessions.View, normal string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.bySession[id]
	return ok && t.IsCopy(v, normal, now)
}

// clearStaleDraft removes the copy of an accepted text from the agent's input box, and reports whether the box is empty then.
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

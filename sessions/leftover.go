package sessions

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// leftovers are the texts that agents were proved to have taken last. Claude Code sometimes takes one that is submitted when
// a turn just ends and shows it in its input box as well (2.1.197), where it looks like somebody's draft and would hold up
// everything that follows.
type leftovers struct {
	mu  sync.Mutex // guards the field that follows
	all map[string]taken
}

// taken is a text that an agent took, as far as it can be known again.
type taken struct {
	sum   Sum
	lines int // line feeds in it
	at    time.Time
}

// A copy is there at once; later on, equal words are somebody's own.
const (
	leftoverAge   = time.Minute
	leftoverTries = 8 // one a line
	leftoverPause = 50 * time.Millisecond
)

func (l *leftovers) put(id, text, normal string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[id] = taken{sum: Fingerprint(onScreen(normal)), lines: strings.Count(text, "\n"), at: now}
}

// is reports whether what stands in a box, normal its words, is a copy of what the agent took last.
func (l *leftovers) is(id string, v View, normal string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.all[id]
	if !ok || now.Sub(t.at) > leftoverAge {
		return false
	}
	return v.Folded > 0 && v.Folded == t.lines || Fingerprint(onScreen(normal)) == t.sum
}

// onScreen is what a screen shows of a text for certain: lines wrap, and terminals drop marks and joiners that they cannot
// place.
func onScreen(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.In(r, unicode.M, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFD.String(text))
}

// clear takes the copy of a text that the agent has taken out of its box, and reports whether the box is empty then.
func (s *speech) clear(ctx context.Context, v View) (bool, error) {
	if s.traits.Clear == "" || !s.c.left.is(s.rec.ID, v, normal(s.harness, v.Box), s.c.o.Now()) {
		return false, nil
	}
	for range leftoverTries {
		if err := s.c.terminal(s.rec).Press(ctx, s.rec.Target(), s.traits.Clear); err != nil {
			return false, s.c.typingFailed(s.rec, err)
		}
		timer := time.NewTimer(leftoverPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
		now, err := s.c.view(ctx, s.harness, s.rec)
		if err != nil {
			return false, err
		}
		if now.State != ViewReady && now.State != ViewWorking || now.Box == "" {
			return now.Box == "" && (now.State == ViewReady || now.State == ViewWorking), nil
		}
	}
	return false, nil
}

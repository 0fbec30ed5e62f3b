package sessions

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
)

// AttendRequest waits for the end of an ask.
type AttendRequest struct {
	Ref   Ref
	ID    string // of the session
	Token string
	Mark  string // [PermissionRequest.DialogExcerpt]
	Open  func() // called as soon as the ask is known to be open
}

// markRunes is how much of what is asked is looked for on the screen.
const markRunes = 40

// Mark is what the agent's dialog shows of this ask and of few others. It may be stored.
func (a Ask) Mark() string {
	mark := a.Command
	if mark == "" && a.File != "" {
		mark = filepath.Base(a.File)
	}
	runes := []rune(squeezed(mark))
	return string(runes[:min(len(runes), markRunes)])
}

// squeezed is text without white space, since dialogs wrap.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// openAsks are the asks that are attended, by token.
type openAsks struct {
	mu  sync.Mutex // guards the field that follows
	all map[string]*openAsk
}

type openAsk struct {
	session string
	since   time.Time
	shown   bool // it was seen on its agent's screen: only then that can tell that it is over
}

// askDraws is how long an agent may take to show what its hook reports: until then nothing is typed, since the dialog would
// take the submit key for an answer.
const askDraws = 10 * time.Second

func (o *openAsks) put(token, session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[token] = &openAsk{session: session, since: time.Now()}
}

func (o *openAsks) remove(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, token)
}

func (o *openAsks) saw(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.all[token]; a != nil {
		a.shown = true
	}
}

func (o *openAsks) shown(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.all[token]
	return a != nil && a.shown
}

// unseen reports whether the session's agent asks something that its screen may be just about to show.
func (o *openAsks) unseen(session string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.all {
		if a.session == session && !a.shown && time.Since(a.since) < askDraws {
			return true
		}
	}
	return false
}

// WaitResolved waits until the ask is over: answered here or in the terminal, given up by the agent, or ended with it. When
// Open was not called, it was over before. The error is ctx's, or says why the ask cannot be reached.
func (c *Core) WaitResolved(ctx context.Context, q AttendRequest) error {
	if c.o.Reports == nil {
		return fmt.Errorf("attend an ask: %w", errors.ErrUnsupported)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	attending, stop := context.WithCancel(ctx)
	defer stop()
	defer c.asks.remove(q.Token)
	return c.o.Reports.Attend(ctx, q.ID, q.Token, func() {
		c.asks.put(q.Token, q.ID)
		q.Open()
		looking.Go(func() { c.lookAfter(attending, q) })
	})
}

// How often the screen is looked at while an ask is open: by how long it has been.
const (
	askLookFirst = 250 * time.Millisecond // in the first seconds
	askLookSoon  = time.Second            // in the first minutes
	askLookLater = 3 * time.Second
)

func askLookEvery(open time.Duration) time.Duration {
	switch {
	case open < 5*time.Second:
		return askLookFirst
	case open < 5*time.Minute:
		return askLookSoon
	}
	return askLookLater
}

// lookAfter sees on the screen when an ask was answered there, and lets its hook go then. An agent need not do that itself:
// Claude Code goes on with a yes and leaves the hook waiting (2.1.197).
func (c *Core) lookAfter(ctx context.Context, q AttendRequest) {
	began, gone := time.Now(), 0
	for {
		timer := time.NewTimer(askLookEvery(time.Since(began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		switch c.askSeen(ctx, q) {
		case seenThere:
			gone = 0
			c.asks.saw(q.Token)
		case seenGone:
			if gone++; gone > 1 && c.asks.shown(q.Token) { // one look may fall between two pictures
				_ = c.o.Reports.Answer(ctx, q.ID, Answer{Token: q.Token, Verdict: VerdictLeave}) // or it ended by itself
				return
			}
		}
	}
}

// seen is what the screen says of an ask.
type seen int

const (
	seenNothing seen = iota
	seenThere        // the dialog of this ask is open
	seenGone         // it is not
)

// askSeen looks at the screen. One that cannot be read says nothing, and neither does one on which something lies over the
// dialog.
func (c *Core) askSeen(ctx context.Context, q AttendRequest) seen {
	rec, err := c.recorded(ctx, q.Ref)
	if err != nil || rec.ID != q.ID {
		return seenNothing
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return seenNothing
	}
	view, err := c.view(ctx, h, rec)
	switch {
	case err != nil:
		return seenNothing
	case view.State == ViewReady, view.State == ViewWorking:
		return seenGone
	case view.State != ViewDialog:
		return seenNothing
	case strings.Contains(squeezed(strings.Join(view.Lines, "")), q.Mark):
		return seenThere
	}
	return seenGone // another dialog is open: they are shown one after the other
}

// AnswerRequest answers an ask.
type AnswerRequest struct {
	Ref  Ref
	ID   string // of the session
	Mark string // [PermissionRequest.DialogExcerpt]
	Answer
}

// answerLook lies between two looks at a screen that does not ask any more.
const answerLook = 150 * time.Millisecond

// AnswerPermission gives an ask its one answer, through the hook that waits for it: no key is pressed. [ErrAskOver] when it was not
// taken: somebody answered before, here or in the terminal, or the agent asks no more. [ErrInDoubt] when it may have been.
// An answer that somebody gives in the terminal within the same moment, some milliseconds, is the one that counts, and
// nothing tells of it.
func (c *Core) AnswerPermission(ctx context.Context, q AnswerRequest) error {
	if c.o.Reports == nil {
		return fmt.Errorf("answer an ask: %w", errors.ErrUnsupported)
	}
	look := AttendRequest{Ref: q.Ref, ID: q.ID, Token: q.Token, Mark: q.Mark}
	for looks := 0; c.asks.shown(q.Token) && c.askSeen(ctx, look) == seenGone; looks++ {
		if looks > 0 {
			_ = c.o.Reports.Answer(ctx, q.ID, Answer{Token: q.Token, Verdict: VerdictLeave}) // or it ended by itself
			return ErrAskOver
		}
		timer := time.NewTimer(answerLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return c.o.Reports.Answer(ctx, q.ID, q.Answer)
}

package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
)

// SayRequest asks for one text to be typed into a session and submitted.
type SayRequest struct {
	Ref     Ref
	ID      string // the session that is meant; empty: whichever has the ref now
	Text    string // as written; it is cleaned here
	Speaker string // goes in front of a text that the agent would take as a command, as a [DisplayName]
	Raw     bool   // the text is a command of the agent's own, sent on purpose: it must begin with "/"
	// Intend is called under the session's lock, after every check and before the first byte is typed. When it fails,
	// nothing is typed. May be nil.
	Intend func(ctx context.Context, i Intent) error
}

// Intent is what has to be known, after a crash, to find out whether a text arrived. It may be stored: it holds no text.
type Intent struct {
	Sum          Sum    `json:"sum"`
	Conversation string `json:"conversation,omitempty"`
	Place        string `json:"place,omitempty"` // see [Witness]
}

// Receipt is how well a text is known to have arrived.
type Receipt string

// The receipts of a text that was typed.
const (
	ReceiptTyped    Receipt = "typed"    // it went into the pane with its submit key; the harness gives no proof
	ReceiptAccepted Receipt = "accepted" // the agent's own record shows it
)

// submits is how often the submit key is repeated for a text that stays in the box.
const submits = 3

// lookEvery is the first pause between two looks for evidence; it doubles up to [lookEveryMax].
const (
	lookEvery    = 5 * time.Millisecond
	lookEveryMax = 100 * time.Millisecond
)

// Submit types one text into the session's pane, bracketed and whole, submits it, and waits for the proof that the agent
// took it where the harness gives any. Errors:
//   - a [*Refusal]: nothing was typed, and trying again changes nothing until its remedy was followed;
//   - a [*HeldError], a [*LockedError], or [ErrSilent] alone: nothing was typed, try again later;
//   - [ErrInDoubt]: it may have been typed, and must not be typed again unasked;
//   - any other: nothing was typed.
func (c *Core) Submit(ctx context.Context, q SayRequest) (Receipt, error) {
	s := &speech{c: c, q: q}
	receipt, err := s.run(ctx)
	c.followed(ctx, s.harness, s.rec)
	if err != nil {
		return "", err
	}
	c.emit(ctx, EventSaid, slog.LevelInfo, s.rec, map[string]any{"receipt": receipt, "bytes": len(s.text)})
	return receipt, nil
}

// speech is one text on its way into one pane.
type speech struct {
	c       *Core
	q       SayRequest
	rec     Record
	harness Harness
	traits  Traits
	text    string
	intent  Intent
}

// compose reads who is spoken to, and makes of what was written what goes into the pane.
func (s *speech) compose(ctx context.Context, id string) (err error) {
	if s.rec, err = s.c.running(ctx, s.q.Ref, id); err != nil {
		return err
	}
	if s.harness, err = s.c.o.Harnesses(s.rec.Definition.Harness); err != nil {
		return &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	if s.traits, err = s.keys(ctx); err != nil {
		return err
	}
	if s.text, err = wording(s.q, s.traits); err != nil {
		return err
	}
	if q, ok := s.harness.(Quoter); ok && !s.q.Raw {
		s.text = q.Quote(s.text)
	}
	s.text = trailed(s.text, s.q.Raw, s.traits)
	s.intent = Intent{Sum: Fingerprint(normal(s.harness, s.text)), Conversation: s.rec.Conversation}
	return nil
}

// keys are the harness's traits, with the submit key of this session.
func (s *speech) keys(ctx context.Context) (Traits, error) {
	t := s.harness.Traits()
	k, ok := s.harness.(Keyed)
	if !ok {
		return t, nil
	}
	key, delay, err := k.SubmitKey(ctx, s.rec.Talk())
	if err != nil {
		return t, fmt.Errorf("find the agent's submit key: %w", err)
	}
	if key != "" {
		t.Submit, t.SubmitDelay = key, delay
	}
	return t, nil
}

// running returns the record of a session that should be running, and is the one that is meant.
func (c *Core) running(ctx context.Context, ref Ref, id string) (Record, error) {
	rec, err := c.recorded(ctx, ref)
	switch {
	case err != nil:
		return Record{}, err
	case id != "" && rec.ID != id:
		return Record{}, &Refusal{Cause: ErrReplaced, Remedy: "use the thread of the new one",
			What: fmt.Sprintf("the %s that this was meant for was deleted, and another one has its name", ref)}
	case rec.down():
		return Record{}, notRunning(ref)
	}
	return rec, nil
}

// wording is the text that goes into the pane.
func wording(q SayRequest, t Traits) (string, error) {
	text := Clean(q.Text)
	bare := strings.TrimLeftFunc(text, unicode.IsSpace)
	switch {
	case bare == "":
		return "", &Refusal{Cause: ErrEmptyText, What: "there is no text in it that could be typed"}
	case q.Raw && (!strings.HasPrefix(bare, "/") || strings.Contains(bare, "\n")):
		return "", &Refusal{Cause: ErrRefused, What: "a raw command is one line that begins with /"}
	case q.Raw:
		return bare, nil
	case isCommand(bare, t):
		return introduced(q.Speaker, bare), nil
	}
	return text, nil
}

// introduced is a text with who says it in front. It begins with a word that no agent takes for a command, and the name,
// which holds no quotation mark, cannot be taken for a part of the text.
func introduced(speaker, text string) string {
	name := DisplayName(speaker)
	if _, err := ParseRef(speaker); err == nil {
		name = speaker
	}
	if name == "" {
		name = "operator"
	}
	return `From "` + name + `": ` + text
}

// trailed is the text with what has to follow it. A command without arguments needs nothing.
func trailed(text string, raw bool, t Traits) string {
	if raw && len(strings.Fields(text)) == 1 {
		return text
	}
	return text + t.Trailer
}

func isCommand(bare string, t Traits) bool {
	for _, p := range t.CommandPrefixes {
		if strings.HasPrefix(bare, p) {
			return true
		}
	}
	return slices.Contains(t.CommandWords, strings.TrimSpace(bare))
}

func (s *speech) run(ctx context.Context) (Receipt, error) {
	id := s.q.ID
	if id == "" {
		rec, err := s.c.running(ctx, s.q.Ref, "")
		if err != nil {
			return "", err
		}
		id = rec.ID
	}
	if err := s.typeIn(ctx, id); err != nil {
		return "", err
	}
	return s.receipt(ctx)
}

// receipt waits for the proof of a text that was typed.
func (s *speech) receipt(ctx context.Context) (Receipt, error) {
	w, ok := s.harness.(Witness)
	if !ok || s.q.Raw && s.traits.CommandsUnseen {
		return ReceiptTyped, nil
	}
	return s.prove(ctx, w)
}

// typeIn looks, has the intent written down, and types: all under the session's lock, so that nobody else's text or a
// restart comes in between. A submit that is still to come is part of it.
func (s *speech) typeIn(ctx context.Context, id string) error {
	release, err := s.c.lockID(ctx, id, "say")
	if err != nil {
		return err
	}
	defer release()
	return s.typeLocked(ctx, id)
}

// typeLocked is typeIn for who has the session's lock.
func (s *speech) typeLocked(ctx context.Context, id string) error {
	if err := s.compose(ctx, id); err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	if err := s.place(ctx); err != nil {
		return err
	}
	err := s.c.terminal(s.rec).Deliver(ctx, Delivery{Target: s.rec.Target(), Text: s.text,
		Submit: s.traits.Submit, Delay: s.traits.SubmitDelay, Commit: s.commit(ctx)})
	if err != nil {
		return s.c.typingFailed(s.rec, err)
	}
	s.awaitSubmit(ctx)
	return nil
}

// look holds the text back while the screen would not take it as text. The last screen of an agent that has ended says
// nothing: there is nobody to wait for.
func (s *speech) look(ctx context.Context) error {
	view, err := s.c.view(ctx, s.harness, s.rec)
	if err != nil {
		return err
	}
	if view.Box != "" && (view.State == ViewReady || view.State == ViewWorking) {
		if cleared, err := s.clear(ctx, view); err != nil {
			return err
		} else if cleared {
			view.Box = ""
		}
	}
	var held *HeldError
	switch {
	case view.State == ViewStarting, view.State == ViewDialog, view.State == ViewMenu,
		view.State == ViewWorking && s.traits.QueuesUnseen:
		held = &HeldError{State: view.State, Lines: view.Lines}
	case s.c.asks.unseen(s.rec.ID):
		held = &HeldError{State: ViewDialog}
	case view.Box != "":
		held = &HeldError{State: view.State, Draft: true}
	default:
		return nil
	}
	if err := s.c.lives(ctx, s.rec); err != nil {
		return err
	}
	return held
}

// lives errs when the agent has ended: the last screen of one that has says nothing.
func (c *Core) lives(ctx context.Context, rec Record) error {
	panes, err := c.look(ctx, rec)
	if err != nil {
		return c.typingFailed(rec, fmt.Errorf("look whether the agent lives: %w", err))
	}
	if p, ok := paneOf(panes, rec.ID); ok && p.Dead {
		return c.typingFailed(rec, ErrPaneDead)
	}
	return nil
}

// view reads the pane's screen, when the harness can be read.
func (c *Core) view(ctx context.Context, h Harness, rec Record) (View, error) {
	l, ok := h.(Looker)
	if !ok {
		return View{State: ViewUnknown}, nil
	}
	screen, err := c.terminal(rec).Capture(ctx, rec.Target())
	if err != nil {
		return View{}, c.typingFailed(rec, fmt.Errorf("look at the pane: %w", err))
	}
	return l.Look(screen), nil
}

// place takes the place from which evidence counts.
func (s *speech) place(ctx context.Context) (err error) {
	w, ok := s.harness.(Witness)
	if !ok {
		return nil
	}
	if s.intent.Place, err = w.Place(ctx, s.rec.Talk()); err != nil {
		return fmt.Errorf("read the agent's record: %w", err)
	}
	return nil
}

// commit has the intent written down.
func (s *speech) commit(ctx context.Context) func() error {
	if s.q.Intend == nil {
		return nil
	}
	return func() error {
		if err := s.q.Intend(ctx, s.intent); err != nil {
			return fmt.Errorf("write down what is about to be typed: %w", err)
		}
		return nil
	}
}

// awaitSubmit stays until the tmux server has pasted the submit key. When ctx ends first, the key still comes.
func (s *speech) awaitSubmit(ctx context.Context) {
	if s.traits.SubmitDelay <= 0 {
		return
	}
	timer := time.NewTimer(s.traits.SubmitDelay + lookEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// typingFailed turns what tmux said into the core's words.
func (c *Core) typingFailed(rec Record, err error) error {
	switch {
	case errors.Is(err, ErrPaneDead):
		return &Refusal{Cause: fmt.Errorf("%w: %w", ErrNotRunning, err), What: fmt.Sprintf("the agent of %s has ended", rec.Ref),
			Remedy: rec.Ref.StartCommand()}
	case errors.Is(err, ErrPaneGone):
		return &Refusal{Cause: fmt.Errorf("%w: %w", ErrNotRunning, err), What: fmt.Sprintf("%s is not running", rec.Ref),
			Remedy: rec.Ref.StartCommand()}
	}
	return fmt.Errorf("%s: %w", rec.Ref, err)
}

// prove waits for the agent's record to show the text. While it does not and the text stands in the box, the submit key
// is given again: the key, never the text.
func (s *speech) prove(ctx context.Context, w Witness) (Receipt, error) {
	timeout := s.traits.AcceptTimeout
	if timeout == 0 {
		timeout = DefaultAcceptTimeout
	}
	for try := 0; ; try++ {
		ok, err := witnessed(ctx, w, s.rec.Talk(), s.intent, timeout)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w: %w", s.rec.Ref, ErrInDoubt, err)
		case ok:
			s.c.left.put(s.rec.ID, s.text, normal(s.harness, s.text), s.c.o.Now())
			return ReceiptAccepted, nil
		case try == submits:
			return "", fmt.Errorf("%s: %w: its record does not show it after %d submit keys", s.rec.Ref, ErrInDoubt, submits+1)
		}
		if err := s.submitAgain(ctx, w); err != nil {
			return "", fmt.Errorf("%s: %w: %w", s.rec.Ref, ErrInDoubt, err)
		}
	}
}

// submitAgain gives the submit key once more if, at this moment, the text still stands unsubmitted in the box.
func (s *speech) submitAgain(ctx context.Context, w Witness) error {
	release, err := s.c.lockID(ctx, s.rec.ID, "submit")
	if err != nil {
		return err
	}
	defer release()
	view, err := s.c.view(ctx, s.harness, s.rec)
	if err != nil {
		return err
	}
	open := view.State == ViewReady || view.State == ViewWorking
	if !open || view.Box == "" {
		return nil
	}
	if taken, err := w.Taken(ctx, s.rec.Talk(), s.intent.Place, s.intent.Sum); err != nil || taken {
		return err
	}
	return s.c.terminal(s.rec).Press(ctx, s.rec.Target(), s.traits.Submit)
}

// witnessed looks at the agent's record until it shows the text or the time is up.
func witnessed(ctx context.Context, w Witness, talk Conversation, i Intent, timeout time.Duration) (bool, error) {
	talk.ID = i.Conversation
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for pause := lookEvery; ; pause = min(2*pause, lookEveryMax) {
		ok, err := w.Taken(ctx, talk, i.Place, i.Sum)
		if err != nil || ok {
			return ok, err
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-deadline.C:
			next.Stop()
			return w.Taken(ctx, talk, i.Place, i.Sum)
		case <-ctx.Done():
			next.Stop()
			return false, ctx.Err()
		}
	}
}

// WitnessRequest asks what became of a text that may have been typed before a crash.
type WitnessRequest struct {
	Ref    Ref
	ID     string
	Intent Intent
}

// VerifyInput reports whether the agent's record shows the text. False means that there is no evidence, not that it did
// not arrive.
func (c *Core) VerifyInput(ctx context.Context, q WitnessRequest) (bool, error) {
	rec, err := c.recorded(ctx, q.Ref)
	if err != nil {
		return false, err
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return false, err
	}
	w, ok := h.(Witness)
	if !ok || rec.ID != q.ID {
		return false, nil
	}
	timeout := h.Traits().AcceptTimeout
	if timeout == 0 {
		timeout = DefaultAcceptTimeout
	}
	return witnessed(ctx, w, rec.Talk(), q.Intent, timeout)
}

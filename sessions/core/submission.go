package core

import (
	"context"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// maxSubmitRetries is how often the submit key is repeated for a text that stays in the box.
const maxSubmitRetries = 3

// submission is one text on its way into one pane.
type submission struct {
	typist       *typist
	q            sessions.SubmitRequest
	rec          sessions.Record
	harness      sessions.Harness
	capabilities sessions.Capabilities
	text         string
	intent       sessions.Intent
}

// compose reads the session's record and makes the text that is typed.
func (s *submission) compose(ctx context.Context, id string) (err error) {
	if s.rec, err = s.typist.records.requireRunning(ctx, s.q.Ref, id); err != nil {
		return err
	}
	if s.harness, err = s.typist.agents.harness(s.rec.Definition.Harness); err != nil {
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	if s.capabilities, err = sessions.SessionCapabilities(ctx, s.harness, s.rec); err != nil {
		return err
	}
	if s.text, err = sessions.ComposeText(s.q, s.capabilities); err != nil {
		return err
	}
	if s.capabilities.Quote != nil && !s.q.Raw {
		s.text = s.capabilities.Quote(s.text)
	}
	s.text = sessions.WithTrailer(s.text, s.q.Raw, s.capabilities)
	s.intent = sessions.Intent{Sum: sessions.Fingerprint(s.capabilities.Normalized(s.text)), Conversation: s.rec.Conversation}
	return nil
}

func (s *submission) run(ctx context.Context) (sessions.Receipt, error) {
	id := s.q.ID
	if id == "" {
		rec, err := s.typist.records.requireRunning(ctx, s.q.Ref, "")
		if err != nil {
			return "", err
		}
		id = rec.ID
	}
	if err := s.typeIn(ctx, id); err != nil {
		return "", err
	}
	return s.awaitReceipt(ctx)
}

// awaitReceipt waits for the evidence of a text that was typed, where the harness gives any.
func (s *submission) awaitReceipt(ctx context.Context) (sessions.Receipt, error) {
	w := s.capabilities.Input
	if w == nil || s.q.Raw && s.capabilities.CommandsUnrecorded {
		return sessions.ReceiptTyped, nil
	}
	return s.awaitAccepted(ctx, w)
}

// typeIn checks the screen, records the intent and types, all under the session's lock, so that no other text and no restart
// comes in between. It waits for the delayed submit key too.
func (s *submission) typeIn(ctx context.Context, id string) error {
	release, err := s.typist.records.lockID(ctx, id, "say")
	if err != nil {
		return err
	}
	defer release()
	return s.typeLocked(ctx, id)
}

// typeLocked is typeIn for a caller that holds the session's lock.
func (s *submission) typeLocked(ctx context.Context, id string) error {
	if err := s.compose(ctx, id); err != nil {
		return err
	}
	if err := s.checkScreen(ctx); err != nil {
		return err
	}
	if err := s.readOffset(ctx); err != nil {
		return err
	}
	err := s.typist.panes.terminalOf(s.rec).Paste(ctx, sessions.Paste{Target: s.rec.Target(), Text: s.text,
		Submit: s.capabilities.Submit, Delay: s.capabilities.SubmitDelay, Commit: s.intentRecorder(ctx)})
	if err != nil {
		return sessions.WrapTerminalError(s.rec, err)
	}
	s.awaitSubmit(ctx)
	return nil
}

// checkScreen holds the text back while the screen would not take it as text. The last screen of an agent that has ended does not
// count.
func (s *submission) checkScreen(ctx context.Context) error {
	view, err := s.typist.agents.readScreen(ctx, s.harness, s.rec)
	if err != nil {
		return err
	}
	if view.Box != "" && (view.State == sessions.ViewReady || view.State == sessions.ViewWorking) {
		if cleared, err := s.clearStaleDraft(ctx, view); err != nil {
			return err
		} else if cleared {
			view.Box = ""
		}
	}
	var held *sessions.HeldError
	switch {
	case view.State == sessions.ViewStarting, view.State == sessions.ViewDialog, view.State == sessions.ViewMenu,
		view.State == sessions.ViewWorking && s.capabilities.QueuesUnrecorded:
		held = &sessions.HeldError{State: view.State, Lines: view.Lines}
	case s.typist.permissions.hasPendingDialog(s.rec.ID):
		held = &sessions.HeldError{State: sessions.ViewDialog}
	case view.Box != "":
		held = &sessions.HeldError{State: view.State, Draft: true}
	default:
		return nil
	}
	if err := s.typist.agents.checkAlive(ctx, s.rec); err != nil {
		return err
	}
	return held
}

// readOffset reads the transcript's offset from which evidence counts.
func (s *submission) readOffset(ctx context.Context) (err error) {
	w := s.capabilities.Input
	if w == nil {
		return nil
	}
	if s.intent.Offset, err = w.Offset(ctx, s.rec.AgentConversation()); err != nil {
		return fmt.Errorf("read the agent's record: %w", err)
	}
	return nil
}

// intentRecorder returns the function that records the intent; nil: nobody asked for it.
func (s *submission) intentRecorder(ctx context.Context) func() error {
	if s.q.RecordIntent == nil {
		return nil
	}
	return func() error {
		if err := s.q.RecordIntent(ctx, s.intent); err != nil {
			return fmt.Errorf("record what is about to be typed: %w", err)
		}
		return nil
	}
}

// awaitSubmit waits until the tmux server has pasted the submit key. It does so even when ctx ends first.
func (s *submission) awaitSubmit(ctx context.Context) {
	if s.capabilities.SubmitDelay <= 0 {
		return
	}
	loop.Sleep(ctx, s.capabilities.SubmitDelay+pollMin)
}

// awaitAccepted waits until the transcript shows the text. While it does not, and the text stands in the box, the submit key is
// pressed again. The text is never typed again.
func (s *submission) awaitAccepted(ctx context.Context, w sessions.InputVerifier) (sessions.Receipt, error) {
	timeout := s.capabilities.EvidenceTimeout()
	for try := 0; ; try++ {
		ok, err := awaitEvidence(ctx, w, s.rec.AgentConversation(), s.intent, time.Now().Add(timeout), nil)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w: %w", s.rec.Ref, sessions.ErrInDoubt, err)
		case ok:
			s.typist.staleDrafts.remember(s.rec.ID, sessions.NewAcceptedText(s.text, s.capabilities.Normalized(s.text), s.typist.now()))
			return sessions.ReceiptAccepted, nil
		case try == maxSubmitRetries:
			return "", fmt.Errorf("%s: %w: its record does not show it after %d submit keys", s.rec.Ref, sessions.ErrInDoubt, maxSubmitRetries+1)
		}
		if err := s.resubmit(ctx, w); err != nil {
			return "", fmt.Errorf("%s: %w: %w", s.rec.Ref, sessions.ErrInDoubt, err)
		}
	}
}

// resubmit presses the submit key again if the text still stands unsubmitted in the box.
func (s *submission) resubmit(ctx context.Context, w sessions.InputVerifier) error {
	release, err := s.typist.records.lockID(ctx, s.rec.ID, "submit")
	if err != nil {
		return err
	}
	defer release()
	view, err := s.typist.agents.readScreen(ctx, s.harness, s.rec)
	if err != nil {
		return err
	}
	open := view.State == sessions.ViewReady || view.State == sessions.ViewWorking
	if !open || view.Box == "" {
		return nil
	}
	if accepted, err := w.Accepted(ctx, s.rec.AgentConversation(), s.intent.Offset, s.intent.Sum); err != nil || accepted {
		return err
	}
	return s.typist.panes.terminalOf(s.rec).Press(ctx, s.rec.Target(), s.capabilities.Submit)
}

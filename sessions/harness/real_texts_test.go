package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/opencode"
)

// allTrickyTexts has each agent take all of the table.
var allTrickyTexts = flag.Bool("every-text", false, "type every hard text into Gemini CLI and OpenCode too, which are slow, not its part of every kind")

// TestRealAgentsAcceptTrickyTextsOnce types the hard texts into the real agents, each in one session: each is proved to have been
// taken, and the model hears it once. Claude Code and Codex take all of them, and of every kind Gemini CLI takes one half and
// Harness a part of the other one, unless all are asked for.
func TestRealAgentsAcceptTrickyTextsOnce(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]struct {
		stage   func(*testing.T) *agentEnv
		nth, of int
	}{claude.Name: {newClaudeAgentEnv, 0, 1}, codex.Name: {newCodexAgentEnv, 0, 1}, gemini.Name: {newGeminiAgentEnv, 0, 2}, opencode.Name: {newOpenCodeAgentEnv, 1, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := a.stage(t)
			texts := trickyTexts(harnesstest.WriteTrickyFiles(t, s.def.Cwd))
			if !*allTrickyTexts {
				texts = trickyShare(texts, a.nth, a.of)
			}
			s.submitTrickyTexts(texts)
		})
	}
}

func (s *agentEnv) submitTrickyTexts(texts []trickyText) {
	s.Helper()
	s.start()
	s.waitIdle()
	for _, h := range texts {
		s.Run(fmt.Sprintf("%03d %s", h.index, h.kind), func(t *testing.T) {
			sub := *s
			sub.T = t
			sub.submitTrickyText(h)
		})
	}
	for _, h := range texts {
		if n := s.model.CountTexts(h.mark); h.mark != "" && n > 1 {
			s.Errorf("%.200q: in the end the model heard it %d times", h.text, n)
		}
	}
}

// trickyTextTimeout is for how long one text is waited for; a doubt comes after 16 s.
const trickyTextTimeout = 40 * time.Second

// submitTrickyText types one text. What goes wrong with it does not spoil the next one.
func (s *agentEnv) submitTrickyText(h trickyText) {
	before := s.model.CountTexts(h.mark)
	ctx, cancel := context.WithTimeout(s.Context(), trickyTextTimeout)
	defer cancel()
	var receipt sessions.Receipt
	var err error
	held := (*sessions.HeldError)(nil)
	pollUntil(ctx, func() bool {
		receipt, err = s.core.Submit(ctx, sessions.SubmitRequest{Ref: realRef, Text: h.text, Sender: "ann"})
		return !errors.As(err, &held)
	})
	if err != nil || receipt != sessions.ReceiptAccepted {
		s.Errorf("%.200q: %s, %v\n%s\n%s", h.text, receipt, err, s.describeView(), s.screen())
		s.sendKeys("Escape", "C-u", "BSpace", "C-u", "BSpace", "C-u", "BSpace")
		return
	}
	pollUntil(ctx, func() bool { return s.model.CountTexts(h.mark) > before })
	// An image has a text of its own, with its path.
	if n := s.model.CountTexts(h.mark) - before; n != 1 && (h.mark != "" || h.kind != imagePaths || n == 0) {
		s.Errorf("%.200q: the model heard it %d times\n%s", h.text, n, s.screen())
	}
}

// pollUntil waits until a condition is met, or ctx ends.
func pollUntil(ctx context.Context, ok func() bool) {
	for !ok() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

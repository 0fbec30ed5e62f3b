package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
)

// allTrickyTexts has each agent take all of the table.
var allTrickyTexts = flag.Bool("every-text", false, "type every hard text into Gemini CLI and OpenCode too, which are slow, not its part of every kind")

// TestRealAgentsAcceptTrickyTextsOnce types the hard texts into the real agents, each in one session: each is proved to have been
// taken, and the model hears it once. Claude Code and Codex take all of them, and of every kind Gemini CLI takes one half and
// OpenCode a part of the other one, unless all are asked for.
func TestRealAgentsAcceptTrickyTextsOnce(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]struct {
		stage   func(*testing.T) *agentEnv
		nth, of int
	}{ClaudeName: {newClaudeAgentEnv, 0, 1}, CodexName: {newCodexAgentEnv, 0, 1}, GeminiName: {newGeminiAgentEnv, 0, 2}, OpenCodeName: {newOpenCodeAgentEnv, 1, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := a.stage(t)
			texts := trickyTexts(writeTrickyFiles(t, s.def.Cwd))
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

// writeTrickyFiles makes the files that hard texts name.
func writeTrickyFiles(t *testing.T, dir string) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	encode := func(name string, to func(io.Writer) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(to(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shot.png", "my shot.png"} {
		encode(name, func(w io.Writer) error { return png.Encode(w, img) })
	}
	for _, name := range []string{"other.jpg", "BILD.JPEG"} {
		encode(name, func(w io.Writer) error { return jpeg.Encode(w, img, nil) })
	}
	for _, name := range []string{"hard.txt", "doc.pdf"} {
		encode(name, func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader("some text\n")); return err })
	}
	return dir
}

package harness

import (
	"context"
	"errors"
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

// TestRealAgentsTakeHardTextsOnce types every hard text into each real agent, in one session: each is proved to have been
// taken, and the model hears it once.
func TestRealAgentsTakeHardTextsOnce(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]func(*testing.T) *stage{ClaudeName: claudeStage, CodexName: codexStage, GeminiName: geminiStage, OpenCodeName: openCodeStage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage(t).takesHardTexts()
		})
	}
}

func (s *stage) takesHardTexts() {
	s.Helper()
	texts := hardTexts(hardFolder(s.T, s.def.Cwd))
	s.start()
	s.atRest()
	for i, h := range texts {
		s.Run(fmt.Sprintf("%03d %s", i, h.kind), func(t *testing.T) {
			sub := *s
			sub.T = t
			sub.takesOnce(h)
		})
	}
	for _, h := range texts {
		if n := s.model.Total(h.mark); h.mark != "" && n > 1 {
			s.Errorf("%.200q: in the end the model heard it %d times", h.text, n)
		}
	}
}

// hardPatience is for how long one text is waited for; a doubt comes after 16 s.
const hardPatience = 40 * time.Second

// takesOnce types one text. What goes wrong with it does not spoil the next one.
func (s *stage) takesOnce(h hardText) {
	before := s.model.Total(h.mark)
	ctx, cancel := context.WithTimeout(s.Context(), hardPatience)
	defer cancel()
	var receipt sessions.Receipt
	var err error
	held := (*sessions.HeldError)(nil)
	met(ctx, func() bool {
		receipt, err = s.core.Say(ctx, sessions.SayRequest{Ref: realRef, Text: h.text, Speaker: "ann"})
		return !errors.As(err, &held)
	})
	if err != nil || receipt != sessions.ReceiptAccepted {
		s.Errorf("%.200q: %s, %v\n%s\n%s", h.text, receipt, err, s.seen(), s.screen())
		s.press("Escape", "C-u", "BSpace", "C-u", "BSpace", "C-u", "BSpace")
		return
	}
	met(ctx, func() bool { return s.model.Total(h.mark) > before })
	// An image has a text of its own, with its path.
	if n := s.model.Total(h.mark) - before; n != 1 && (h.mark != "" || h.kind != hardImages || n == 0) {
		s.Errorf("%.200q: the model heard it %d times\n%s", h.text, n, s.screen())
	}
}

// met waits until a condition is met, or ctx ends.
func met(ctx context.Context, ok func() bool) {
	for !ok() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// hardFolder makes the files that hard texts name.
func hardFolder(t *testing.T, dir string) string {
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

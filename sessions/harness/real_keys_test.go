package harness

import (
	"os"
	"slices"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

// testKeysAtDialog presses every key at a dialog but those that turn it down: those that the harness calls harmless leave it open,
// the others are refused.
func (s *agentEnv) testKeysAtDialog(marker string) {
	s.Helper()
	traits := s.harness.Capabilities()
	for _, key := range sessions.KeyNames() {
		if slices.Contains(traits.DenyKeys, key) {
			continue
		}
		_, err := s.core.Keys(s.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{key}})
		if harmless := slices.Contains(traits.MoveKeys, key); harmless != (err == nil) {
			s.Errorf("%s at a dialog: %v", key, err)
		}
	}
	s.waitSteady(sessions.ViewDialog)
	if _, err := os.Stat(marker); err == nil {
		s.Fatal("the command was approved")
	}
}

// The key that goes through Claude Code's modes allows edits for the whole session when a dialog is open, and switches the
// mode when none is: either is an answer.
func TestRealClaudesModeIsSwitchedOnlyByAnActor(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	s.waitIdle()
	before := s.footer()
	press := func(actor string) (sessions.KeysEffect, error) {
		return s.core.Keys(t.Context(), sessions.KeysRequest{Ref: realRef, Actor: actor, Keys: []string{"BackTab"}})
	}
	if _, err := press(""); err == nil || s.footer() != before {
		t.Errorf("nobody switched the mode: %v\n%s", err, s.screen())
	}
	if effect, err := press("ann"); err != nil || effect != sessions.KeysMode {
		t.Errorf("BackTab: %q, %v", effect, err)
	}
	s.waitUntil("the mode is another", func() bool { return s.footer() != before })
}

// footer is the last line of the screen, which names the mode.
func (s *agentEnv) footer() string {
	s.Helper()
	shown, err := s.term.Capture(s.Context(), s.record().Target())
	if err != nil {
		s.Fatal(err)
	}
	return screen.LastLines(screen.Lines(shown), 1)[0]
}

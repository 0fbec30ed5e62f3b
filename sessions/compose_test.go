package sessions

import "testing"

// In Codex 0.171, Gemini CLI 0.61 and OpenCode 1.18 a paste that ends in "@app" opens a list, and Enter takes from it.
func TestATextThatEndsInACompletionIsSubmittedAsItIs(t *testing.T) {
	t.Parallel()
	traits := Traits{Completes: []string{"@"}}
	for text, want := range map[string]bool{"see @app": true, "@": true, "mail me@home": false, "@app first": false, "": false, "a\n@b": true} {
		if got := completes(text, traits); got != want {
			t.Errorf("completes(%q) = %v", text, got)
		}
	}
	if completes("see @app", Traits{}) {
		t.Error("a harness without completions has one")
	}
}

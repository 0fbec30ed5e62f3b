package sessions

import (
	"testing"
)

// In Codex 0.171, Gemini CLI 0.61 and Harness 1.18 a paste that ends in "@app" opens a list, and Enter takes from it; after a
// backslash Enter breaks the line in Claude Code 2.1.197 and Gemini CLI.
func TestATextIsFollowedByWhatMakesEnterSubmitIt(t *testing.T) {
	t.Parallel()
	traits := Capabilities{Trailer: " "}
	for text, want := range map[string]string{"see @app": "see @app ", `ends in \`: `ends in \ `, "y": "y "} {
		if got := WithTrailer(text, false, traits); got != want {
			t.Errorf("%q is typed as %q", text, got)
		}
	}
	if got := WithTrailer("/compact", true, traits); got != "/compact" {
		t.Errorf("a command is typed as %q", got)
	}
	if got := WithTrailer("/add @app", true, traits); got != "/add @app " {
		t.Errorf("a command with an argument is typed as %q", got)
	}
	if got := WithTrailer("see @app", false, Capabilities{}); got != "see @app" {
		t.Errorf("a harness that needs nothing gets %q", got)
	}
}

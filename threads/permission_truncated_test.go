package threads

import (
	"context"
	"testing"

	"the-loop/authz"
	"the-loop/sessions"
)

// A question of which something that matters is not shown has no buttons, and a click that is made up decides nothing.
func TestAQuestionThatIsNotShownWholeIsAnsweredInTheTerminal(t *testing.T) {
	change := func(w *env) {
		w.hooks = &fakeHooks{waiting: map[string]chan struct{}{}}
		w.permissionText = func(_ sessions.Ref, a sessions.PermissionRequest) PermissionRendering {
			return PermissionRendering{Text: a.Command, Whole: a.Token != "long"}
		}
	}
	withEnvSetup(t, change, func(w *env) {
		w.wantPermissionAnswers()
		if w.requestPermission("short") == "" {
			t.Error("a question that is shown whole has no buttons")
		}
		if button := w.requestPermission("long"); button != "" {
			t.Errorf("it has the button %q", button)
		}
		if got, want := w.permissionMessage("long"), "do long\nAnswer it in the terminal."; got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
		for name, a := range bindingFile(t, w).PermissionRequests {
			if a.Token != "long" {
				continue
			}
			why, err := w.m.DecidePermission(context.Background(), PermissionDecision{Token: name, Verdict: sessions.VerdictAllow, Actor: authz.Actor{User: ann, Team: "T1"}})
			if err != nil || why != "This question is answered in the terminal." {
				t.Errorf("a click says %q, %v", why, err)
			}
		}
		w.wantPermissionAnswers()
	})
}

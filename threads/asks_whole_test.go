package threads

import (
	"context"
	"testing"

	"the-loop/authz"
	"the-loop/sessions"
)

// A question of which something that matters is not shown has no buttons, and a click that is made up decides nothing.
func TestAQuestionThatIsNotShownWholeIsAnsweredInTheTerminal(t *testing.T) {
	change := func(w *world) {
		w.hooks = &hooks{waiting: map[string]chan struct{}{}}
		w.askText = func(_ sessions.Ref, a sessions.Ask) (string, bool) { return a.Command, a.Token != "long" }
	}
	runWith(t, change, func(w *world) {
		w.wantsAnswers()
		if w.asked("short") == "" {
			t.Error("a question that is shown whole has no buttons")
		}
		if button := w.asked("long"); button != "" {
			t.Errorf("it has the button %q", button)
		}
		if got, want := w.shows("long"), "do long\nAnswer it in the terminal."; got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
		for name, a := range bindingFile(t, w).Asks {
			if a.Token != "long" {
				continue
			}
			why, err := w.m.Rule(context.Background(), Ruling{Token: name, Verdict: sessions.VerdictAllow, Actor: authz.Actor{User: ann, Team: "T1"}})
			if err != nil || why != "This question is answered in the terminal." {
				t.Errorf("a click says %q, %v", why, err)
			}
		}
		w.wantsAnswers()
	})
}

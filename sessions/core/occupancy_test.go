package core_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux/tmuxtest"
)

// splitPane makes a pane of the operator's beside the session's.
func (w *env) splitPane(name string) sessions.Pane {
	w.t.Helper()
	out, err := exec.Command("tmux", "-S", tmuxtest.Socket(w.dir), "split-window", "-P", "-F", "#{pane_id}", "-t", w.pane(name).ID, "sleep", "1000").CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	id := strings.TrimSpace(string(out))
	i := slices.IndexFunc(w.panes(), func(p sessions.Pane) bool { return p.ID == id })
	if i < 0 {
		w.t.Fatalf("no pane %s in %+v", id, w.panes())
	}
	return w.panes()[i]
}

// wantBeside fails unless the session's agent and the split are in one tmux session, both alive, and nothing else is.
func (w *env) wantBeside(name string, split sessions.Pane) {
	w.t.Helper()
	w.awaitReady(name)
	own, panes := w.pane(name), w.panes()
	if own.Dead || own.SessionID != split.SessionID || len(panes) != 2 || !slices.Contains(panes, split) || !tmuxtest.IsAlive(split.PID) {
		w.t.Errorf("the agent is in %+v, the split was %+v; there are %+v", own, split, panes)
	}
	if rec := w.record(name); rec.Status != sessions.StatusRunning || rec.Pane != own.ID || rec.TmuxSession != own.SessionID || rec.ReplacesPID != 0 {
		w.t.Errorf("the record is %+v", rec)
	}
}

// starts are the ways in which a session is brought up.
var starts = map[string]func(w *env) (sessions.Row, error){
	"start": func(w *env) (sessions.Row, error) {
		return w.Start(w.t.Context(), sessions.StartRequest{Ref: ref("a")})
	},
	"start of all": func(w *env) (sessions.Row, error) {
		all, err := w.StartAll(w.t.Context())
		if err != nil || len(all.Rows) != 1 {
			return sessions.Row{}, fmt.Errorf("%+v, %w", all, err)
		}
		return all.Rows[0], nil
	},
	"restart": func(w *env) (sessions.Row, error) {
		return w.Restart(w.t.Context(), sessions.RestartRequest{Ref: ref("a")})
	},
}

func TestAnAgentComesBackBesideTheOperatorsSplit(t *testing.T) {
	t.Parallel()
	for how, start := range starts {
		for _, tc := range []struct {
			name string
			keep bool // the ended agent's pane
			down func(w *env)
		}{
			{"it ended", true, func(w *env) { w.killAgent("a") }},
			{"it ended, and its pane went", false, func(w *env) { w.killAgent("a") }},
			{"it was stopped", true, func(w *env) { w.stop("a") }},
			{"it was made by an earlier version", false, func(w *env) {
				w.runTmux("", "set-option", "-u", "-t", "=loop-standing-a:", "@the-loop-owner")
				w.killAgent("a")
			}},
			{"it was stopped, and made by an earlier version", false, func(w *env) {
				w.runTmux("", "set-option", "-u", "-t", "=loop-standing-a:", "@the-loop-owner")
				w.stop("a")
			}},
		} {
			t.Run(how+", "+tc.name, func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, nil, sessions.Definition{Name: "a", AutoStart: true})
				w.reconfigure(func(c *core.Config) { c.RemainOnExit = tc.keep })
				first := w.start("a")
				split := w.splitPane("a")
				tc.down(w)
				row, err := start(w)
				if err != nil || row.Outcome != sessions.OutcomeResumed || row.Conversation != first.Conversation {
					t.Fatalf("%+v, %v", row, err)
				}
				w.wantBeside("a", split)
				kept := tc.name == "it ended" && how != "restart"
				if kept && w.pane("a").ID != first.Pane {
					t.Errorf("it is in %s, not in its kept pane %s", w.pane("a").ID, first.Pane)
				}
				if screen := w.screen("a"); !kept && strings.Count(screen, "\n") < 40 {
					t.Errorf("its screen is small:\n%s", screen)
				}
				w.stop("a")
				if panes := w.panes(); len(panes) != 1 || panes[0] != split {
					t.Errorf("after a stop there are %+v", panes)
				}
			})
		}
	}
}

func TestAnAgentThatCannotResumeBeginsAnewBesideTheSplit(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		w := newEnv(t, nil, sessions.Definition{Name: "a"})
		w.reconfigure(func(c *core.Config) { c.RemainOnExit = keep })
		first := w.start("a")
		split := w.splitPane("a")
		w.killAgent("a")
		w.forgetConversation("a")
		w.lengthenProbe()
		if row := w.start("a"); row.Outcome != sessions.OutcomeStarted || row.Conversation == first.Conversation {
			t.Errorf("keep %t: %+v", keep, row)
		}
		w.wantBeside("a", split)
	}
}

func TestAnEventStartsTheAgentBesideTheSplit(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		w := newWorkItemEnv(t, nil)
		w.reconfigure(func(c *core.Config) { c.RemainOnExit = keep })
		split := w.splitPane(item)
		if keep {
			w.killAgent(item)
		} else {
			w.endPane(item)
		}
		if d := w.deliver("2", "an event"); d.Row.Outcome != sessions.OutcomeResumed || d.Receipt != sessions.ReceiptAccepted {
			t.Errorf("keep %t: %+v", keep, d)
		}
		w.wantBeside(item, split)
		if said := w.transcriptTexts(item, smallagent.TypeUser); len(said) != 2 {
			t.Errorf("keep %t: the agent was told %q", keep, said)
		}
	}
}

func TestAnAgentBesideASplitHasWhatIsDeclaredNow(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	declare := func(values map[string]string) {
		w.reconfigure(func(c *core.Config) {
			c.RemainOnExit = false
			c.Env = func() (sessions.EnvFile, error) { return sessions.EnvFile{Configured: true, Values: values}, nil }
		})
	}
	declare(map[string]string{"OLD": "1", "BOTH": "1", "LINES": "a\nOLD=2"})
	w.start("a")
	w.splitPane("a")
	declare(map[string]string{"BOTH": "-u", "NEW": "$(x) \"#{pid}\""})
	w.killAgent("a")
	w.start("a")
	env := "\x00" + string(w.procFile("a", "environ"))
	for entry, want := range map[string]bool{"OLD=": false, "LINES=a": false, "BOTH=-u\x00": true, "NEW=$(x) \"#{pid}\"\x00": true,
		"THE_LOOP_SESSION=" + w.record("a").ID + "\x00": true} {
		if got := strings.Contains(env, "\x00"+entry); got != want {
			t.Errorf("%q in the agent's environment: %v", entry, got)
		}
	}
}

// What was made for a session that was deleted belongs to nobody that has its name now.
func TestASplitOfADeletedSessionDoesNotBelongToTheNextOne(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	q := sessions.CreateRequest{Name: "a", Harness: "small-agent", HarnessArgs: []string{"--reply-delay", "0s"}, Cwd: w.dir}
	if _, err := w.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	split := w.splitPane("a")
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Create(t.Context(), q)
	w.wantRefusal(err, sessions.ErrNameTaken, "does not belong to standing:a")
	if panes := w.panes(); len(panes) != 1 || panes[0] != split {
		t.Errorf("%+v", panes)
	}
}

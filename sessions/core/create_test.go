package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux/tmuxtest"
)

// createRequest is a request to create a session, with what a test does not care for filled in.
func (w *env) createRequest(name string) sessions.CreateRequest {
	return sessions.CreateRequest{Name: name, Harness: smallagent.Name, HarnessArgs: []string{"--reply-delay", "0s"}, Cwd: w.dir}
}

func (w *env) create(q sessions.CreateRequest) sessions.Row {
	w.t.Helper()
	row, err := w.Create(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

func TestR6_1_ACreateRecordsTheWholeDefinitionAndStarts(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	q := w.createRequest("a")
	q.Description, q.Prompt = "does things", "the brief"
	q.Chat = sessions.ChatDefinition{Enabled: true, Channel: "C1"}
	row := w.create(q)
	w.awaitReady("a")
	want := sessions.Definition{Name: "a", Description: "does things", Source: sessions.SourceCreated, Harness: smallagent.Name,
		HarnessArgs: q.HarnessArgs, Cwd: w.dir, Prompt: "the brief", AutoStart: true, Chat: q.Chat}
	if diff := cmp.Diff(want, w.record("a").Definition); diff != "" {
		t.Error(diff)
	}
	if row.Outcome != sessions.OutcomeStarted || !row.Running || row.Source != sessions.SourceCreated {
		t.Errorf("%+v", row)
	}
	if said := w.awaitUserTexts("a", 1); !strings.HasSuffix(said[0], "the brief") {
		t.Errorf("%q", said)
	}
	w.wantEvents(sessions.EventCreated, sessions.EventStarted)
	if e := w.lastEvent(sessions.EventCreated); e.Ref != ref("a") || e.ID != row.ID {
		t.Errorf("%+v", e)
	}
}

func TestR6_1_ACreateThatIsAskedNotToStartsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	q := w.createRequest("a")
	q.NoStart, q.NoAutoStart = true, true
	if row := w.create(q); row.Outcome != sessions.OutcomeCreated || row.Running || row.State != sessions.StateStopped {
		t.Errorf("%+v", row)
	}
	if rec := w.record("a"); rec.Status != sessions.StatusStopped || rec.Definition.AutoStart || len(w.panes()) != 0 {
		t.Errorf("%+v", rec)
	}
	w.start("a")
	w.wantEvents(sessions.EventCreated, sessions.EventStarted)
}

func TestACreateTakesItsDefaultsFromTheConfiguration(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	w.reconfigure(func(c *core.Config) {
		c.Defaults = sessions.Defaults{Harness: smallagent.Name, HarnessArgs: map[string][]string{smallagent.Name: {"--reply-delay", "1ms"}}, Cwd: w.dir}
	})
	w.create(sessions.CreateRequest{Name: "a", NoStart: true})
	w.create(sessions.CreateRequest{Name: "b", NoStart: true, HarnessArgs: []string{}})
	a, b := w.record("a").Definition, w.record("b").Definition
	if a.Harness != smallagent.Name || a.Cwd != w.dir || !slices.Equal(a.HarnessArgs, []string{"--reply-delay", "1ms"}) {
		t.Errorf("%+v", a)
	}
	if len(b.HarnessArgs) != 0 {
		t.Errorf("an empty list was taken for an absent one: %q", b.HarnessArgs)
	}
}

func TestR6_2_ANameThatIsDeclaredOrRecordedIsRefused(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "x"}, sessions.Definition{Name: "declared"})
	w.create(w.createRequest("recorded"))
	w.awaitReady("recorded")
	before := w.record("recorded")
	for name, says := range map[string]string{"declared": "standingSessions.sessions[1]", "recorded": "standing delete recorded"} {
		_, err := w.Create(t.Context(), w.createRequest(name))
		w.wantRefusal(err, sessions.ErrNameTaken, "standing:"+name, says)
	}
	w.wantNoRecord("declared")
	if diff := cmp.Diff(before, w.record("recorded")); diff != "" {
		t.Error(diff)
	}
	path := filepath.Join(w.dir, "state", "local", "standing", "broken.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var broken *sessions.UnreadableError
	if _, err := w.Create(t.Context(), w.createRequest("broken")); !errors.As(err, &broken) {
		t.Errorf("a record that cannot be read is no free name: %v", err)
	}
}

func TestR6_3_EveryRefusalOfAStartAppliesToACreateAndLeavesNoRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*env, *sessions.CreateRequest)
		says   string
	}{
		"a name that is none":       {func(_ *env, q *sessions.CreateRequest) { q.Name = "../a" }, "../a"},
		"no folder":                 {func(_ *env, q *sessions.CreateRequest) { q.Cwd = "/nowhere/at/all" }, "/nowhere/at/all"},
		"a relative folder":         {func(_ *env, q *sessions.CreateRequest) { q.Cwd = "." }, "absolute"},
		"no such harness":           {func(_ *env, q *sessions.CreateRequest) { q.Harness = "nope" }, "nope"},
		"no program":                {func(_ *env, q *sessions.CreateRequest) { q.Harness = "missing" }, "no-such-program-here"},
		"two prompts":               {func(w *env, q *sessions.CreateRequest) { q.Prompt, q.PromptFile = "a", w.dir+"/b" }, "promptFile"},
		"an unreadable prompt file": {func(_ *env, q *sessions.CreateRequest) { q.PromptFile = "/nowhere/b.md" }, "/nowhere/b.md"},
		"a NUL":                     {func(_ *env, q *sessions.CreateRequest) { q.HarnessArgs = []string{"a\x00b"} }, "NUL"},
		"a live stranger":           {func(w *env, _ *sessions.CreateRequest) { w.occupyName("a") }, "does not belong to"},
		"an unreadable env file": {func(w *env, _ *sessions.CreateRequest) {
			w.reconfigure(func(c *core.Config) {
				c.Env = func() (sessions.EnvFile, error) { return sessions.EnvFile{}, errors.New("line 3 is no assignment") }
			})
		}, "line 3"},
		"a reserved name in the environment": {func(w *env, _ *sessions.CreateRequest) {
			w.reconfigure(func(c *core.Config) {
				c.Env = declaringEnv(map[string]string{"TMUX": "x"})
			})
		}, "TMUX"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, func(w *env, o *core.Options) {
				o.Harnesses = harness.NewSet(newSmallAgent(w.dir), harness.Template{Title: "missing", Binary: "no-such-program-here", Args: []string{"{prompt}"}}).Get
			})
			q := w.createRequest("a")
			c.change(w, &q)
			_, err := w.Create(t.Context(), q)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
			w.wantNoRecord("a")
			w.wantEvents(sessions.EventCreateFailed)
			for _, p := range w.panes() {
				if p.Mark != "squatter" {
					t.Errorf("a pane is left: %+v", p)
				}
			}
		})
	}
}

func TestR6_3_TheDirectiveOfACreatedSessionCannotBeReplaced(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	q := w.createRequest("a")
	q.Prompt = "You are the owner of every ticket."
	w.create(q)
	w.awaitReady("a")
	if said := w.awaitUserTexts("a", 1)[0]; !strings.HasPrefix(said, `You are the standing session "a"`) || !strings.HasSuffix(said, "\n\n"+q.Prompt) {
		t.Errorf("%q", said)
	}
}

func TestACreateInDoubtThatMadeThePaneHasMadeTheSession(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newEnv(t, withTerminal(spy))
	spy.failAfter = fmt.Errorf("%w: the answer was lost", sessions.ErrInDoubt)
	if row := w.create(w.createRequest("a")); row.Outcome != sessions.OutcomeStarted || row.Pane != w.pane("a").ID {
		t.Errorf("%+v", row)
	}
}

func TestR6_4_ADeleteStopsTheSessionAndRemovesItsRecord(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	first := w.create(w.createRequest("a"))
	w.awaitReady("a")
	pane := w.pane("a")
	row, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")})
	if err != nil || row.Outcome != sessions.OutcomeDeleted || row.ID != first.ID {
		t.Fatalf("%+v, %v", row, err)
	}
	w.wantNoRecord("a")
	if tmuxtest.IsAlive(pane.PID) || len(w.panes()) != 0 {
		t.Error("something of it is left")
	}
	if rows, err := w.StartAll(t.Context()); err != nil || len(rows.Rows) != 0 {
		t.Errorf("it came back: %+v, %v", rows, err)
	}
	_, err = w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")})
	w.wantRefusal(err, sessions.ErrNotRecorded)
	w.wantEvents(sessions.EventCreated, sessions.EventStarted, sessions.EventStopped, sessions.EventDeleted)
	if again := w.create(w.createRequest("a")); again.ID == first.ID || again.Conversation == first.Conversation {
		t.Errorf("made again, it has something of the old one: %+v", again)
	}
}

func TestADeleteThatCannotStopKeepsTheRecord(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withShortTimeout)
	w.create(w.createRequest("a"))
	thaw := w.freezeServer(w.pane("a").Server.PID)
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")}); !errors.Is(err, sessions.ErrTerminalTimeout) {
		t.Errorf("%v", err)
	}
	thaw()
	if w.record("a").Status != sessions.StatusRunning {
		t.Errorf("%+v", w.record("a"))
	}
}

func TestR6_5_ADeclaredSessionIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "x"}, sessions.Definition{Name: "a"})
	w.start("a")
	for _, name := range []string{"a", "x"} {
		_, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref(name)})
		w.wantRefusal(err, sessions.ErrRefused, "standingSessions.sessions[", "the-loop standing stop "+name)
	}
	if w.row("a").State != sessions.StateRunning {
		t.Error("it does not run any more")
	}
	w.reconfigure(func(c *core.Config) { c.Declared = nil })
	if _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: ref("a")}); err != nil {
		t.Errorf("one that left the config: %v", err)
	}
}

func TestR6_6_ACreatedSessionComesBackWithAllOthers(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "declared", AutoStart: true})
	made := w.create(w.createRequest("made"))
	w.awaitReady("made")
	q := w.createRequest("manual")
	q.NoAutoStart = true
	w.create(q)
	w.awaitReady("manual")
	if all, err := w.StopAll(t.Context()); err != nil || all.Failed() != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	all, err := w.StartAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomes(all.Rows); !slices.Equal(got, []string{"declared started", "made resumed"}) {
		t.Errorf("%q", got)
	}
	if w.record("made").Conversation != made.Conversation {
		t.Error("its conversation was lost")
	}
}

func outcomes(rows []sessions.Row) (got []string) {
	for _, r := range rows {
		got = append(got, r.Name+" "+string(r.Outcome))
	}
	return got
}

func TestR6_7_EveryVerbAddressesACreatedSessionAsItDoesADeclaredOne(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "declared"})
	q := w.createRequest("made")
	q.NoStart = true
	w.create(q)
	for _, name := range []string{"declared", "made"} {
		if row := w.start(name); row.Outcome != sessions.OutcomeStarted {
			t.Errorf("%+v", row)
		}
		w.awaitUserTexts(name, 1)
		if receipt := w.submit(name, "hello"); receipt != sessions.ReceiptAccepted {
			t.Errorf("%s: %s", name, receipt)
		}
		if row, err := w.Restart(t.Context(), sessions.RestartRequest{Ref: ref(name)}); err != nil || row.Outcome != sessions.OutcomeResumed {
			t.Errorf("%+v, %v", row, err)
		}
		if row := w.stop(name); row.Outcome != sessions.OutcomeStopped {
			t.Errorf("%+v", row)
		}
		_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref(name), Text: "x"})
		w.wantRefusal(err, sessions.ErrNotRunning, "the-loop standing start "+name)
	}
}

func TestACreatedSessionThatIsThenDeclaredIsAConflict(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	q := w.createRequest("a")
	q.NoStart = true
	w.create(q)
	w.reconfigure(func(c *core.Config) {
		c.Declared = []sessions.Definition{w.definition(sessions.Definition{Name: "a", AutoStart: true})}
	})
	_, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")})
	w.wantRefusal(err, sessions.ErrRefused, "created", "declared")
	for name, want := range map[string]bool{"a": true, "b": false} {
		if got, err := sessions.IsCreated(t.Context(), w.registry, name); err != nil || got != want {
			t.Errorf("Created(%s) = %t, %v", name, got, err)
		}
	}
}

func TestARestartKeepsTheConversationAndHoldsReplies(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	first := w.start("a")
	pane := w.pane("a")
	w.awaitUserTexts("a", 1)
	done := make(chan error)
	go func() {
		_, err := w.Restart(context.WithoutCancel(t.Context()), sessions.RestartRequest{Ref: ref("a")})
		done <- err
	}()
	refused := 0
	for going := true; going; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			going = false
		default:
			_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "while it restarts"})
			var refusal *sessions.Refusal
			if errors.As(err, &refusal) {
				refused++
				t.Logf("%v", err)
			}
		}
	}
	if refused != 0 {
		t.Errorf("%d replies were refused while the session was being restarted", refused)
	}
	if row := w.row("a"); row.Conversation != first.Conversation || row.ID != first.ID || w.pane("a").PID == pane.PID || tmuxtest.IsAlive(pane.PID) {
		t.Errorf("%+v", row)
	}
	names := slices.DeleteFunc(w.events.Names(), func(n string) bool { return n == sessions.EventSubmitted })
	if !slices.Equal(names, []string{sessions.EventStarted, sessions.EventResumed}) {
		t.Errorf("%q", names)
	}
}

func TestARestartThatWouldBeRefusedLeavesTheAgentAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*core.Config)
		says   string
	}{
		"no folder":  {func(c *core.Config) { c.Declared[0].Cwd = "/nowhere" }, "/nowhere"},
		"no prompt":  {func(c *core.Config) { c.Declared[0].PromptFile = "/nowhere/b.md" }, "/nowhere/b.md"},
		"no harness": {func(c *core.Config) { c.Declared[0].Harness = "nope" }, "nope"},
		"no program": {func(c *core.Config) { c.Declared[0].Harness = "missing" }, "no-such-program-here"},
		"a PATH without it": {func(c *core.Config) {
			c.Declared[0].Harness = "sh"
			c.Env = declaringEnv(map[string]string{"PATH": "/nowhere:relative"})
		}, "PATH (/nowhere:relative)"},
		"no environment": {func(c *core.Config) {
			c.Env = func() (sessions.EnvFile, error) { return sessions.EnvFile{}, errors.New("line 3 is no assignment") }
		}, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, func(w *env, o *core.Options) {
				o.Harnesses = harness.NewSet(newSmallAgent(w.dir), harness.Template{Title: "missing", Binary: "no-such-program-here", Args: []string{"{prompt}"}},
					harness.Template{Title: "sh", Binary: "sh", Args: []string{"{prompt}"}}).Get
			}, sessions.Definition{Name: "a"})
			w.start("a")
			pane := w.pane("a")
			w.reconfigure(c.change)
			_, err := w.Restart(t.Context(), sessions.RestartRequest{Ref: ref("a")})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
			if w.pane("a") != pane || w.row("a").State != sessions.StateRunning {
				t.Error("the agent was touched")
			}
		})
	}
}

func TestARestartThatCannotBePreparedLeavesTheAgentAlone(t *testing.T) {
	t.Parallel()
	p := &preparingAgent{}
	w := newEnv(t, func(w *env, o *core.Options) {
		p.Harness = newSmallAgent(w.dir)
		o.Harnesses = harness.NewSet(p).Get
	}, sessions.Definition{Name: "a"})
	first, pane := w.start("a"), w.pane("a")
	p.err = errors.New("settings.json does not parse")
	if _, err := w.Restart(t.Context(), sessions.RestartRequest{Ref: ref("a")}); !errors.Is(err, p.err) {
		t.Fatal(err)
	}
	if rec := w.record("a"); rec.Status != sessions.StatusRunning || rec.Conversation != first.Conversation || w.pane("a") != pane {
		t.Errorf("%+v", rec)
	}
	w.wantEvents(sessions.EventStarted, sessions.EventSpawnFailed)
}

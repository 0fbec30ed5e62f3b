package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// submit says something and fails on an error.
func (w *env) submit(name, text string) sessions.Receipt {
	w.t.Helper()
	receipt, err := w.Submit(w.t.Context(), sessions.SubmitRequest{Ref: ref(name), Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

// withTerminal has the core work through a terminal that counts.
func withTerminal(spy *countingTerminal) func(*env, *core.Options) {
	return func(_ *env, o *core.Options) { spy.Terminal = o.Terminal; o.Terminal = spy }
}

func TestR3_3_ATextIsTypedWholeOnceAndSubmitted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a", HarnessArgs: []string{"--log-bytes"}})
	w.start("a")
	w.awaitUserTexts("a", 1)
	texts := []string{"hello", "two\nlines", "quote ' \" $(x) `y` #{pane_id} ;", "日本語 👩‍👩‍👧", strings.Repeat("long line\n", 500) + "end"}
	for _, text := range texts {
		if receipt := w.submit("a", text); receipt != sessions.ReceiptAccepted {
			t.Errorf("%.20q: %s", text, receipt)
		}
	}
	if got := w.transcriptTexts("a", smallagent.TypeUser)[1:]; !slices.Equal(got, texts) {
		t.Errorf("the agent took %.60q", got)
	}
	bytes := tmuxtest.AwaitFile(t, smallagent.BytesPath(filepath.Join(w.dir, "agent"), w.record("a").Conversation), func(s string) bool { return strings.Contains(s, "end\x1b[201~") })
	if n := strings.Count(bytes, "\x1b[200~"); n != len(texts) {
		t.Errorf("%d bracketed pastes for %d texts", n, len(texts))
	}
	for _, e := range w.events.Events() {
		if e.Name == sessions.EventSubmitted && strings.Contains(fmt.Sprint(e.Fields), "hello") {
			t.Errorf("the text is in the event log: %v", e.Fields)
		}
	}
	if n := len(slices.DeleteFunc(w.events.Names(), func(n string) bool { return n != sessions.EventSubmitted })); n != len(texts) {
		t.Errorf("%d events said", n)
	}
}

func TestR3_4_AMessageSpawnsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "new"}, sessions.Definition{Name: "stopped"}, sessions.Definition{Name: "dead"},
		sessions.Definition{Name: "gone"}, sessions.Definition{Name: "other"})
	for _, name := range []string{"stopped", "dead", "gone", "other"} {
		w.start(name)
	}
	w.stop("stopped")
	w.killAgent("dead")
	if err := w.tmux.End(t.Context(), w.record("gone").Target(), 0); err != nil {
		t.Fatal(err)
	}
	before := len(w.panes())
	for _, name := range []string{"new", "stopped", "dead", "gone"} {
		_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref(name), Text: "hello"})
		w.wantRefusal(err, sessions.ErrNotRunning, "the-loop standing start "+name)
	}
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("unknown"), Text: "hello"})
	w.wantRefusal(err, sessions.ErrNotRecorded, "standing:unknown")
	if got := len(w.panes()); got != before {
		t.Errorf("%d panes, %d before", got, before)
	}
}

func TestTextThatWouldBeACommandIsTypedAsText(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	for in, want := range map[string]string{"!rm -rf /": `From "ann": !rm -rf /`, " /clear": `From "ann": /clear`, "exit": `From "ann": exit`, "\u200b!x": `From "ann": !x`, "exit now": "exit now"} {
		if _, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: in, Sender: "ann\x1b[31m\n"}); err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, `"ann"`, `"ann 31m"`, 1)
		if said := w.transcriptTexts("a", smallagent.TypeUser); said[len(said)-1] != want {
			t.Errorf("%q went in as %q, want %q", in, said[len(said)-1], want)
		}
	}
	if _, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "!ls"}); err != nil {
		t.Fatal(err)
	}
	if said := w.transcriptTexts("a", smallagent.TypeUser); said[len(said)-1] != `From "operator": !ls` {
		t.Errorf("without a speaker: %q", said[len(said)-1])
	}
	if ran := append(w.transcriptTexts("a", smallagent.TypeShell), w.transcriptTexts("a", smallagent.TypeCommand)...); len(ran) != 0 {
		t.Errorf("commands: %q", ran)
	}
}

func TestRawSendsACommandOnPurposeAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	raw := func(text string) error {
		_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: text, Raw: true})
		return err
	}
	if err := raw(" /help "); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"!ls", "hello", "/a\n!ls", "/a\r!ls"} {
		w.wantRefusal(raw(text), sessions.ErrRefused, "/")
	}
	if said := w.transcriptTexts("a", smallagent.TypeCommand); len(said) != 1 || strings.TrimSpace(said[0]) != "/help" {
		t.Errorf("commands: %q", said)
	}
}

func TestATextOfNothingIsRefused(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	for _, text := range []string{"", " \n\t", "\x1b\x07", "\u200b\u202e"} {
		_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: text})
		w.wantRefusal(err, sessions.ErrEmptyText)
	}
}

func TestAReplyForASessionThatWasMadeAgainIsRefused(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), ID: "another", Text: "x"})
	w.wantRefusal(err, sessions.ErrReplaced, "standing:a")
	_, err = w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), ID: "another", Keys: []string{"Escape"}})
	w.wantRefusal(err, sessions.ErrReplaced)
}

func TestATextIsHeldWhileTheScreenWouldNotTakeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		first string // said before
		keys  string // pressed before
		wait  func(smallagent.Screen) bool
		held  sessions.HeldError
		says  string
	}{
		"a dialog": {first: "ask: rm -rf /", wait: isAsking, held: sessions.HeldError{State: sessions.ViewDialog}, says: "asks a question"},
		"a draft": {keys: "half a thought", wait: func(s smallagent.Screen) bool { return s.Box == "half a thought" },
			held: sessions.HeldError{State: sessions.ViewReady, Draft: true}, says: "unsent text"},
		"starting": {args: []string{"--start-delay", "1h"}, wait: func(s smallagent.Screen) bool { return s.State == smallagent.StateStarting },
			held: sessions.HeldError{State: sessions.ViewStarting}, says: "starting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, nil, sessions.Definition{Name: "a", HarnessArgs: c.args})
			if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				w.awaitReady("a")
				w.awaitUserTexts("a", 1)
				w.submit("a", c.first)
			}
			if c.keys != "" {
				w.awaitReady("a")
				if err := w.tmux.Press(t.Context(), w.record("a").Target(), c.keys); err != nil {
					t.Fatal(err)
				}
			}
			w.awaitScreen("a", name, c.wait)
			intended := false
			_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "yes",
				RecordIntent: func(context.Context, sessions.Intent) error { intended = true; return nil }})
			var held *sessions.HeldError
			if !errors.As(err, &held) || held.State != c.held.State || held.Draft != c.held.Draft || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v", err)
			}
			if held.State == sessions.ViewDialog && len(held.Lines) == 0 {
				t.Error("the dialog's lines are not there")
			}
			if intended {
				t.Error("a text that is held was written down as being typed")
			}
			w.awaitScreen("a", "an unchanged screen", c.wait)
		})
	}
}

// An agent may show a text that it took in its box as well. Other words there are somebody's, and stay.
func TestAStaleDraftOfAnAcceptedTextIsCleared(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	w.submit("a", "look at the tests")
	drafts := func(text string) {
		t.Helper()
		w.awaitReady("a")
		if err := w.tmux.Press(t.Context(), w.record("a").Target(), text); err != nil {
			t.Fatal(err)
		}
		w.awaitScreen("a", "a draft", func(s smallagent.Screen) bool { return s.Box == text })
	}
	drafts("look at the tests")
	w.submit("a", "and at the docs")
	drafts("and at the docs too")
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "now"})
	var held *sessions.HeldError
	if !errors.As(err, &held) || !held.Draft {
		t.Errorf("with somebody's draft in the box: %v", err)
	}
	w.awaitScreen("a", "the draft", func(s smallagent.Screen) bool { return s.Box == "and at the docs too" })
	if said := w.transcriptTexts("a", smallagent.TypeUser); len(said) != 3 || said[1] != "look at the tests" || said[2] != "and at the docs" {
		t.Errorf("the agent was told %q", said)
	}
}

func isAsking(s smallagent.Screen) bool { return s.State == smallagent.StateAsking }

func TestADeadAgentsLastScreenHoldsNothingBack(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	w.submit("a", "ask: x")
	w.awaitScreen("a", "the dialog", isAsking)
	w.killAgent("a")
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "hello"})
	w.wantRefusal(err, sessions.ErrNotRunning, "has ended")
	if !errors.Is(err, sessions.ErrPaneDead) {
		t.Errorf("%v", err)
	}
}

func TestALostSubmitKeyIsRepeatedAndTheTextIsNot(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newEnv(t, func(w *env, o *core.Options) {
		withTerminal(spy)(w, o)
		o.Harnesses = harness.NewSet(shortTimeoutAgent{newSmallAgent(w.dir)}).Get
	}, sessions.Definition{Name: "a", HarnessArgs: []string{"--lose-enters", "2"}})
	w.start("a")
	w.awaitUserTexts("a", 1)
	if receipt := w.submit("a", "one\ntwo"); receipt != sessions.ReceiptAccepted {
		t.Error(receipt)
	}
	if said := w.transcriptTexts("a", smallagent.TypeUser); len(said) != 2 || said[1] != "one\ntwo" {
		t.Errorf("%q", said)
	}
	if got := spy.presses(); !slices.Equal(got, []string{"\r", "\r"}) {
		t.Errorf("pressed %q", got)
	}
}

func TestTheSubmitKeyIsTheOneOfTheSession(t *testing.T) {
	t.Parallel()
	spy, k := &countingTerminal{}, &submitKeyAgent{key: "\x18\x19"}
	w := newEnv(t, func(w *env, o *core.Options) {
		withTerminal(spy)(w, o)
		k.shortTimeoutAgent = shortTimeoutAgent{newSmallAgent(w.dir)}
		o.Harnesses = harness.NewSet(k).Get
	}, sessions.Definition{Name: "a", HarnessArgs: []string{"--lose-enters", "1"}})
	w.start("a")
	w.awaitUserTexts("a", 1)
	if receipt := w.submit("a", "with another key"); receipt != sessions.ReceiptAccepted {
		t.Error(receipt)
	}
	for _, got := range spy.presses() {
		if got != k.key {
			t.Errorf("pressed %q", got)
		}
	}
	k.err = errors.New("cannot read the bindings")
	if _, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "never"}); !errors.Is(err, k.err) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	k.key, k.err = "", nil
	w.submit("a", "with the usual one")
	if said := w.transcriptTexts("a", smallagent.TypeUser); !slices.Equal(said[1:], []string{"with another key", "with the usual one"}) {
		t.Errorf("%q", said)
	}
}

type submitKeyAgent struct {
	shortTimeoutAgent
	key string
	err error
}

func (k *submitKeyAgent) Capabilities() sessions.Capabilities {
	c := k.shortTimeoutAgent.Capabilities()
	c.SubmitKey = k.SubmitKey
	return c
}

func (k *submitKeyAgent) SubmitKey(context.Context, sessions.Conversation) (string, time.Duration, error) {
	return k.key, 5 * time.Millisecond, k.err
}

func TestATextThatNeverLeavesTheBoxIsInDoubt(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newEnv(t, func(w *env, o *core.Options) {
		withTerminal(spy)(w, o)
		o.Harnesses = harness.NewSet(shortTimeoutAgent{newSmallAgent(w.dir)}).Get
	}, sessions.Definition{Name: "a", HarnessArgs: []string{"--lose-enters", "100"}})
	w.start("a")
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "stuck"})
	if !errors.Is(err, sessions.ErrInDoubt) || !strings.Contains(err.Error(), "4 submit keys") {
		t.Errorf("%v", err)
	}
	if got := spy.presses(); len(got) != 3 {
		t.Errorf("pressed %q", got)
	}
	w.awaitScreen("a", "the text once", func(s smallagent.Screen) bool { return s.Box == "stuck" })
}

// shortTimeoutAgent is the small agent with little patience for its proof.
type shortTimeoutAgent struct{ smallagent.Harness }

func (h shortTimeoutAgent) Capabilities() sessions.Capabilities {
	t := h.Harness.Capabilities()
	t.AcceptTimeout = 150 * time.Millisecond
	return t
}

func TestATextWithoutAnyProofIsTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		o.Harnesses = harness.NewSet(unverifiableAgent{newSmallAgent(w.dir)}).Get
	}, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	if receipt := w.submit("a", "hello"); receipt != sessions.ReceiptTyped {
		t.Error(receipt)
	}
	w.awaitUserTexts("a", 2)
}

// unverifiableAgent is the small agent without proof and without a screen that can be read.
type unverifiableAgent struct{ smallagent.Harness }

func (m unverifiableAgent) Capabilities() sessions.Capabilities {
	c := m.Harness.Capabilities()
	c.Input, c.ParseScreen = nil, nil
	return c
}

func TestADoubtOfTmuxIsReportedAsInDoubt(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newEnv(t, withTerminal(spy), sessions.Definition{Name: "a"})
	w.start("a")
	spy.failAfter = fmt.Errorf("%w: %w", sessions.ErrInDoubt, sessions.ErrTerminalTimeout)
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "once"})
	if !errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	spy.failAfter, spy.failBefore = nil, sessions.ErrTerminalTimeout
	_, err = w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "never"})
	if !errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
}

func TestNothingIsTypedWhenTheIntentCannotBeWrittenDown(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	full := errors.New("the disk is full")
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "never", RecordIntent: func(context.Context, sessions.Intent) error { return full }})
	if !errors.Is(err, full) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	w.submit("a", "then")
	if said := w.awaitUserTexts("a", 2); slices.Contains(said, "never") {
		t.Errorf("%q", said)
	}
}

func TestAnIntentFindsItsEvidenceAfterACrash(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	id := w.start("a").ID
	w.submit("a", "yes") // an equal earlier text proves nothing
	var intent sessions.Intent
	keep := func(_ context.Context, i sessions.Intent) error { intent = i; return errors.New("crashed") }
	_, _ = w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "yes", RecordIntent: keep})
	ask := func() bool {
		ok, err := w.VerifyInput(t.Context(), sessions.VerifyInputRequest{Ref: ref("a"), ID: id, Intent: intent})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if ask() {
		t.Error("a text that was never typed is witnessed")
	}
	w.submit("a", "yes")
	if !ask() {
		t.Error("the text is not found")
	}
}

func TestALockedSessionNamesTheHolder(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	id := w.start("a").ID
	release, err := w.registry.Lock(t.Context(), id, "restart")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = w.Submit(ctx, sessions.SubmitRequest{Ref: ref("a"), Text: "x"})
	var locked *sessions.LockedError
	if !errors.As(err, &locked) || locked.Verb != "restart" || locked.PID == 0 {
		t.Errorf("%v", err)
	}
}

func TestTextsToOneSessionDoNotMix(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	done := make(chan error)
	const n = 8
	for i := range n {
		go func() {
			_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: strings.Repeat(fmt.Sprintf("%d-", i), 40)})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	said := w.transcriptTexts("a", smallagent.TypeUser)[1:]
	slices.Sort(said)
	for i := range n {
		if i >= len(said) || said[i] != strings.Repeat(fmt.Sprintf("%d-", i), 40) {
			t.Errorf("%q", said)
		}
	}
}

func TestKeysArePressedByNameAndAnswerNoQuestion(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	w.submit("a", "ask: rm -rf /")
	w.awaitScreen("a", "the dialog", isAsking)
	press := func(keys ...string) error {
		_, err := w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), Actor: "U1", Keys: keys})
		return err
	}
	for _, keys := range [][]string{{"Enter"}, {"enter"}, {"Space"}, {"Down", "Enter"}, {"BackTab"}, {"Tab"}, {"Left"}, {"Backspace"}, {"C-u"}, {"C-c"}, {"Escape", "BackTab"}} {
		w.wantRefusal(press(keys...), sessions.ErrRefused, "answer it in the terminal", "only up, down, escape can be pressed")
	}
	if err := press("Down", "Up"); err != nil {
		t.Error(err)
	}
	w.wantRefusal(press("F13"), sessions.ErrRefused, `"F13"`, "escape")
	w.wantRefusal(press(), sessions.ErrRefused)
	w.awaitScreen("a", "the dialog still", isAsking)
	if err := press("Escape"); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("a")
	w.submit("a", "slow: 1h")
	w.awaitScreen("a", "working", func(s smallagent.Screen) bool { return s.State == smallagent.StateWorking })
	if _, err := w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), Interrupt: true}); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("a")
	w.stop("a")
	w.wantRefusal(press("Escape"), sessions.ErrNotRunning)
}

// modeKeyAgent is the small agent with a key that switches a mode.
type modeKeyAgent struct{ smallagent.Harness }

func (m modeKeyAgent) Capabilities() sessions.Capabilities {
	traits := m.Harness.Capabilities()
	traits.ModeKeys = []string{sessions.KeyBackTab}
	return traits
}

func TestKeysThatAnswerAreRecordedWithTheirPerson(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		o.Harnesses = harness.NewSet(modeKeyAgent{newSmallAgent(w.dir)}).Get
	}, sessions.Definition{Name: "a"})
	w.start("a")
	w.awaitUserTexts("a", 1)
	press := func(actor, key string, want sessions.KeysEffect) {
		t.Helper()
		effect, err := w.Keys(t.Context(), sessions.KeysRequest{Ref: ref("a"), Actor: actor, Keys: []string{key}})
		if effect != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", key, effect, err, want)
		}
	}
	nobody := func(q sessions.KeysRequest) {
		t.Helper()
		q.Ref = ref("a")
		_, err := w.Keys(t.Context(), q)
		w.wantRefusal(err, sessions.ErrRefused, "nobody is named")
	}
	press("", "Up", sessions.KeysNone)
	nobody(sessions.KeysRequest{Keys: []string{"Up", "BackTab"}})
	press("U1", "BackTab", sessions.KeysMode)
	w.submit("a", "ask: rm -rf /")
	w.awaitScreen("a", "the dialog", isAsking)
	nobody(sessions.KeysRequest{Keys: []string{"Escape"}})
	nobody(sessions.KeysRequest{Interrupt: true})
	press("U2", "Down", sessions.KeysNone)
	w.awaitScreen("a", "the dialog still", isAsking)
	press("U3", "Escape", sessions.KeysDeny)
	w.awaitReady("a")
	var got []string
	for _, e := range w.events.Events() {
		if e.Name == sessions.EventKeys {
			got = append(got, fmt.Sprint(e.Fields["keys"], e.Fields["actor"], e.Fields["answer"]))
		}
	}
	want := []string{fmt.Sprint("up", "", nil), fmt.Sprint("backtab", "U1", "mode"), fmt.Sprint("down", "U2", nil), fmt.Sprint("escape", "U3", "deny")}
	if !slices.Equal(got, want) {
		t.Errorf("recorded: %q, want %q", got, want)
	}
}

func TestAConversationThatChangesInTheAgentIsTracked(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		o.Harnesses = harness.NewSet(trackedAgent{newSmallAgent(w.dir)}).Get
	}, sessions.Definition{Name: "a"})
	first := w.start("a")
	clear := func() {
		t.Helper()
		if _, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: ref("a"), Text: "/clear", Raw: true}); err != nil {
			t.Fatal(err)
		}
	}
	clear()
	tmuxtest.Await(t, "another conversation in the list", func() bool { return w.row("a").Conversation != first.Conversation })
	w.awaitReady("a")
	w.submit("a", "in the new one") // the agent may need a moment for its command; the next text finds it done
	if second := w.record("a").Conversation; second != w.row("a").Conversation || second == first.Conversation {
		t.Errorf("after a text the record names %s, the list %s", second, w.row("a").Conversation)
	}
	byHand := func() { // past us, as somebody does who is attached
		t.Helper()
		before := w.row("a").Conversation
		if err := w.tmux.Paste(t.Context(), sessions.Paste{Target: w.record("a").Target(), Text: "/clear", Submit: "\r"}); err != nil {
			t.Fatal(err)
		}
		tmuxtest.Await(t, "another conversation in the list", func() bool { return w.row("a").Conversation != before })
	}
	byHand()
	listed := w.row("a").Conversation
	if w.stop("a").Conversation != listed || w.record("a").Conversation != listed {
		t.Errorf("a stop records %s, the agent was in %s", w.record("a").Conversation, listed)
	}
	if row := w.start("a"); row.Outcome != sessions.OutcomeResumed || row.Conversation != listed {
		t.Errorf("%+v", row)
	}
	byHand()
	listed = w.row("a").Conversation
	w.killAgent("a")
	if row := w.start("a"); row.Outcome != sessions.OutcomeResumed || row.Conversation != listed {
		t.Errorf("after a death in %s: %+v", listed, row)
	}
}

// trackedAgent is the small agent as one whose conversations are followed.
type trackedAgent struct{ smallagent.Harness }

func (f trackedAgent) Capabilities() sessions.Capabilities {
	c := f.Harness.Capabilities()
	c.TrackConversation = f.TrackConversation
	return c
}

func (f trackedAgent) TrackConversation(ctx context.Context, c sessions.Conversation) (string, error) {
	place, err := f.Offset(ctx, c)
	var at struct {
		Conversation string `json:"now"`
	}
	err = errors.Join(err, json.Unmarshal([]byte(place), &at))
	return at.Conversation, err
}

func TestATrackerThatNamesNoConversationIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, f := range []wrongIDAgent{{id: "--resume"}, {id: ""}, {err: errors.New("cannot read it")}} {
		w := newEnv(t, func(w *env, o *core.Options) {
			f.Harness = newSmallAgent(w.dir)
			o.Harnesses = harness.NewSet(f).Get
		}, sessions.Definition{Name: "a"})
		row := w.start("a")
		w.submit("a", "x")
		if w.stop("a"); w.record("a").Conversation != row.Conversation {
			t.Errorf("%+v: %+v", f, w.record("a"))
		}
	}
}

type wrongIDAgent struct {
	smallagent.Harness
	id  string
	err error
}

func (l wrongIDAgent) Capabilities() sessions.Capabilities {
	c := l.Harness.Capabilities()
	c.TrackConversation = l.TrackConversation
	return c
}

func (l wrongIDAgent) TrackConversation(context.Context, sessions.Conversation) (string, error) {
	return l.id, l.err
}

// Some harnesses find the conversation by the time of the run, which only a record of a run has.
func TestOnlyARunThatWasNotStoppedIsTrackedAtAStart(t *testing.T) {
	t.Parallel()
	f := &runTrackingAgent{}
	w := newEnv(t, func(w *env, o *core.Options) {
		f.Harness = newSmallAgent(w.dir)
		o.Harnesses = harness.NewSet(f).Get
	}, sessions.Definition{Name: "a"})
	w.start("a")
	began := w.record("a").Changed
	w.stop("a")
	if n := len(f.takeRuns()); n != 1 {
		t.Errorf("asked %d times before the stop", n)
	}
	w.start("a")
	if got := f.takeRuns(); len(got) != 0 {
		t.Errorf("a stopped run was followed: %v", got)
	}
	again := w.record("a").Changed
	w.killAgent("a")
	w.start("a")
	if got := f.takeRuns(); len(got) != 1 || !got[0].Equal(again) || !again.After(began) {
		t.Errorf("asked for the runs of %v, want %v", got, again)
	}
	w.editRecord("a", func(r *sessions.Record) { r.Status, r.Pane = sessions.StatusStarting, "" })
	before := w.record("a").Changed
	w.start("a") // adopts
	if got := w.record("a").Changed; !got.Equal(before) {
		t.Errorf("an adopted run began at %v, want %v", got, before)
	}
}

type runTrackingAgent struct {
	smallagent.Harness
	mu   sync.Mutex
	runs []time.Time
}

func (d *runTrackingAgent) Capabilities() sessions.Capabilities {
	c := d.Harness.Capabilities()
	c.TrackConversation = d.TrackConversation
	return c
}

func (d *runTrackingAgent) TrackConversation(_ context.Context, c sessions.Conversation) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = append(d.runs, c.Started)
	return "", nil
}

// takeRuns are the runs that were asked for since the last time.
func (d *runTrackingAgent) takeRuns() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	runs := d.runs
	d.runs = nil
	return runs
}

func TestAHarnessIsPreparedBeforeItStarts(t *testing.T) {
	t.Parallel()
	p := &preparingAgent{}
	w := newEnv(t, func(w *env, o *core.Options) {
		p.Harness = newSmallAgent(w.dir)
		o.Harnesses = harness.NewSet(p).Get
	}, sessions.Definition{Name: "a"})
	w.reconfigure(func(c *core.Config) {
		c.Env = declaringEnv(map[string]string{"CONFIG_DIR": "/x", "THE_LOOP_SESSION": "forged"})
		c.OwnEnv = map[string]string{"OWN": "1"}
	})
	p.err = errors.New("/x/settings.json does not parse")
	if _, err := w.Start(t.Context(), sessions.StartRequest{Ref: ref("a")}); !errors.Is(err, p.err) {
		t.Errorf("%v", err)
	}
	w.wantNoRecord("a")
	p.err = nil
	id := w.start("a").ID
	l := p.last
	if l.Env["CONFIG_DIR"] != "/x" || l.Env["OWN"] != "1" || l.Env["THE_LOOP_SESSION"] != id || l.Cwd != w.dir || l.Session != id || l.Conversation == "" {
		t.Errorf("%+v", l)
	}
}

type preparingAgent struct {
	smallagent.Harness
	last sessions.Launch
	err  error
}

func (p *preparingAgent) Capabilities() sessions.Capabilities {
	c := p.Harness.Capabilities()
	c.Prepare = p.Prepare
	return c
}

func (p *preparingAgent) Prepare(_ context.Context, l sessions.Launch) error {
	p.last = l
	return p.err
}

func TestPeekShowsTheScreenAlsoOfAnAgentThatEnded(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	_, err := w.Peek(t.Context(), sessions.PeekRequest{Ref: ref("a")})
	w.wantRefusal(err, sessions.ErrNotRunning, "the-loop standing start a")
	w.start("a")
	w.awaitUserTexts("a", 1)
	w.submit("a", "a line to see")
	seen, err := w.Peek(t.Context(), sessions.PeekRequest{Ref: ref("a")})
	if err != nil || !strings.Contains(seen.Text, "a line to see") || strings.HasSuffix(seen.Text, "\n") || seen.Row.State != sessions.StateRunning {
		t.Errorf("%+v, %v", seen, err)
	}
	w.killAgent("a")
	row := w.row("a")
	if row.State != sessions.StateEnded || !strings.Contains(row.Detail, "signal") {
		t.Errorf("%+v", row)
	}
	seen, err = w.Peek(t.Context(), sessions.PeekRequest{Ref: ref("a")})
	if err != nil || !strings.Contains(seen.Text, "a line to see") || seen.Row.State != sessions.StateEnded {
		t.Errorf("%+v, %v", seen, err)
	}
}

// A change of routing.tmux.socketName must not make a second agent in the same conversation.
func TestASessionIsFoundOnTheServerThatItsRecordNames(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"}, sessions.Definition{Name: "b"})
	w.start("a")
	elsewhere := tmuxtest.StartIn(t, tmuxtest.Dir(t), tmux.Options{})
	moved := core.New(core.Options{Terminal: elsewhere, Store: registry.New(filepath.Join(w.dir, "state")), Sink: w.events,
		Config: w.config, Harnesses: harness.NewSet(newSmallAgent(w.dir)).Get,
		TerminalAt: func(socket string) sessions.Terminal {
			if socket == tmuxtest.Socket(w.dir) {
				return w.tmux
			}
			return nil
		}})
	ctx := t.Context()
	if row, err := moved.Start(ctx, sessions.StartRequest{Ref: ref("a")}); err != nil || row.Outcome != sessions.OutcomeAlreadyRunning {
		t.Errorf("%+v, %v", row, err)
	}
	if receipt, err := moved.Submit(ctx, sessions.SubmitRequest{Ref: ref("a"), Text: "hello"}); err != nil || receipt != sessions.ReceiptAccepted {
		t.Errorf("%s, %v", receipt, err)
	}
	if seen, err := moved.Peek(ctx, sessions.PeekRequest{Ref: ref("a")}); err != nil || !seen.Row.Running {
		t.Errorf("%+v, %v", seen, err)
	}
	if row, err := moved.Stop(ctx, sessions.StopRequest{Ref: ref("a")}); err != nil || row.Outcome != sessions.OutcomeStopped {
		t.Errorf("%+v, %v", row, err)
	}
	row, err := moved.Start(ctx, sessions.StartRequest{Ref: ref("a")})
	if err != nil || row.Outcome != sessions.OutcomeResumed {
		t.Errorf("%+v, %v", row, err)
	}
	if panes, err := elsewhere.Panes(ctx); err != nil || len(panes) != 1 || panes[0].Mark != row.ID {
		t.Errorf("%+v, %v", panes, err)
	}
}

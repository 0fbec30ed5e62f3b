package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
)

// item is the work item of most tests.
const item = "github:Acme/shop.web#7"

// newWorkItemEnv makes an environment with a registered work item, whose first event has begun a conversation.
func newWorkItemEnv(t testing.TB, change func(*env, *core.Options)) *env {
	t.Helper()
	w := newEnv(t, change)
	w.register(item)
	w.deliver("first", "the first event")
	w.awaitReady(item)
	return w
}

func (w *env) register(name string) {
	w.t.Helper()
	w.reconfigure(func(c *core.Config) {
		c.Defaults.HarnessArgs = map[string][]string{smallagent.Name: {"--reply-delay", "0s"}}
	})
	_, err := w.Register(w.t.Context(), sessions.RegisterRequest{Ref: ref(name), Harness: smallagent.Name, Cwd: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *env) deliver(id, text string) sessions.DeliveryResult {
	w.t.Helper()
	d, err := w.Deliver(w.t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// procFile reads a file of the process in the session's pane, where the system has such files.
func (w *env) procFile(name, file string) []byte {
	w.t.Helper()
	if _, err := os.Stat("/proc/self/" + file); err != nil {
		w.t.Skip("this system does not show how processes were started")
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", w.pane(name).PID, file))
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// agentArgv is how the agent in the session's pane was started.
func (w *env) agentArgv(name string) []string {
	w.t.Helper()
	data := w.procFile(name, "cmdline")
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// forgetConversation has the agent know nothing of the recorded conversation any more.
func (w *env) forgetConversation(name string) {
	w.t.Helper()
	if err := os.Remove(smallagent.TranscriptPath(filepath.Join(w.dir, "agent"), w.record(name).Conversation)); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheFirstEventBeginsTheSessionOfAWorkItem(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	w.register(item)
	if row := w.row(item); row.State != sessions.StateNew || row.Expected || row.Kind != sessions.KindWorkItem {
		t.Errorf("registered: %+v", row)
	}
	d := w.deliver("1", "look at this")
	if d.Row.Outcome != sessions.OutcomeStarted || d.Receipt != sessions.ReceiptAccepted || !d.Row.Running {
		t.Errorf("%+v", d)
	}
	if said := w.awaitUserTexts(item, 1); !slices.Equal(said, []string{"look at this"}) {
		t.Errorf("the conversation began with %q", said)
	}
	w.awaitReady(item)
	if d = w.deliver("2", "and at that"); d.Row.Outcome != sessions.OutcomeDelivered || d.Receipt != sessions.ReceiptAccepted {
		t.Errorf("%+v", d)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"look at this", "and at that"}) {
		t.Errorf("the agent was told %q", said)
	}
	if name := w.pane(item).SessionName; name != "loop-github-acme-shop-web-7" || name != ref(item).TmuxName() {
		t.Errorf("the tmux session is called %q", name)
	}
	w.wantEvents("session.registered", sessions.EventSpawned, sessions.EventDelivered, sessions.EventDelivered)
	for _, e := range w.events.Events() {
		if strings.Contains(fmt.Sprint(e.Fields), "look at") {
			t.Errorf("the text is in the event log: %v", e)
		}
	}
}

func TestThePaneOfAWorkItemKnowsIt(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	env := w.procFile(item, "environ")
	if !strings.Contains("\x00"+string(env), "\x00THE_LOOP_WORK_ITEM="+item+"\x00") {
		t.Error("THE_LOOP_WORK_ITEM is not in its environment")
	}
}

func TestR1_1_R1_2_ARespawnContinuesTheRecordedConversation(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*env){
		"dead":    func(w *env) { w.killAgent(item) },
		"missing": func(w *env) { w.reconfigure(func(c *core.Config) { c.RemainOnExit = false }); w.endPane(item) },
		"stopped": func(w *env) { w.stop(item) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkItemEnv(t, nil)
			first := w.record(item)
			end(w)
			d := w.deliver("second", "-- an event --")
			if d.Row.Outcome != sessions.OutcomeResumed || d.Receipt != sessions.ReceiptAccepted || d.Row.Conversation != first.Conversation {
				t.Errorf("%+v", d)
			}
			argv := w.agentArgv(item)
			if i := slices.Index(argv, "--resume"); i < 0 || argv[i+1] != first.Conversation || argv[len(argv)-1] != "-- an event --" {
				t.Errorf("the agent was started with %q", argv)
			}
			if rec := w.record(item); rec.Conversation != first.Conversation || rec.ID != first.ID {
				t.Errorf("the record is %+v after %+v", rec, first)
			}
			if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "-- an event --"}) {
				t.Errorf("the agent was told %q", said)
			}
			if e := w.lastEvent(sessions.EventRespawned); e.Fields["resumed"] != true {
				t.Errorf("%v", e.Fields)
			}
		})
	}
}

// endPane ends the session's pane behind our back.
func (w *env) endPane(name string) {
	w.t.Helper()
	if err := w.tmux.End(w.t.Context(), w.record(name).Target(), 0); err != nil {
		w.t.Fatal(err)
	}
}

// wantFreshConversation fails unless the last respawn began a fresh conversation with the event, for that reason.
func (w *env) wantFreshConversation(before sessions.Record, d sessions.DeliveryResult, text, why string) {
	w.t.Helper()
	rec := w.record(item)
	if d.Row.Outcome != sessions.OutcomeStarted || rec.ID != before.ID || rec.Conversation == before.Conversation || rec.Conversation != d.Row.Conversation {
		w.t.Errorf("%+v; the record is %+v after %+v", d, rec, before)
	}
	if said := w.awaitUserTexts(item, 1); !slices.Equal(said, []string{text}) {
		w.t.Errorf("the fresh conversation began with %q", said)
	}
	e := w.lastEvent("session.resume_failed")
	if reason, _ := e.Fields["reason"].(string); e.Level != slog.LevelWarn || !strings.Contains(reason, why) {
		w.t.Errorf("%v: %v, want %q", e.Level, e.Fields, why)
	}
	if e := w.lastEvent(sessions.EventRespawned); e.Fields["resumed"] != false {
		w.t.Errorf("%v", e.Fields)
	}
}

func TestR1_3_ResumingCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	before := w.record(item)
	w.reconfigure(func(c *core.Config) { c.Resume = false })
	w.killAgent(item)
	d := w.deliver("2", "an event")
	w.wantFreshConversation(before, d, "an event", "resumeOnRespawn")
	if argv := w.agentArgv(item); slices.Contains(argv, "--resume") || !slices.Contains(argv, "--session-id") {
		t.Errorf("the agent was started with %q", argv)
	}
}

func TestR1_4_AHarnessThatCannotResumeBeginsAFreshConversation(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		a := newSmallAgent(w.dir)
		o.Harnesses = harness.NewSet(harness.Template{Title: "tool", Binary: "/usr/bin/env", Args: []string{runAsAgent + "=1",
			a.Argv[0], "--dir", a.Dir, "--session-id", "{sessionId}", "--reply-delay", "0s", "{harnessArgs}", "{prompt}"}}).Get
	})
	register := func(conversation string) error {
		_, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: item, Harness: "tool", Cwd: w.dir, Conversation: conversation})
		return err
	}
	w.wantRefusal(register("abc"), sessions.ErrCannotResume, "tool has no way to resume")
	if err := register(""); err != nil {
		t.Fatal(err)
	}
	w.deliver("1", "the first event")
	w.awaitReady(item)
	before := w.record(item)
	w.killAgent(item)
	d := w.deliver("2", "an event")
	w.awaitReady(item)
	w.wantFreshConversation(before, d, "an event", "no way to resume")
	if d.Receipt != sessions.ReceiptTyped {
		t.Errorf("a harness without proof: %s", d.Receipt)
	}
}

func TestR1_5_AFlagShapedIDIsNeverGivenToAHarness(t *testing.T) {
	t.Parallel()
	for id, why := range map[string]string{"--dangerously-skip-permissions": "shape", "-r": "shape", "../../etc": "shape", "a b": "shape",
		strings.Repeat("a", 129): "shape", "": "none is recorded"} {
		w := newWorkItemEnv(t, nil)
		w.editRecord(item, func(r *sessions.Record) { r.Conversation = id })
		before := w.record(item)
		w.reconfigure(func(c *core.Config) { c.RemainOnExit = false })
		w.endPane(item)
		d := w.deliver("2", "an event")
		w.wantFreshConversation(before, d, "an event", why)
		if argv := w.agentArgv(item); id != "" && slices.Contains(argv, id) {
			t.Errorf("%q is in %q", id, argv)
		}
	}
	w := newEnv(t, nil)
	_, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: item, Harness: smallagent.Name, Cwd: w.dir, Conversation: "--x"})
	w.wantRefusal(err, sessions.ErrRefused, "does not have the shape")
	w.wantNoRecord(item)
}

func TestR2_1_R2_4_TheProbeSeesWhetherTheResumedAgentLives(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		w := newWorkItemEnv(t, nil)
		w.lengthenProbe()
		w.reconfigure(func(c *core.Config) { c.RemainOnExit = keep })
		before := w.record(item)
		w.endPane(item)
		began := time.Now()
		w.deliver("2", "an event")
		if took := time.Since(began); took < w.config().Probe {
			t.Errorf("keep %t: it was looked at after %s", keep, took)
		}
		w.awaitReady(item)
		w.endPane(item)
		w.forgetConversation(item)
		d := w.deliver("3", "another event")
		w.wantFreshConversation(before, d, "another event", "ended within")
	}
}

func TestR2_5_WithoutAProbeNothingIsWaitedForAndAnEndIsReportedAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.reconfigure(func(c *core.Config) { c.Probe = 0 })
	w.killAgent(item)
	w.forgetConversation(item)
	_, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event"})
	if !errors.Is(err, sessions.ErrInDoubt) {
		t.Fatalf("an agent that ended at once, unprobed: %v", err)
	}
	if e := w.lastEvent(sessions.EventRespawned); e.Fields["resumed"] != true {
		t.Errorf("%v", e.Fields)
	}
	if e := w.lastEvent(sessions.EventDeliveryInDoubt); e.Level != slog.LevelWarn || e.Fields["delivery"] != "2" {
		t.Errorf("%v", e)
	}
	if row := w.row(item); row.State != sessions.StateEnded {
		t.Errorf("%+v", row)
	}
	w.lengthenProbe()
	w.deliver("3", "the next event")
	if e := w.lastEvent("session.ended"); e.Level != slog.LevelWarn || !strings.Contains(fmt.Sprint(e.Fields["detail"]), "ended, with status") {
		t.Errorf("%v", e)
	}
}

func TestR2_2_R2_3_R3_1_AnUnresumableConversationGivesWayToAFreshOneWithTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.lengthenProbe()
	before := w.record(item)
	w.killAgent(item)
	w.forgetConversation(item)
	d := w.deliver("2", "an event")
	w.wantFreshConversation(before, d, "an event", "ended within")
	if again := w.deliver("2", "an event"); again.Row.Outcome != sessions.OutcomeRepeated || again.Receipt != d.Receipt || !again.Row.Running {
		t.Errorf("the same delivery: %+v", again)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); len(said) != 1 {
		t.Errorf("the agent was told %q", said)
	}
}

func TestR3_2_AC3_2_TheFallbackLeavesItsTrail(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.lengthenProbe()
	before := w.record(item)
	w.killAgent(item)
	w.forgetConversation(item)
	w.deliver("2", "an event")
	w.wantEvents("session.registered", sessions.EventSpawned, sessions.EventDelivered, "session.ended", "session.resume_failed",
		sessions.EventRespawned, sessions.EventDelivered)
	failed, respawned := w.lastEvent("session.resume_failed"), w.lastEvent(sessions.EventRespawned)
	if failed.Level != slog.LevelWarn || failed.Fields["conversation"] != before.Conversation || failed.Ref != item {
		t.Errorf("%+v", failed)
	}
	if respawned.Fields["resumed"] != false || respawned.Fields["conversation"] != w.record(item).Conversation {
		t.Errorf("%+v", respawned)
	}
}

func TestAnAgentThatAcceptedTheEventAndThenEndedGetsItOnce(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, func(w *env, o *core.Options) {
		spawns := 0
		o.Terminal = &hookedTerminal{Terminal: o.Terminal, spawned: func(p sessions.Pane) {
			if spawns++; spawns == 2 { // of the resumed one
				w.awaitUserTexts(item, 2)
				w.killAgent(item)
			}
		}}
	})
	w.killAgent(item)
	d := w.deliver("2", "an event")
	if d.Row.Outcome != sessions.OutcomeResumed || d.Receipt != sessions.ReceiptAccepted || d.Row.State != sessions.StateEnded || d.Row.Running {
		t.Errorf("%+v", d)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event"}) {
		t.Errorf("the agent was told %q", said)
	}
	w.deliver("3", "the next")
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event", "the next"}) {
		t.Errorf("the agent was told %q", said)
	}
}

// hookedTerminal is a terminal with something between the core and tmux.
type hookedTerminal struct {
	sessions.Terminal
	spawning func(sessions.Spawn)
	spawned  func(sessions.Pane)
	timesOut atomic.Bool // nothing that looks is answered
}

func (h *hookedTerminal) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	if h.spawning != nil {
		h.spawning(s)
	}
	p, err := h.Terminal.Spawn(ctx, s)
	if err == nil && h.spawned != nil {
		h.spawned(p)
	}
	return p, err
}

func (h *hookedTerminal) Panes(ctx context.Context) ([]sessions.Pane, error) {
	if h.timesOut.Load() {
		return nil, sessions.ErrTerminalTimeout
	}
	return h.Terminal.Panes(ctx)
}

func (h *hookedTerminal) Capture(ctx context.Context, t sessions.Target) (sessions.Screen, error) {
	if h.timesOut.Load() {
		return sessions.Screen{}, sessions.ErrTerminalTimeout
	}
	return h.Terminal.Capture(ctx, t)
}

func TestATmuxThatDoesNotAnswerIsNoAbsenceAndNothingIsSpawned(t *testing.T) {
	t.Parallel()
	var h *hookedTerminal
	spawns := 0
	w := newWorkItemEnv(t, func(_ *env, o *core.Options) {
		h = &hookedTerminal{Terminal: o.Terminal, spawning: func(sessions.Spawn) { spawns++ }}
		o.Terminal = h
	})
	pane := w.pane(item)
	unanswered := func(id string) {
		t.Helper()
		h.timesOut.Store(true)
		_, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: "an event"})
		if !errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt) {
			t.Fatal(err)
		}
		h.timesOut.Store(false)
	}
	unanswered("2")
	if d := w.deliver("2", "an event"); d.Row.Outcome != sessions.OutcomeDelivered || w.pane(item) != pane || spawns != 1 {
		t.Errorf("%+v, %d spawns", d, spawns)
	}
	w.killAgent(item)
	unanswered("3")
	if spawns != 1 {
		t.Errorf("%d spawns without an answer", spawns)
	}
}

func TestANameThatOurOwnAgentTookInBetweenIsDeliveredIntoAndNotKilled(t *testing.T) {
	t.Parallel()
	var taken sessions.Pane
	w := newWorkItemEnv(t, func(v *env, o *core.Options) {
		spawns := 0
		o.Terminal = &hookedTerminal{Terminal: o.Terminal, spawning: func(s sessions.Spawn) {
			if spawns++; spawns != 2 {
				return
			}
			s.Argv = s.Argv[:len(s.Argv)-2] // the late start of a process that died, with another event or none
			var err error
			if taken, err = v.tmux.Spawn(context.WithoutCancel(t.Context()), s); err != nil {
				t.Error(err)
			}
		}}
	})
	before := w.record(item)
	w.reconfigure(func(c *core.Config) { c.RemainOnExit = false })
	w.endPane(item)
	d, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event", Wait: 5 * time.Second})
	if err != nil || d.Row.Outcome != sessions.OutcomeDelivered || w.pane(item).PID != taken.PID {
		t.Fatalf("%+v, %v, pane %+v, want %+v", d, err, w.pane(item), taken)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event"}) {
		t.Errorf("the agent was told %q", said)
	}
	if rec := w.record(item); rec.Conversation != before.Conversation || rec.Status != sessions.StatusRunning {
		t.Errorf("%+v", rec)
	}
}

func TestANameThatSomebodyElseHasIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.reconfigure(func(c *core.Config) { c.RemainOnExit = false })
	w.endPane(item)
	squatter := w.occupyName(item)
	_, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event"})
	w.wantRefusal(err, sessions.ErrNameTaken, squatter.SessionName)
	if panes := w.panes(); len(panes) != 1 || panes[0] != squatter {
		t.Errorf("%+v", panes)
	}
}

func TestAnEventIsHeldWhileTheAgentAsksAndDeliveredWithTheSameIDLater(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.deliver("ask", "ask: may I?")
	w.awaitScreen(item, "a question", func(s smallagent.Screen) bool { return s.State == smallagent.StateAsking })
	q := sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event", Wait: 300 * time.Millisecond}
	var held *sessions.HeldError
	began := time.Now()
	if _, err := w.Deliver(t.Context(), q); !errors.As(err, &held) || held.State != sessions.ViewDialog {
		t.Fatal(err)
	}
	if took := time.Since(began); took < q.Wait {
		t.Errorf("it waited %s", took)
	}
	q.Wait = time.Minute
	done := make(chan error, 1)
	go func() { _, err := w.Deliver(t.Context(), q); done <- err }()
	if _, err := w.Keys(t.Context(), sessions.KeysRequest{Ref: item, Keys: []string{"Escape"}, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); said[len(said)-1] != "an event" || len(said) != 3 {
		t.Errorf("the agent was told %q", said)
	}
}

func TestAnEventThatNoArgumentCanHoldIsTypedIntoTheResumedAgent(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	before := w.record(item)
	w.killAgent(item)
	long := strings.TrimSpace(strings.Repeat("a long event ", 20_000))
	d := w.deliver("2", long)
	if d.Row.Outcome != sessions.OutcomeResumed || d.Receipt != sessions.ReceiptAccepted || w.record(item).Conversation != before.Conversation {
		t.Errorf("%+v", d)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); len(said) != 2 || said[1] != long {
		t.Errorf("the agent was told %.100q", said)
	}
}

func TestAHarnessThatTakesNoFirstMessageHasTheEventTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(w *env, o *core.Options) {
		a := newSmallAgent(w.dir)
		common := []string{runAsAgent + "=1", a.Argv[0], "--dir", a.Dir, "--reply-delay", "0s"}
		o.Harnesses = harness.NewSet(harness.Template{Title: "tool", Binary: "/usr/bin/env", SubmitDelay: 300 * time.Millisecond,
			Args: append(slices.Clone(common), "--session-id", "{sessionId}"), ResumeArgs: append(slices.Clone(common), "--resume", "{sessionId}")}).Get
	})
	if _, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: item, Harness: "tool", Cwd: w.dir}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []sessions.Outcome{sessions.OutcomeStarted, sessions.OutcomeResumed} {
		if d := w.deliver(fmt.Sprint(i), fmt.Sprint("event ", i)); d.Row.Outcome != want || d.Receipt != sessions.ReceiptTyped {
			t.Errorf("%+v, want %s", d, want)
		}
		w.awaitUserTexts(item, i+1)
		w.killAgent(item)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"event 0", "event 1"}) {
		t.Errorf("the agent was told %q", said)
	}
}

func TestADeliveryIsProcessedOnceAlsoWhenManyDeliverItAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	for round, prepare := range []func(){func() {}, func() { w.killAgent(item) }} {
		prepare()
		id, text := fmt.Sprint("id-", round), fmt.Sprint("event ", round)
		var wg sync.WaitGroup
		var processed, repeated atomic.Int64
		for range 8 {
			wg.Go(func() {
				d, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: text, Wait: 20 * time.Second})
				switch {
				case err != nil:
					t.Error(err)
				case d.Row.Outcome == sessions.OutcomeRepeated:
					repeated.Add(1)
				default:
					processed.Add(1)
				}
			})
		}
		wg.Wait()
		if processed.Load() != 1 || repeated.Load() != 7 {
			t.Errorf("round %d: processed %d times, repeated %d", round, processed.Load(), repeated.Load())
		}
		if said := w.transcriptTexts(item, smallagent.TypeUser); len(said) != round+2 {
			t.Errorf("the agent was told %q", said)
		}
		w.awaitReady(item)
	}
}

func TestAClosedSessionIsGoneAndItsDeliveriesAreStillKnown(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	before := w.record(item)
	row, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: item})
	if err != nil || row.Outcome != sessions.OutcomeClosed {
		t.Fatalf("%+v, %v", row, err)
	}
	w.wantNoRecord(item)
	if e := w.lastEvent(sessions.EventClosed); e.Fields["conversation"] != before.Conversation {
		t.Errorf("%+v", e)
	}
	if panes := w.panes(); len(panes) != 0 {
		t.Errorf("%+v", panes)
	}
	_, err = w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event"})
	w.wantRefusal(err, sessions.ErrNotRecorded, "the-loop sessions register "+item)
	w.register(item)
	if d := w.deliver("first", "the first event"); d.Row.Outcome != sessions.OutcomeRepeated || d.Row.State != sessions.StateNew {
		t.Errorf("%+v", d)
	}
}

func TestAReplyToAWorkItemStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	if receipt := w.submit(item, "a reply"); receipt != sessions.ReceiptAccepted {
		t.Error(receipt)
	}
	w.killAgent(item)
	_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: item, Text: "another"})
	w.wantRefusal(err, sessions.ErrNotRunning, "the-loop sessions deliver "+item)
	w.stop(item)
	_, err = w.Submit(t.Context(), sessions.SubmitRequest{Ref: item, Text: "another"})
	w.wantRefusal(err, sessions.ErrNotRunning, item+" is not running")
	if panes := w.panes(); len(panes) != 0 {
		t.Errorf("%+v", panes)
	}
}

func TestAWorkItemsSessionCanBeStartedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	first := w.record(item)
	w.killAgent(item)
	if row := w.start(item); row.Outcome != sessions.OutcomeResumed || row.Conversation != first.Conversation {
		t.Errorf("%+v", row)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); len(said) != 1 {
		t.Errorf("the agent was told %q", said)
	}
}

func TestAnEventThatTmuxDidNotAnswerForIsInDoubtUntilTheAgentsRecordShowsIt(t *testing.T) {
	t.Parallel()
	spy := &countingTerminal{}
	w := newWorkItemEnv(t, withTerminal(spy))
	spy.mu.Lock()
	spy.failAfter = sessions.ErrInDoubt
	spy.mu.Unlock()
	q := sessions.DeliverRequest{Ref: item, DeliveryID: "2", Text: "an event"}
	if _, err := w.Deliver(t.Context(), q); !errors.Is(err, sessions.ErrInDoubt) {
		t.Fatal(err)
	}
	w.awaitUserTexts(item, 2)
	if d, err := w.Deliver(t.Context(), q); err != nil || d.Row.Outcome != sessions.OutcomeRepeated || d.Receipt != sessions.ReceiptAccepted {
		t.Errorf("%+v, %v", d, err)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event"}) {
		t.Errorf("the agent was told %q", said)
	}
}

func TestAWorkItemIsRestartedOntoAChangedEnvironmentInItsConversation(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	before, pane := w.record(item), w.pane(item)
	w.reconfigure(func(c *core.Config) {
		c.Env = func() (sessions.EnvFile, error) {
			return sessions.EnvFile{Configured: true, Values: map[string]string{"TOKEN": "new", "THE_LOOP_WORK_ITEM": "github:x/y#1"}}, nil
		}
	})
	if d := w.Drift(t.Context()); d.Running != 1 || d.Stale != 1 {
		t.Errorf("%+v", d)
	}
	rolled, err := w.RollingRestart(t.Context(), sessions.RollingRestartRequest{All: true})
	if err != nil || len(rolled.Rows) != 1 || rolled.Rows[0].Ref != item || rolled.Rows[0].Outcome != sessions.OutcomeVerified {
		t.Fatalf("%+v, %v", rolled, err)
	}
	if now := w.pane(item); now.ID != pane.ID || w.record(item).Conversation != before.Conversation {
		t.Errorf("%+v after %+v", now, pane)
	}
	w.awaitReady(item)
	if d := w.deliver("2", "an event"); d.Row.Outcome != sessions.OutcomeDelivered {
		t.Errorf("%+v", d)
	}
	if d := w.Drift(t.Context()); d.Stale != 0 {
		t.Errorf("%+v", d)
	}
}

func TestTwoEventsThatComeWhileNothingRunsBothArrive(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.killAgent(item)
	var wg sync.WaitGroup
	for _, text := range []string{"one", "two", "three"} {
		wg.Go(func() {
			if _, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: item, Text: text}); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
	wg.Wait()
	said := w.transcriptTexts(item, smallagent.TypeUser)
	slices.Sort(said)
	if !slices.Equal(said, []string{"one", "the first event", "three", "two"}) {
		t.Errorf("the agent was told %q", said)
	}
}

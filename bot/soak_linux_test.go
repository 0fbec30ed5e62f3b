package bot_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
)

// soakReplies is how many replies TestSoak writes: enough for a look by default; "make soak" has the long form.
var soakReplies = flag.Int("soak", 600, "how many replies TestSoak writes")

const (
	soakSessions = 20
	soakRate     = 15 // replies a second, over all sessions
)

// TestSoak has many sessions talked to while the bot and agents are killed, sockets, calls and disk fail, the configuration is
// broken and Slack's clock jumps. Each reply arrives once, alone and in order, or its receipt says that it did not or may not have.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	s := newSoak(t)
	phase := *soakReplies * 2 / 3
	s.run(phase, s.globalFaults())
	s.endFaultsAndWait()
	before := s.measureResources()
	s.undisturbedSince = time.Now()
	s.run(*soakReplies-phase, nil) // one bot lives through the last third
	s.endFaultsAndWait()
	after := s.measureResources()
	s.checkReplies()
	t.Logf("faults: %s\nresources of one bot before and after %d replies:\n\t%s\n\t%s\nfiles: %s", s.faultLine(), *soakReplies-phase, before, after, s.stateFiles())
	if after.goroutines > before.goroutines+20 || after.descriptors > before.descriptors+10 {
		t.Errorf("goroutines or descriptors grow: %s, then %s", before, after)
	}
}

// soakEnv is a world with many sessions and what was done to it.
type soakEnv struct {
	*env
	botProcess       *botProcess // belongs to whoever plays faults
	clock            *jumpingClock
	sessions         []*soakSession
	kills            int       // of the bot
	undisturbedSince time.Time // from when on nothing is wrong for all sessions

	mu           sync.Mutex // guards the fields that follow
	faults       map[string]int
	playedFaults []playedFault
}

// playedFault is a fault that was played.
type playedFault struct {
	name       string
	began, end time.Time
}

func newSoak(t *testing.T) *soakEnv {
	clock := &jumpingClock{}
	limit := time.Duration(*soakReplies/soakRate)*time.Second*4 + 3*time.Minute
	s := &soakEnv{clock: clock, faults: map[string]int{}}
	s.env = newEnv(t, withoutRateLimits, withoutBot, func(o *envOptions) {
		o.workspace.Clock, o.workspace.FrameLog, o.patience = clock, 1<<17, limit
		o.config = func(p *botConfig) { p.MaxAge = 24 * time.Hour }
	})
	s.botProcess = s.startBotProcess()
	for i := range soakSessions {
		s.sessions = append(s.sessions, &soakSession{testSession: s.startDefined(s.definition(fmt.Sprintf("s%02d", i))), number: i})
	}
	for _, k := range s.sessions {
		k.waitAnnounced()
		k.waitReady()
	}
	return s
}

// run writes n replies, and plays faults meanwhile: those of single sessions, and the given ones.
func (s *soakEnv) run(n int, global []soakFault) {
	s.t.Helper()
	g, ctx := errgroup.WithContext(s.ctx)
	writing, done := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for _, k := range s.sessions {
		writers.Add(1)
		g.Go(func() error {
			defer writers.Done()
			return k.writeReplies(ctx, n/soakSessions)
		})
	}
	go func() { writers.Wait(); done() }() // ends with the group
	g.Go(func() error { return s.injectFaults(writing, 1500*time.Millisecond, s.localFaults()) })
	g.Go(func() error { return s.injectFaults(writing, 1500*time.Millisecond, global) })
	if err := g.Wait(); err != nil {
		s.t.Fatal(err)
	}
	done()
}

// soakFault is something that goes wrong until play returns.
type soakFault struct {
	name string
	run  func(context.Context) error
}

// injectFaults plays faults at random moments, on average one in each time of that length.
func (s *soakEnv) injectFaults(ctx context.Context, every time.Duration, faults []soakFault) error {
	for len(faults) > 0 && sleepCtx(ctx, rand.N(2*every)) {
		f, began := faults[rand.IntN(len(faults))], time.Now()
		if err := f.run(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		s.mu.Lock()
		s.faults[f.name]++
		s.playedFaults = append(s.playedFaults, playedFault{f.name, began, time.Now()})
		s.mu.Unlock()
	}
	return nil
}

// pause waits. It says whether ctx goes on.
func sleepCtx(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// globalFaults are those that every session may feel.
func (s *soakEnv) globalFaults() []soakFault {
	slack := s.Faults()
	call := func(method string, f localslack.APIFault) func() {
		return func() { slack.InjectAPI(method, 1+rand.IntN(5), f) }
	}
	kill := soakFault{"bot killed", s.killBot}
	faults := []soakFault{kill, kill, kill, kill, kill, kill, {"configuration broken", s.breakConfig}, {"disk full", s.fillDisk},
		{"clock", func(context.Context) error { s.clock.jump(20 * time.Minute); return nil }}}
	for name, f := range map[string]func(){
		"socket dropped": slack.Drop, "socket cut": slack.CutMidFrame, "socket closed": slack.GoAway, "socket stalled": slack.Stall,
		"socket dropped in a burst": func() { slack.DropAfter(3) },
		"socket refreshed":          func() { s.Disconnect("refresh_requested") },
		"socket refused":            func() { slack.InjectConnect(3, localslack.RejectUpgrade(408)); slack.Drop() },
		"socket without hello":      func() { slack.InjectConnect(2, localslack.NoHello()); slack.Drop() },
		"acks ignored":              func() { slack.IgnoreAcks(5) },
		"rate limit":                call("*", localslack.RateLimited("1")),
		"posts refused":             call("chat.postMessage", localslack.Error("internal_error")),
		"posts unanswered":          call("chat.postMessage", localslack.CutAfter()),
		"receipts fail":             call("reactions.add", localslack.HTML(503)),
		"reading fails":             call("conversations.replies", localslack.CutBefore()),
	} {
		faults = append(faults, soakFault{name, func(ctx context.Context) error {
			f()
			sleepCtx(ctx, time.Second)
			return s.connected(ctx)
		}})
	}
	return faults
}

func (s *soakEnv) killBot(ctx context.Context) error {
	s.botProcess.kill()
	s.kills++
	sleepCtx(ctx, rand.N(400*time.Millisecond))
	s.botProcess = s.startBotProcess()
	return s.connected(ctx)
}

// connected waits for the bot's connection.
func (s *soakEnv) connected(ctx context.Context) error {
	if err := s.WaitFor(ctx, func() bool { return s.Connections() == 1 }); err != nil {
		return fmt.Errorf("no connection: %w", err)
	}
	return nil
}

// breakConfig has the configuration invalid for a while.
func (s *soakEnv) breakConfig(ctx context.Context) error {
	if err := s.changeBotConfig(func(p *botConfig) { p.Suspended = true }); err != nil {
		return err
	}
	sleepCtx(ctx, rand.N(2*time.Second))
	return s.changeBotConfig(func(p *botConfig) { p.Suspended = false })
}

// changeBotConfig changes the configuration of the bot that runs.
func (s *soakEnv) changeBotConfig(f func(*botConfig)) error {
	s.changeConfig(f)
	data, err := json.Marshal(s.config())
	if err != nil {
		return err
	}
	return replaceConfigFile(filepath.Join(s.botConfig.TmuxDir, configFile), data)
}

// fillDisk lets the bot write no byte to any file for a while, as a full disk does.
func (s *soakEnv) fillDisk(ctx context.Context) error {
	limit := func(n uint64) error {
		return unix.Prlimit(s.botProcess.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY}, nil)
	}
	if err := limit(0); err != nil {
		return err
	}
	sleepCtx(ctx, rand.N(2*time.Second))
	return limit(unix.RLIM_INFINITY)
}

// localFaults are those that one session feels, and no other may.
func (s *soakEnv) localFaults() []soakFault {
	one := func(f func(*soakSession, context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			k := s.sessions[rand.IntN(len(s.sessions))]
			defer k.markDisturbed()()
			return f(k, ctx)
		}
	}
	return []soakFault{{"agent killed", one((*soakSession).killAgent)}, {"dialog", one((*soakSession).openDialog)},
		{"slow turn", one(func(k *soakSession, _ context.Context) error { return k.writeReply("slow: 2s", false) })}}
}

func (s *soakEnv) faultLine() string {
	var line []string
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		line = append(line, fmt.Sprintf("%s %d", name, s.faults[name]))
	}
	return strings.Join(line, ", ")
}

// soakSession is one session with what was written to it.
type soakSession struct {
	*testSession
	number int
	kills  atomic.Int64

	mu           sync.Mutex // guards the fields that follow
	written      []*soakReply
	disturbances timeSpans
}

// soakReply is a reply in all its versions.
type soakReply struct {
	ts      string
	texts   []string
	deleted bool
	at      time.Time
}

// writeReplies writes replies at random moments, and changes or deletes some of them soon after.
func (k *soakSession) writeReplies(ctx context.Context, n int) error {
	for range n {
		if !sleepCtx(ctx, rand.N(2*time.Second*soakSessions/soakRate)) {
			return ctx.Err()
		}
		if err := k.writeReply(soakText(), true); err != nil {
			return err
		}
	}
	return nil
}

// soakText is a text of some shape.
func soakText() string {
	return []string{"short", "two\nlines", "日本語 e\u0301 👩‍👩‍👧", strings.Repeat("long ", 100), strings.Repeat("many\nlines ", 30), "`code` & <tag> \"quoted\""}[rand.IntN(6)]
}

// markDisturbed marks the time until the returned function is called, and a while that the session needs to be back to normal.
func (k *soakSession) markDisturbed() (end func()) {
	from := time.Now()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.disturbances = append(k.disturbances, [2]time.Time{from, time.Now().Add(5 * time.Second)})
	}
}

// writeReply writes a reply under a number of its own. changes: it may be edited or deleted a moment later.
func (k *soakSession) writeReply(text string, changes bool) error {
	k.mu.Lock()
	r := &soakReply{texts: []string{fmt.Sprintf("%s s%02d r%04d", text, k.number, len(k.written))}, at: time.Now()}
	ts, err := k.env.ann.Reply(k.ch, k.root, r.texts[0])
	r.ts = ts
	k.written = append(k.written, r)
	k.mu.Unlock()
	if err != nil || !changes {
		return err
	}
	switch rand.IntN(12) {
	case 0:
		sleepCtx(k.env.ctx, rand.N(100*time.Millisecond))
		r.texts = append(r.texts, r.texts[0]+" edited")
		return k.env.ann.Edit(k.ch, ts, r.texts[1])
	case 1:
		sleepCtx(k.env.ctx, rand.N(100*time.Millisecond))
		r.deleted = true
		return k.env.ann.Delete(k.ch, ts)
	}
	return nil
}

// killAgent kills the agent as a power cut does, and starts the session again.
func (k *soakSession) killAgent(ctx context.Context) error {
	panes, err := k.env.tmux.Panes(ctx)
	if err != nil {
		return err
	}
	for _, p := range panes {
		if p.Mark == k.id && !p.Dead {
			k.kills.Add(1)
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // one that ended is what is wanted
		}
	}
	for {
		if _, err = k.env.core.Start(ctx, sessions.StartRequest{Ref: k.ref}); err == nil && k.screen().State != "" {
			return nil
		}
		if !sleepCtx(k.env.ctx, 20*time.Millisecond) {
			return errors.Join(k.env.ctx.Err(), err)
		}
	}
}

// openDialog has the agent ask, and denies it in the terminal a moment later.
func (k *soakSession) openDialog(ctx context.Context) error {
	if err := k.writeReply("ask: deploy", false); err != nil {
		return err
	}
	deadline := time.Now().Add(5 * time.Second) // the agent may never get to it
	for k.screen().State != smallagent.StateAsking {
		if time.Now().After(deadline) || !sleepCtx(k.env.ctx, 10*time.Millisecond) {
			return k.env.ctx.Err()
		}
	}
	sleepCtx(ctx, rand.N(1500*time.Millisecond))
	return k.closeDialogs()
}

// closeDialogs denies what the agent asks, until it asks nothing.
func (k *soakSession) closeDialogs() error {
	for k.screen().State == smallagent.StateAsking {
		panes, err := k.env.tmux.Panes(k.env.ctx)
		if err != nil {
			return err
		}
		for _, p := range panes {
			if p.Mark == k.id && !p.Dead { // Escape does no harm where the dialog has gone by itself
				k.env.runTmux("send-keys", "-t", p.ID, "Escape")
			}
		}
		if !sleepCtx(k.env.ctx, 50*time.Millisecond) {
			return k.env.ctx.Err()
		}
	}
	return nil
}

// jumpingClock is the real clock, some time ahead.
type jumpingClock struct{ ahead atomic.Int64 }

func (c *jumpingClock) Now() time.Time                         { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *jumpingClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c *jumpingClock) jump(d time.Duration)                   { c.ahead.Add(int64(d)) }

// timeSpans are stretches of time.
type timeSpans [][2]time.Time

func (s timeSpans) overlaps(from, to time.Time) bool {
	return slices.ContainsFunc(s, func(o [2]time.Time) bool { return from.Before(o[1]) && o[0].Before(to) })
}

// replaceConfigFile replaces the file that a bot in a process of its own reads its plan from.
func replaceConfigFile(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

package bot_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/envstate"
	"the-loop/sessions/eventlog"
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
	"the-loop/threads"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/relay"
)

// patience is how long a test waits for what should happen soon.
const patience = 60 * time.Second

// The receipts that the tests look for.
const (
	receiptReceived = "eyes"
	receiptTyped    = "keyboard"
	receiptAccepted = "white_check_mark"
	receiptHeld     = "hourglass_flowing_sand"
	receiptFailed   = "warning"
	receiptInDoubt  = "grey_question"
)

// The programs that the test binary is when it is called as one of these.
const (
	roleAgent = "small-agent"
	roleBytes = "byte-log"
	roleTimes = "byte-times"
	roleBot   = "the-bot"
	roleHook  = "report-hook"
)

func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case roleAgent:
		os.Exit(smallagent.Main(context.Background(), os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	case roleBytes:
		os.Exit(logBytes(os.Args[2]))
	case roleTimes:
		os.Exit(timeBytes(os.Args[2]))
	case roleHook:
		harness.RunHook(context.Background(), os.Args[2:], os.Stdin, os.Stdout)
		os.Exit(0)
	case roleBot:
		os.Exit(runBot(os.Args[2]))
	}
}

// botConfig is all that a bot needs to know, so that one in a process of its own is the same as one in the test.
type botConfig struct {
	Root, APIURL, BotToken, AppToken string
	TmuxDir                          string
	TmuxTimeout                      time.Duration
	Agents                           string // folder of conversations
	Harnesses                        []harness.Template
	Channel                          string
	AllowShared, Suspended           bool
	Users                            []string
	Declared                         []sessions.Definition
	MaxAge                           time.Duration
	Answers                          relay.Answers
	Deaf                             bool          // the small agent has no hook
	Probe                            time.Duration // how long a resumed agent must live
	MaxFile                          int64         // paneInput; 0: 1 MB
	Real                             *realAgent    // optional: an agent's own program beside the small agent
}

func (p botConfig) newCore(sink sessions.Sink, config func() botConfig) (*core.Core, error) {
	tm, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(p.TmuxDir), Dir: filepath.Join(p.TmuxDir, "c"), Timeout: p.TmuxTimeout,
		Environ: p.Real.environ()})
	if err != nil {
		return nil, err
	}
	find := func(name string) (sessions.Harness, error) {
		small := smallagent.Harness{Argv: []string{os.Args[0], roleAgent}, Dir: p.Agents,
			Hook: []string{os.Args[0], roleHook}, ReportDir: filepath.Join(p.Root, "reports"), PermissionDir: filepath.Join(p.Root, "run", "ask")}
		if p.Deaf {
			small.Hook = nil
		}
		all := []sessions.Harness{small}
		if p.Real != nil {
			all = append(all, p.Real.harness())
		}
		for _, h := range config().Harnesses {
			all = append(all, h)
		}
		return harness.NewSet(all...).Get(name)
	}
	return core.New(core.Options{Terminal: tm, Store: registry.New(p.Root), Sink: sink, Harnesses: find,
		Reports: report.Reader{Dir: filepath.Join(p.Root, "reports"), PermissionDir: filepath.Join(p.Root, "run", "ask")},
		Config: func() core.Config {
			return core.Config{Enabled: true, Declared: config().Declared, RemainOnExit: true, Resume: true, Probe: config().Probe,
				Env: p.envFile()}
		}}), nil
}

// envFile is what the sessions' env file declares.
func (p botConfig) envFile() func() (sessions.EnvFile, error) {
	if p.Real != nil {
		return p.Real.envFile()
	}
	return envFileAt(filepath.Join(p.TmuxDir, "env"))
}

// envFileAt is the env file at path; none is as if none were configured.
func envFileAt(path string) func() (sessions.EnvFile, error) {
	return func() (sessions.EnvFile, error) {
		file, err := envstate.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return sessions.EnvFile{}, nil
		}
		return sessions.EnvFile{Configured: true, Values: file.Values(), Malformed: file.Malformed}, err
	}
}

func (p botConfig) threadSettings() threads.Settings {
	return threads.Settings{MaxAge: p.MaxAge, Answers: p.Answers, MaxFile: cmp.Or(p.MaxFile, 1<<20), Emoji: map[binding.Mark]string{binding.MarkReceived: receiptReceived, binding.MarkTyped: receiptTyped,
		binding.MarkAccepted: receiptAccepted, binding.MarkHeld: receiptHeld, binding.MarkFailed: receiptFailed, binding.MarkInDoubt: receiptInDoubt}}
}

// newBot makes one, with its client.
func (p botConfig) newBot(core *core.Core, sink sessions.Sink, config func() botConfig, change func(*bot.Options)) (*bot.Bot, *slack.Client, error) {
	client, err := bot.NewClient(slack.ClientOptions{BotToken: p.BotToken, AppToken: p.AppToken, APIURL: p.APIURL})
	if err != nil {
		return nil, nil, err
	}
	o := bot.Options{Root: p.Root, Client: client, Core: core, Sink: sink, Socket: reconnectFast, Config: func() bot.Config {
		c := config()
		return bot.Config{Channel: c.Channel, AllowShared: c.AllowShared, Users: c.Users, Suspended: c.Suspended, Settings: c.threadSettings()}
	}}
	if change != nil {
		change(&o)
	}
	b, err := bot.New(o)
	return b, client, err
}

// reconnectFast has connections come back soon, so that a fault does not cost a test its time.
func reconnectFast(o *socket.Options) {
	o.BackoffMin, o.BackoffMax, o.Stable = 5*time.Millisecond, 50*time.Millisecond, time.Hour
}

// runBot runs a bot in this process until it is killed, as the plan in the file says.
func runBot(file string) int {
	plans := configReader{file: file}
	p, err := plans.read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config := plans.current
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	sink := eventlog.New(eventlog.DefaultPath(p.Root), func() eventlog.Options { return eventlog.Options{} }, log)
	core, err := p.newCore(sink, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b, _, err := p.newBot(core, sink, config, func(o *bot.Options) {
		o.Log, o.OnStatus = log, func(bot.Status) { writeHeapUse(filepath.Join(p.Root, heapFile), log) }
	})
	if err == nil {
		err = b.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// configFile is the name of the file that a bot in a process of its own reads its plan from, in the world's folder.
const configFile = "plan.json"

// configReader reads a plan again when its file was replaced, as the program does with its configuration.
type configReader struct {
	file string

	mu   sync.Mutex // guards the fields that follow
	last botConfig
	info os.FileInfo
}

// current is the plan as it is now; one that cannot be read is as it was before.
func (r *configReader) current() botConfig {
	p, _ := r.read()
	return p
}

func (r *configReader) read() (botConfig, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.file)
	if err != nil || r.info != nil && os.SameFile(info, r.info) {
		return r.last, err
	}
	data, err := os.ReadFile(r.file)
	var p botConfig
	if err = errors.Join(err, json.Unmarshal(data, &p)); err == nil {
		r.last, r.info = p, info
	}
	return r.last, err
}

// heapFile is the name of the file in the state that such a bot writes how much it holds to.
const heapFile = "heap"

// writeHeapUse writes how much of the heap is in use, in bytes, and how many goroutines there are.
func writeHeapUse(file string, log *slog.Logger) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if err := os.WriteFile(file, fmt.Appendln(nil, m.HeapInuse, runtime.NumGoroutine()), 0o600); err != nil {
		log.Error("cannot note the heap", "err", err)
	}
}

// env is a workspace, a tmux server, a state root and a bot.
type env struct {
	*localslack.Workspace
	t          testing.TB
	ctx        context.Context
	ann        *localslack.Person // on the list
	bob        *localslack.Person // not on it
	ch         string
	tmux       *tmux.Tmux
	core       *core.Core
	events     *eventlogtest.Recorder
	changed    chan struct{}
	logs       *logBuffer
	botOptions func(*bot.Options)

	mu        sync.Mutex // guards the field that follows
	botConfig botConfig

	stopCurrent func() error // of the bot that runs; nil: none does
}

// envOptions changes a world before it is made.
type envOptions struct {
	workspace  localslack.Options
	config     func(*botConfig)
	botOptions func(*bot.Options)
	real       func(dir string) *realAgent // an agent's own program, set up in the world's folder
	noBot      bool
	patience   time.Duration // default [patience]
}

// newEnv makes a world with Ann, who is on the list, and starts the bot.
func newEnv(t testing.TB, changes ...func(*envOptions)) *env {
	t.Helper()
	s := envOptions{workspace: localslack.Options{PingEvery: 200 * time.Millisecond}}
	for _, c := range changes {
		c(&s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.patience, patience))
	t.Cleanup(cancel)
	w := &env{t: t, ctx: ctx, Workspace: localslack.New(s.workspace), events: &eventlogtest.Recorder{}, logs: &logBuffer{},
		changed: make(chan struct{}, 1), botOptions: s.botOptions}
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.ann = w.AddUser("ann", localslack.Named("Ann Smith", "Ann"))
	w.bob = w.AddUser("bob")
	w.ch = w.AddChannel("agents", localslack.Members(w.ann.ID, w.bob.ID, w.BotUserID())).ID
	dir := tmuxtest.Dir(t)
	var agents *realAgent
	if s.real != nil {
		agents = s.real(dir)
	}
	w.tmux = tmuxtest.StartIn(t, dir, tmux.Options{Environ: agents.environ()})
	w.botConfig = botConfig{Root: filepath.Join(dir, "root"), APIURL: w.APIURL(), BotToken: w.BotToken(), AppToken: w.AppToken(),
		TmuxDir: dir, Agents: filepath.Join(dir, "agents"), Channel: w.ch, Users: []string{w.ann.ID}, MaxAge: 15 * time.Minute, Real: agents}
	if s.config != nil {
		s.config(&w.botConfig)
	}
	core, err := w.botConfig.newCore(w.events, w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.core = core
	t.Cleanup(w.checkOnlyThreadPosts)
	t.Cleanup(w.stopBot)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the bot's log:\n%s", w.logs)
		}
	})
	if !s.noBot {
		w.startBot()
	}
	return w
}

// checkOnlyThreadPosts fails when the bot said anything about a session outside of its thread (openclaw/openclaw#10837, #17716).
func (w *env) checkOnlyThreadPosts() {
	for _, m := range w.Messages(w.ch) {
		if m.User == w.BotUserID() && m.ThreadTS == "" && m.Subtype == "" && !isForChannel(m.Text) && !strings.Contains(m.Text, "in `"+w.botConfig.TmuxDir) && !strings.HasSuffix(m.Text, "* was deleted") {
			w.t.Errorf("said in the channel and not in a thread: %q", m.Text)
		}
	}
}

// isForChannel reports what the bot tells the whole channel: the status that somebody asked for, and how sessions stand with a
// changed env file.
func isForChannel(text string) bool {
	return strings.HasPrefix(text, "Connected for ") || strings.Contains(text, "stale environment") || strings.HasPrefix(text, "The env file ") || strings.Contains(text, "the stale ones restarted") ||
		strings.HasPrefix(text, ":white_circle: No env file")
}

// waitProcessed waits until the bot has taken everything in that happened before.
func (w *env) waitProcessed() {
	w.t.Helper()
	ts, err := w.bob.Post(w.ch, "something else")
	if err != nil {
		w.t.Fatal(err)
	}
	w.waitDropped(ts, "top-level")
}

func withoutRateLimits(s *envOptions) { s.workspace.RateLimits = localslack.RateLimitsOff }
func withoutBot(s *envOptions)        { s.noBot = true }

func (w *env) config() botConfig {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.botConfig
	p.Users, p.Declared = slices.Clone(p.Users), slices.Clone(p.Declared)
	return p
}

// changeConfig changes the configuration.
func (w *env) changeConfig(f func(*botConfig)) {
	w.mu.Lock()
	f(&w.botConfig)
	w.mu.Unlock()
	w.reconcileNow()
}

// reconcileNow has the bot compare now and not with its next tick.
func (w *env) reconcileNow() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// startBot runs a bot in this process until stop.
func (w *env) startBot() {
	w.t.Helper()
	b, client, err := w.config().newBot(w.core, w.events, w.config, func(o *bot.Options) {
		o.Changed, o.Log = w.changed, w.logs.logger()
		if w.botOptions != nil {
			w.botOptions(o)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- b.Run(ctx) }()
	forget := w.watchRecords()
	w.stopCurrent = func() error {
		cancel()
		err := <-ran
		forget()
		client.Close()
		return err
	}
}

// watchRecords tells the bot when records change, as the program does, until it is forgotten.
func (w *env) watchRecords() (forget func()) {
	w.t.Helper()
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		w.t.Fatal(err)
	}
	standing := filepath.Join(w.botConfig.Root, "local", "standing")
	if err := errors.Join(os.MkdirAll(standing, 0o700), watch.Add(standing), watch.Add(filepath.Dir(standing))); err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range watch.Events {
			w.reconcileNow()
		}
	})
	wg.Go(func() {
		for range watch.Errors { // some may have been missed
			w.reconcileNow()
		}
	})
	return func() { _ = watch.Close(); wg.Wait() }
}

// stopBot ends the bot in this process, if there is one.
func (w *env) stopBot() {
	w.t.Helper()
	if w.stopCurrent == nil {
		return
	}
	stop := w.stopCurrent
	w.stopCurrent = nil
	if err := stop(); err != nil {
		w.t.Errorf("the bot ended with %v", err)
	}
	w.waitUntil("its socket to be gone", func() bool { return w.Connections() == 0 })
}

// startAndConnect starts the bot again and waits for its connection.
func (w *env) startAndConnect() {
	w.t.Helper()
	w.stopBot()
	w.startBot()
	w.waitUntil("a connection", func() bool { return w.Connections() == 1 })
}

// waitUntil polls for what the workspace, a file or a screen shows.
func (w *env) waitUntil(what string, cond func() bool) {
	w.t.Helper()
	for {
		changed := w.Changed()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Millisecond): // files and screens tell nobody
		case <-w.ctx.Done():
			w.t.Fatalf("waited in vain for %s; events: %s; thread: %s", what, w.eventLines(), w.channelText())
		}
	}
}

// eventLines are the events so far, for a person.
func (w *env) eventLines() string {
	var b strings.Builder
	for _, e := range w.events.Events() {
		fmt.Fprintf(&b, "\n\t%s %s %v", e.Name, e.Ref, e.Fields)
	}
	return b.String()
}

// channelText is everything in the channel, for a person.
func (w *env) channelText() string {
	var b strings.Builder
	for _, m := range w.Messages(w.ch) {
		fmt.Fprintf(&b, "\n\t%s %s %.200q %v", m.TS, m.User, m.Text, m.Reactions)
	}
	return b.String()
}

// testSession is one session with its thread.
type testSession struct {
	env  *env
	ref  sessions.Ref
	id   string
	conv string
	ch   string // where it is announced
	root string // ts of the announcement
}

// definition of a session with the small agent, which keeps the bytes it gets.
func (w *env) definition(name string, flags ...string) sessions.Definition {
	return sessions.Definition{Name: name, Source: sessions.SourceDeclared, Harness: smallagent.Name, Cwd: w.config().TmuxDir,
		HarnessArgs: append([]string{"--log-bytes", "--reply-delay", "10ms"}, flags...), Chat: sessions.ChatDefinition{Enabled: true}}
}

// startSession starts a session with the small agent and waits for its announcement and its readiness.
func (w *env) startSession(name string, flags ...string) *testSession {
	w.t.Helper()
	a := w.startDefined(w.definition(name, flags...))
	a.waitAnnounced()
	a.waitReady()
	return a
}

// startDefined declares a session and starts it.
func (w *env) startDefined(d sessions.Definition) *testSession {
	w.t.Helper()
	w.changeConfig(func(p *botConfig) {
		p.Declared = slices.DeleteFunc(slices.Clone(p.Declared), func(o sessions.Definition) bool { return o.Name == d.Name })
		p.Declared = append(p.Declared, d)
	})
	row, err := w.core.Start(w.ctx, sessions.StartRequest{Ref: sessions.StandingRef(d.Name)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.reconcileNow()
	return &testSession{env: w, ref: row.Ref, id: row.ID, conv: row.Conversation, ch: cmp.Or(d.Chat.Channel, w.ch)}
}

// waitAnnounced waits for the announcement.
func (a *testSession) waitAnnounced() {
	a.env.t.Helper()
	a.env.waitUntil("the announcement of "+string(a.ref), func() bool {
		b, ok := a.binding()
		a.root = b.Root
		return ok && b.Root != ""
	})
}

// waitReady waits until the agent has answered the prompt that it began with.
func (a *testSession) waitReady() {
	a.env.t.Helper()
	a.env.waitUntil("the first turn's end", func() bool { return len(a.entries(smallagent.TypeAgent)) > 0 })
	a.waitState(smallagent.StateReady)
}

// waitState waits for a state of the agent's screen.
func (a *testSession) waitState(state smallagent.State) smallagent.Screen {
	a.env.t.Helper()
	var s smallagent.Screen
	a.env.waitUntil("the agent to be "+string(state), func() bool {
		s = a.screen()
		return s.State == state
	})
	return s
}

func (a *testSession) screen() smallagent.Screen {
	screen, err := a.env.tmux.Capture(a.env.ctx, sessions.Target{Mark: a.id})
	if err != nil {
		return smallagent.Screen{}
	}
	s, _ := smallagent.ParseScreen(screen.Text)
	return s
}

// entries are those of the agent's record with one of the types.
func (a *testSession) entries(types ...string) []smallagent.Entry {
	a.env.t.Helper()
	all, _, err := smallagent.ReadTranscript(smallagent.TranscriptPath(a.env.botConfig.Agents, a.conv), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.env.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e smallagent.Entry) bool { return !slices.Contains(types, e.Type) })
}

// receivedTexts is what the agent was told, in order, without the prompt that it began with.
func (a *testSession) receivedTexts() []string {
	a.env.t.Helper()
	texts := []string{}
	for _, e := range a.entries(smallagent.TypeUser, smallagent.TypeShell, smallagent.TypeCommand) {
		if e.How != smallagent.HowPrompt {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// wantReceived fails unless the agent was told these texts and nothing else.
func (a *testSession) wantReceived(texts ...string) {
	a.env.t.Helper()
	if got := a.receivedTexts(); !slices.Equal(got, append([]string{}, texts...)) {
		a.env.t.Errorf("%s was told %.300q; want %.300q", a.ref, got, texts)
	}
}

// paneInput is what the terminal gave to the agent.
func (a *testSession) paneInput() string {
	a.env.t.Helper()
	data, err := os.ReadFile(smallagent.BytesPath(a.env.botConfig.Agents, a.conv))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.env.t.Fatal(err)
	}
	return string(data)
}

// wantPaneInput fails unless the terminal gave the agent exactly these texts, each pasted whole and submitted.
func (a *testSession) wantPaneInput(texts ...string) {
	a.env.t.Helper()
	want := ""
	for _, text := range texts {
		want += bracketedPaste(text)
	}
	if got := a.paneInput(); got != want {
		same := 0
		for same < min(len(got), len(want)) && got[same] == want[same] {
			same++
		}
		a.env.t.Errorf("the pane of %s got %d bytes, want %d; from byte %d on got %.200q, want %.200q", a.ref, len(got), len(want),
			same, got[same:], want[same:])
	}
}

// bracketedPaste is a text as it comes out of the terminal.
func bracketedPaste(text string) string { return "\x1b[200~" + text + "\x1b[201~\r" }

// reply writes into the thread as Ann.
func (a *testSession) reply(text string, opts ...localslack.PostOption) string {
	a.env.t.Helper()
	return a.replyBy(a.env.ann, text, opts...)
}

func (a *testSession) replyBy(p *localslack.Person, text string, opts ...localslack.PostOption) string {
	a.env.t.Helper()
	ts, err := p.Reply(a.ch, a.root, text, opts...)
	if err != nil {
		a.env.t.Fatal(err)
	}
	return ts
}

// waitReceipt waits for a reaction of the bot on a reply.
func (a *testSession) waitReceipt(ts, emoji string) {
	a.env.t.Helper()
	a.env.waitUntil(fmt.Sprintf("the receipt %s on %s", emoji, ts), func() bool { return a.env.HasReaction(a.ch, ts, emoji) })
}

// replyAccepted writes a reply and waits for it to be accepted.
func (a *testSession) replyAccepted(text string, opts ...localslack.PostOption) string {
	a.env.t.Helper()
	ts := a.reply(text, opts...)
	a.waitReceipt(ts, receiptAccepted)
	return ts
}

// waitDropped waits for the event that says why a message went no further.
func (w *env) waitDropped(ts, reason string) {
	w.t.Helper()
	w.waitUntil(fmt.Sprintf("the drop of %s as %s", ts, reason), func() bool {
		return slices.ContainsFunc(w.events.Events(), func(e sessions.Event) bool {
			return e.Name == threads.EventDropped && e.Fields["ts"] == ts && e.Fields["reason"] == reason
		})
	})
}

// waitBotMessage waits for a message of the bot in the thread that has all of the parts.
func (a *testSession) waitBotMessage(parts ...string) localslack.Message {
	a.env.t.Helper()
	var found localslack.Message
	a.env.waitUntil(fmt.Sprintf("a message with %q", parts), func() bool {
		for _, m := range a.botMessages() {
			if containsAll(m.Text, parts...) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// botMessages are the bot's messages in the thread, but for the root.
func (a *testSession) botMessages() []localslack.Message {
	all := a.env.Thread(a.ch, a.root)
	if len(all) > 0 {
		all = all[1:]
	}
	return slices.DeleteFunc(all, func(m localslack.Message) bool { return m.User != a.env.BotUserID() })
}

// countBotMessages is how many of the bot's messages in the thread have the part.
func (a *testSession) countBotMessages(part string) int {
	n := 0
	for _, m := range a.botMessages() {
		if strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

// binding is what is stored of the thread.
func (a *testSession) binding() (binding.Binding, bool) {
	data, err := os.ReadFile(filepath.Join(a.env.botConfig.Root, "threads", a.id+".json"))
	var b binding.Binding
	return b, err == nil && json.Unmarshal(data, &b) == nil
}

// storedReply is what is stored of one reply.
func (a *testSession) storedReply(ts string) binding.Entry {
	b, _ := a.binding()
	return storedReplyIn(b, ts)
}

// storedReplyIn is what a binding says of a reply. Of one of which only a trace is left it says whether the agent has it, and of one
// that was forgotten that it is settled.
func storedReplyIn(b binding.Binding, ts string) binding.Entry {
	e, whole := b.Replies[ts]
	trace, done := b.Traces[ts]
	switch {
	case whole, !done && chat.CompareTS(ts, b.Cursor) > 0:
		return e
	case trace.Typed:
		return binding.Entry{State: binding.StateSettled, Outcome: binding.OutcomeTyped}
	}
	return binding.Entry{State: binding.StateSettled}
}

// pane is the session's pane.
func (a *testSession) pane() sessions.Pane { return tmuxtest.FindPane(a.env.t, a.env.tmux, a.id) }

// sendKeys types in the terminal as a person does.
func (a *testSession) sendKeys(keys ...string) {
	a.env.t.Helper()
	a.env.runTmux(append([]string{"send-keys", "-t", a.pane().ID}, keys...)...)
}

// runTmux runs a command as an operator would.
func (w *env) runTmux(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, "tmux", append([]string{"-u", "-N", "-S", tmuxtest.Socket(w.botConfig.TmuxDir)}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// tmuxServerPID is the tmux server's process.
func (w *env) tmuxServerPID() int {
	w.t.Helper()
	pid, err := strconv.Atoi(w.runTmux("display-message", "-p", "#{pid}"))
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// logBuffer is a log that a failed test shows.
type logBuffer struct {
	mu sync.Mutex // guards the field that follows
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/screen"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// agentEnv is one real agent in a real tmux with a core above it, a home of its own and a model on loopback.
type agentEnv struct {
	*testing.T
	core    *core.Core
	term    *tmux.Tmux
	store   *registry.Registry
	model   *harnesstest.Model
	harness sessions.Harness
	def     sessions.Definition
	home    string
	root    string
	env     map[string]string // of the agents
	probe   time.Duration     // how long a resumed agent is watched; 0: 2 s
	ref     sessions.Ref      // of the session that is looked at; empty: realRef
}

// newAgentEnv makes the folders and the model; the harness is set by whoever calls, before [agentEnv.newCore].
func newAgentEnv(t *testing.T) *agentEnv {
	t.Helper()
	if testing.Short() {
		t.Skip("the real agents are not run with -short")
	}
	dir, err := filepath.EvalSymlinks(tmuxtest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &agentEnv{T: t, model: harnesstest.NewModel(t), home: filepath.Join(dir, "home"), root: filepath.Join(dir, "root")}
	s.def = sessions.Definition{Name: "real", Cwd: filepath.Join(dir, "work"), Source: sessions.SourceDeclared, AutoStart: true}
	for _, d := range []string{s.home, s.root, s.def.Cwd} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.term = tmuxtest.StartIn(t, dir, tmux.Options{Environ: harnesstest.Environ(t, s.home)})
	return s
}

// newCore makes the core over the harness.
func (s *agentEnv) newCore(h sessions.Harness, env map[string]string) {
	s.harness, s.def.Harness, s.env = h, h.Name(), env
	if s.probe == 0 {
		s.probe = 2 * time.Second
	}
	s.store = registry.New(s.root)
	s.core = core.New(core.Options{Terminal: s.term, Store: s.store, Sink: &eventlogtest.Recorder{}, Harnesses: NewSet(h).Get,
		Reports: report.Reader{Dir: filepath.Join(s.root, "reports"), PermissionDir: filepath.Join(s.root, "run", "ask")},
		Config: func() core.Config {
			return core.Config{Enabled: true, Declared: []sessions.Definition{s.def}, RemainOnExit: true, Resume: true,
				Probe: s.probe, KillGrace: 5 * time.Second, Env: func() (sessions.EnvFile, error) {
					return sessions.EnvFile{Configured: true, Values: s.env}, nil
				}}
		}})
}

var realRef = sessions.StandingRef("real")

func (s *agentEnv) start() sessions.Row {
	s.Helper()
	row, err := s.core.Start(s.Context(), sessions.StartRequest{Ref: realRef})
	if err != nil {
		s.Fatalf("start: %v\n%s", err, s.screen())
	}
	return row
}

func (s *agentEnv) stop() {
	s.Helper()
	if _, err := s.core.Stop(s.Context(), sessions.StopRequest{Ref: realRef}); err != nil {
		s.Fatal(err)
	}
}

func (s *agentEnv) record() sessions.Record {
	s.Helper()
	rec, err := s.store.Load(s.Context(), s.observedRef())
	if err != nil {
		s.Fatal(err)
	}
	return rec
}

// observedRef is the session that is looked at.
func (s *agentEnv) observedRef() sessions.Ref {
	return sessions.Ref(cmp.Or(string(s.ref), string(realRef)))
}

// screen is what the pane shows, for a person.
func (s *agentEnv) screen() string {
	rec, err := s.store.Load(s.Context(), s.observedRef())
	if err != nil {
		return err.Error()
	}
	shown, err := s.term.Capture(context.WithoutCancel(s.Context()), rec.Target())
	if err != nil {
		return err.Error()
	}
	return strings.Join(screen.LastLines(screen.Lines(shown), 60), "\n")
}

// describeView returns what the harness makes of the screen, and where the cursor is.
func (s *agentEnv) describeView() string {
	ctx := context.WithoutCancel(s.Context())
	rec, err := s.store.Load(ctx, realRef)
	if err != nil {
		return err.Error()
	}
	shown, err := s.term.Capture(ctx, rec.Target())
	if err != nil {
		return err.Error()
	}
	view := s.harness.Capabilities().ParseScreen(shown)
	return fmt.Sprintf("it is %s, with %q in the box, the cursor at %d,%d", view.State, view.Box, shown.CursorX, shown.CursorY)
}

// view is the screen as the harness reads it.
func (s *agentEnv) view() sessions.View {
	s.Helper()
	shown, err := s.term.Capture(s.Context(), s.record().Target())
	if err != nil {
		s.Fatal(err)
	}
	return s.harness.Capabilities().ParseScreen(shown)
}

// waitUntil waits for a condition, and shows the screen when it does not come.
func (s *agentEnv) waitUntil(what string, ok func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 90*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			s.Fatalf("waited in vain: %s (the model was told %.300q)\n%s\n%s", what, s.model.UserTexts(), s.describeView(), s.screen())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *agentEnv) waitState(want sessions.ViewState) {
	s.Helper()
	s.waitUntil("the screen is "+string(want), func() bool { return s.view().State == want })
}

// waitIdle waits until the screen has been ready for a while: it still is for a moment after a text went to the model, and some
// commands are refused while a turn runs.
func (s *agentEnv) waitIdle() {
	s.Helper()
	s.waitSteady(sessions.ViewReady)
}

// waitSteady waits until the screen has been in a state for a while: what is drawn anew may look like another for a moment.
func (s *agentEnv) waitSteady(want sessions.ViewState) {
	s.Helper()
	var since time.Time
	s.waitUntil("the screen stays "+string(want), func() bool {
		if s.view().State != want {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > 1500*time.Millisecond
	})
}

// submit sends one text as the bot does, again while it is held, and returns its receipt.
func (s *agentEnv) submit(text string) sessions.Receipt {
	s.Helper()
	var receipt sessions.Receipt
	s.waitUntil("the text is taken: "+sessions.Truncate(text, 60), func() bool {
		var err error
		receipt, err = s.core.Submit(s.Context(), sessions.SubmitRequest{Ref: realRef, Text: text, Sender: "ann"})
		if held := (*sessions.HeldError)(nil); errors.As(err, &held) {
			return false
		}
		if err != nil {
			s.Fatalf("say %q: %v\n%s", sessions.Truncate(text, 60), err, s.screen())
		}
		return true
	})
	return receipt
}

// normalizeSpace makes texts comparable: agents trim lines and turn tabs into spaces.
func normalizeSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// pasteWrapper is what newer agents put around long pastes.
var pasteWrapper = regexp.MustCompile(`</?pasted_content\b[^>]*>`)

// timesReceived reports how often the model was told a text.
func (s *agentEnv) timesReceived(text string) int {
	n := 0
	for _, h := range s.model.UserTexts() {
		if normalizeSpace(pasteWrapper.ReplaceAllString(h, " ")) == normalizeSpace(text) {
			n++
		}
	}
	return n
}

// mixedTexts are replies of every shape that people send.
func mixedTexts() []string {
	return []string{
		"y", "two words", "first line\nsecond line\n\nfourth line", "日本語のテキストと 한국어 and العربية",
		"family 👩‍👩‍👧‍👦 thumbs 👍🏽 flag 🏴󠁧󠁢󠁥󠁮󠁧󠁿 done", "a\ttab\tand\n\tan indented line", `"double" 'single' ` + "`tick`" + ` \back $(sub) ${var} %s`,
		"!touch RAN", "  !touch RAN", "/context", "/tmp/file is a path", "exit", ":wq", "ends with a semicolon;", "# a heading\n- a list",
		"<b>tags</b> & {\"json\": [1, 2]}", strings.Repeat("line of a long paste, with some words in it\n", 950), strings.Repeat("x", 3000),
		"@nobody look at this", "done.",
	}
}

// asTyped is a text as the core types it for an agent with such commands.
func asTyped(text string, traits sessions.Capabilities) string {
	bare := strings.TrimSpace(text)
	for _, p := range traits.CommandPrefixes {
		if strings.HasPrefix(bare, p) {
			return `From "ann": ` + bare
		}
	}
	for _, w := range traits.CommandWords {
		if bare == w {
			return `From "ann": ` + bare
		}
	}
	return text
}

// submitAll sends every shape, each acknowledged as want, and the model must have heard each once.
func (s *agentEnv) submitAll(want sessions.Receipt, texts []string) {
	s.Helper()
	for _, text := range texts {
		if got := s.submit(text); got != want {
			s.Errorf("%q: %s, want %s", sessions.Truncate(text, 40), got, want)
		}
	}
	s.waitUntil("the last text reaches the model", func() bool { return s.timesReceived("done.") > 0 })
	times := map[string]int{}
	for _, text := range texts {
		times[normalizeSpace(asTyped(text, s.harness.Capabilities()))]++
	}
	for text, want := range times {
		if n := s.timesReceived(text); n != want {
			s.Errorf("the model heard %q %d times, not %d", sessions.Truncate(text, 60), n, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.def.Cwd, "RAN")); err == nil {
		s.Error("a leading ! ran a command")
	}
}

// newClaudeAgentEnv is Claude Code at its first start in this home, past what only a person can do there (theme, key).
func newClaudeAgentEnv(t *testing.T) *agentEnv {
	s := newAgentEnv(t)
	a := harnesstest.Claude(t, s.home, s.model)
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.newCore(claude.Harness{Binary: a.Binary, SettingsDir: filepath.Join(s.root, "run", "claude"), ReportDir: filepath.Join(s.root, "reports"),
		Hook: []string{test, hookRole}, PermissionDir: filepath.Join(s.root, "run", "ask"), AcceptTrust: true, Home: s.home}, a.Env)
	return s
}

func TestRealClaudeAcceptsEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	s.waitState(sessions.ViewReady) // no dialog was in the way
	s.submitAll(sessions.ReceiptAccepted, mixedTexts())
}

// One text at a time waits in its queue: another one might overtake it at the end of the turn.
func TestRealClaudeQueuesWhileItWorks(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	s.submit("[[wait 15000]] think")
	s.waitState(sessions.ViewWorking)
	began := time.Now()
	if got := s.submit("queued one"); got != sessions.ReceiptAccepted {
		t.Errorf("while it works: %s", got)
	}
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the queue took %s: the turn was waited for", took)
	}
	_, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "too soon"})
	if held := (*sessions.HeldError)(nil); !errors.As(err, &held) || held.State != sessions.ViewWorking {
		t.Errorf("while one waits: %v", err)
	}
	long := strings.Repeat("a long text for the queue\n", 800)
	rest := []string{"yes", "yes", long, "!touch RAN"}
	for _, text := range rest {
		if got := s.submit(text); got != sessions.ReceiptAccepted {
			t.Errorf("%q: %s", sessions.Truncate(text, 40), got)
		}
	}
	s.waitUntil("the last one reaches the model", func() bool { return s.timesReceived(`From "ann": !touch RAN`) == 1 })
	for text, n := range map[string]int{"queued one": 1, "yes": 2, long: 1, "too soon": 0} {
		if got := s.timesReceived(text); got != n {
			t.Errorf("the model heard %q %d times, not %d", sessions.Truncate(text, 40), got, n)
		}
	}
}

func TestRealClaudesPermissionDialogIsNeverAnsweredByAReply(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.submit("[[run touch " + marker + "]]")
	s.waitState(sessions.ViewDialog)
	_, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "is it done?"})
	var held *sessions.HeldError
	if !errors.As(err, &held) || !strings.Contains(strings.Join(held.Lines, "\n"), "touch") {
		t.Fatalf("a reply at a dialog: %v (lines %q)", err, held)
	}
	s.testKeysAtDialog(marker)
	if _, err := s.core.Keys(t.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		t.Fatal(err)
	}
	if got := s.submit("is it done?"); got != sessions.ReceiptAccepted {
		t.Errorf("after the dialog: %s", got)
	}
	s.waitUntil("the held reply reaches the model", func() bool { return s.timesReceived("is it done?") == 1 })
	if _, err := os.Stat(marker); err == nil {
		t.Fatal("the command ran")
	}
}

func TestRealClaudesClearIsFollowedAndItsConversationResumed(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	first := s.start().Conversation
	s.submit("before the clear")
	s.waitUntil("/clear is taken", func() bool {
		receipt, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true})
		held := (*sessions.HeldError)(nil)
		if err != nil && !errors.As(err, &held) || err == nil && receipt != sessions.ReceiptAccepted {
			t.Fatalf("/clear: %s, %v", receipt, err)
		}
		return err == nil
	})
	s.submit("after the clear")
	s.waitUntil("the record has the new conversation", func() bool { return s.record().Conversation != first })
	second := s.record().Conversation
	s.waitUntil("the answer is there", func() bool { return s.timesReceived("after the clear") == 1 && s.view().State == sessions.ViewReady })
	s.stop()
	row := s.start()
	if row.Outcome != sessions.OutcomeResumed || row.Conversation != second {
		t.Errorf("start: %s %s, want %s resumed", row.Outcome, row.Conversation, second)
	}
	s.submit("after the restart")
	s.waitUntil("the resumed conversation goes on", func() bool { return s.timesReceived("after the restart") == 1 })
	if s.timesReceived("after the clear") != 1 || s.timesReceived("before the clear") != 0 {
		t.Errorf("the model heard %q", s.model.UserTexts())
	}
}

func TestRealClaudeThatCannotResumeEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.probe = 10 * time.Second // it needs 0.3 s on an idle machine
	s.start()
	s.stop()
	rec := s.record()
	rec.Conversation = "00000000-0000-4000-8000-00000000dead"
	if err := s.store.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	row := s.start()
	if row.Outcome != sessions.OutcomeStarted || row.Conversation == rec.Conversation {
		t.Errorf("start: %s %s, want a fresh conversation", row.Outcome, row.Conversation)
	}
	s.submit("hello")
}

// TestRealClaudesTrustDialogHoldsEveryText has a folder that nobody trusted: the dialog holds every text.
func TestRealClaudesTrustDialogHoldsEveryText(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	c := s.harness.(claude.Harness)
	c.AcceptTrust = false
	s.newCore(c, s.env)
	s.start()
	s.waitState(sessions.ViewDialog)
	_, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "hello"})
	if held := (*sessions.HeldError)(nil); !errors.As(err, &held) {
		t.Errorf("a text at the trust dialog: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(s.home, ".claude.json"))
	var known struct{ Projects map[string]map[string]any }
	if err != nil || json.Unmarshal(data, &known) != nil || known.Projects[s.def.Cwd]["hasTrustDialogAccepted"] == true {
		t.Errorf("the folder was trusted: %s, %v", data, err)
	}
}

// chatKeyPress is the submit key that [claude.Harness.AddChatKey] adds.
const chatKeyPress = "\x18\x19"

// chatKeyClaude is Claude Code with the key that its sessions were started with.
type chatKeyClaude struct{ claude.Harness }

func (c chatKeyClaude) Capabilities() sessions.Capabilities {
	traits := c.Harness.Capabilities()
	traits.Submit, traits.SubmitDelay = chatKeyPress, 500*time.Millisecond
	return traits
}

// TestRealClaudesChatKeyAnswersNoDialog delivers past every look, as if the dialog had opened in between.
func TestRealClaudesChatKeyAnswersNoDialog(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	c := s.harness.(claude.Harness)
	if added, err := c.AddChatKey(nil); err != nil || !added {
		t.Fatalf("AddChatKey: %v, %v", added, err)
	}
	s.newCore(chatKeyClaude{c}, s.env)
	s.start()
	for _, text := range []string{"one", "two\nlines", "!touch RAN", strings.Repeat("a long text ", 500)} {
		if got := s.submit(text); got != sessions.ReceiptAccepted {
			t.Errorf("%q: %s", sessions.Truncate(text, 40), got)
		}
	}
	if key, _, err := c.SubmitKey(t.Context(), s.record().AgentConversation()); err != nil || key != chatKeyPress {
		t.Errorf("SubmitKey = %q, %v", key, err)
	}
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.submit("[[run touch " + marker + "]]")
	s.waitState(sessions.ViewDialog)
	for range 3 {
		err := s.term.Paste(t.Context(), sessions.Paste{Target: s.record().Target(), Text: "yes", Submit: chatKeyPress, Delay: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.waitState(sessions.ViewDialog)
	if _, err := s.core.Keys(t.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		t.Fatal(err)
	}
	s.submit("and now?")
	s.waitUntil("the next text reaches the model", func() bool { return s.timesReceived("and now?") == 1 })
	if _, err := os.Stat(marker); err == nil {
		t.Error("the key approved the command")
	}
}

// sendKeys gives keys to the pane as a person at the terminal does.
func (s *agentEnv) sendKeys(keys ...string) {
	s.Helper()
	argv := append([]string{"-S", tmuxtest.Socket(filepath.Dir(s.home)), "send-keys", "-t", s.record().Pane}, keys...)
	if out, err := exec.CommandContext(s.Context(), "tmux", argv...).CombinedOutput(); err != nil {
		s.Fatalf("send-keys: %v: %s", err, out)
	}
}

package bot_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/bot"
	"the-loop/bot/command"
	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/loop"
	"the-loop/sessions/registry"
)

// secret is a value of the environment that must be posted nowhere.
const secret = "hunter2hunter2"

// botEnv is a world in which sessions are made and ended in Slack.
type botEnv struct {
	*env
	limits atomic.Pointer[command.Limits]
}

// botEnvOptions changes a life before its bot starts.
type botEnvOptions struct {
	envOptions
	limits  command.Limits
	slow    time.Duration // creating a session takes that much longer
	noStart bool          // the bot is started by the test
}

// newBotEnv makes a workspace with an app as its manifest says, and starts the bot. Ann is on the list, Bob is not.
func newBotEnv(t testing.TB, changes ...func(*botEnvOptions)) *botEnv {
	t.Helper()
	s := botEnvOptions{envOptions: envOptions{workspace: localslack.Options{PingEvery: 200 * time.Millisecond, RateLimits: localslack.RateLimitsOff}}}
	manifest, err := bot.AppManifest("/the-loop", "the-loop")
	if err = errors.Join(err, s.workspace.ApplyManifest(manifest)); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		c(&s)
	}
	w := newEnv(t, func(o *envOptions) { o.workspace, o.config, o.noBot = s.workspace, s.config, true })
	l := &botEnv{env: w}
	l.limits.Store(&s.limits)
	w.core = l.newCore(s.slow)
	w.botOptions = func(o *bot.Options) {
		config := o.Config
		o.Config = func() bot.Config { return l.config(config()) }
		o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		if s.botOptions != nil {
			s.botOptions(o)
		}
	}
	if !s.noStart {
		w.startBot()
		w.waitUntil("a connection", func() bool { return w.Connections() == 1 })
	}
	return l
}

func (l *botEnv) config(c bot.Config) bot.Config {
	c.Create, c.Harnesses = *l.limits.Load(), []string{smallagent.Name, "other"}
	c.DefaultHarness, c.DefaultCwd = smallagent.Name, l.botConfig.TmuxDir
	return c
}

func (l *botEnv) newCore(slow time.Duration) *core.Core {
	p := l.botConfig
	agents := harness.NewSet(smallagent.Harness{Argv: []string{os.Args[0], roleAgent}, Dir: p.Agents},
		harness.Template{Title: "other", Binary: filepath.Join(p.TmuxDir, "not-there"), Args: []string{"{prompt}"}})
	return core.New(core.Options{Terminal: l.tmux, Store: slowStore{registry.New(p.Root), slow}, Sink: l.events, Harnesses: agents.Get,
		Config: func() core.Config {
			return core.Config{Enabled: true, Declared: l.env.config().Declared, RemainOnExit: true, Resume: true, ChatService: "Slack",
				KillGrace: 2 * time.Second, Probe: p.Probe, Env: envFileAt(filepath.Join(p.TmuxDir, "env")), Defaults: sessions.Defaults{Harness: smallagent.Name, Cwd: p.TmuxDir,
					HarnessArgs: map[string][]string{smallagent.Name: {"--log-bytes", "--reply-delay", "10ms"}}}}
		}})
}

// slowStore makes creating a session slower.
type slowStore struct {
	sessions.Store
	by time.Duration
}

func (s slowStore) Lock(ctx context.Context, id, verb string) (func(), error) {
	if verb == "create" {
		loop.Sleep(ctx, s.by) // the work itself
	}
	return s.Store.Lock(ctx, id, verb)
}

// slashAnswer gives a command as Ann and returns what she is answered.
func (l *botEnv) slashAnswer(text string) string {
	l.t.Helper()
	before := len(l.Ephemerals(l.ann.ID))
	l.runCommand(text)
	l.waitUntil("an answer to "+text, func() bool { return len(l.Ephemerals(l.ann.ID)) > before })
	return l.Ephemerals(l.ann.ID)[before].Text
}

// statusAnswer gives the command of that name and returns what the channel is told, or where Slack does not take that, Ann.
func (l *botEnv) statusAnswer() string {
	l.t.Helper()
	whispers, posts := len(l.Ephemerals(l.ann.ID)), l.statusPosts()
	l.runCommand("status")
	var told string
	l.waitUntil("the status", func() bool {
		if e := l.Ephemerals(l.ann.ID); len(e) > whispers {
			told = e[whispers].Text
		} else if p := l.statusPosts(); len(p) > len(posts) {
			told = p[len(posts)]
		}
		return told != ""
	})
	return told
}

// statusPosts are those that the channel was told.
func (l *botEnv) statusPosts() (texts []string) {
	for _, m := range l.Messages(l.ch) {
		if m.User == l.BotUserID() && strings.HasPrefix(m.Text, "Connected for ") {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

func (l *botEnv) runCommand(text string) {
	l.t.Helper()
	if _, err := l.ann.Slash(l.ctx, l.ch, "/the-loop", text); err != nil {
		l.t.Fatal(err)
	}
}

// wantSlashAnswer gives a command whose answer must have all of the parts.
func (l *botEnv) wantSlashAnswer(text string, parts ...string) string {
	l.t.Helper()
	got := l.slashAnswer(text)
	if !containsAll(got, parts...) {
		l.t.Errorf("%s is answered %q; want %q in it", text, got, parts)
	}
	return got
}

// waitModal waits for Ann's topmost modal to have all of the parts, and returns it.
func (l *botEnv) waitModal(parts ...string) localslack.View {
	l.t.Helper()
	var v localslack.View
	l.waitUntil("a modal with "+strings.Join(parts, ", "), func() bool {
		open := l.Views(l.ann.ID)
		if len(open) == 0 {
			return false
		}
		v = open[len(open)-1]
		return containsAll(string(v.Blocks), parts...)
	})
	return v
}

// submitModal fills a modal in and returns what is wrong with it.
func (l *botEnv) submitModal(v localslack.View, values map[string]string) map[string]string {
	l.t.Helper()
	wrong, err := l.ann.Submit(l.ctx, v.ID, values)
	if err != nil {
		l.t.Fatal(err)
	}
	return wrong
}

// row is a session's row; one with an empty ref when there is none.
func (l *botEnv) row(name string) sessions.Row {
	l.t.Helper()
	rows, err := l.core.List(l.ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	if i := slices.IndexFunc(rows, func(r sessions.Row) bool { return r.Name == name }); i >= 0 {
		return rows[i]
	}
	return sessions.Row{}
}

// startedSession is one that runs, with its thread.
func (l *botEnv) startedSession(name string) *testSession {
	l.t.Helper()
	r := l.row(name)
	a := &testSession{env: l.env, ref: r.Ref, id: r.ID, conv: r.Conversation, ch: l.ch}
	a.waitAnnounced()
	a.waitReady()
	return a
}

// createSession creates a session in Slack and waits for it.
func (l *botEnv) createSession(name string) *testSession {
	l.t.Helper()
	l.wantSlashAnswer("create "+name, "started")
	return l.startedSession(name)
}

// waitAnnouncement waits for a session's announcement to have all of the parts and exactly these buttons.
func (a *testSession) waitAnnouncement(buttons string, parts ...string) {
	a.env.t.Helper()
	a.env.waitUntil("the announcement to show "+buttons+" and "+strings.Join(parts, ", "), func() bool {
		m, _ := a.env.Message(a.env.ch, a.root)
		return containsAll(m.Text, parts...) && buttonLabels(m.Blocks) == buttons
	})
}

// buttonLabels are those of a message's buttons.
func buttonLabels(blocks json.RawMessage) string {
	var list []struct {
		Type     string
		Elements []struct{ Text struct{ Text string } }
	}
	if json.Unmarshal(blocks, &list) != nil {
		return ""
	}
	var all []string
	for _, b := range list {
		for _, e := range b.Elements {
			if b.Type == "actions" {
				all = append(all, e.Text.Text)
			}
		}
	}
	return strings.Join(all, " ")
}

// pressButton presses a button of the announcement as Ann.
func (a *testSession) pressButton(action string) {
	a.env.t.Helper()
	if err := a.env.ann.Click(a.env.ctx, a.env.ch, a.root, action); err != nil {
		a.env.t.Fatal(err)
	}
}

// waitEphemeral waits for Ann to be told something in the thread that has all of the parts.
func (a *testSession) waitEphemeral(parts ...string) localslack.Ephemeral {
	a.env.t.Helper()
	var found localslack.Ephemeral
	a.env.waitUntil("a whisper with "+strings.Join(parts, ", "), func() bool {
		for _, e := range a.env.Ephemerals(a.env.ann.ID) {
			if e.ThreadTS == a.root && containsAll(e.Text, parts...) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// checkSecretNotPosted fails when a secret was posted to anybody.
func (l *botEnv) checkSecretNotPosted() {
	l.t.Helper()
	for _, m := range l.Messages(l.ch) {
		if m.User == l.BotUserID() && strings.Contains(m.Text+string(m.Blocks), secret) {
			l.t.Errorf("posted a secret: %.300q", m.Text)
		}
	}
	for _, e := range l.Ephemerals(l.ann.ID) {
		if strings.Contains(e.Text+string(e.Blocks), secret) {
			l.t.Errorf("whispered a secret: %.300q", e.Text)
		}
	}
}

// countEvents is how many events of that name there were.
func (l *botEnv) countEvents(name string) int {
	return len(slices.DeleteFunc(l.events.Events(), func(e sessions.Event) bool { return e.Name != name }))
}

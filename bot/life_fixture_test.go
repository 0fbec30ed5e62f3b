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
	"the-loop/sessions/registry"
)

// secret is a value of the environment that must be posted nowhere.
const secret = "hunter2hunter2"

// life is a world in which sessions are made and ended in Slack.
type life struct {
	*world
	limits atomic.Pointer[command.Limits]
}

// lifeSetup changes a life before its bot starts.
type lifeSetup struct {
	setup
	limits command.Limits
	slow   time.Duration // creating a session takes that much longer
	late   bool          // the bot is started by the test
}

// newLife makes a workspace with an app as its manifest says, and starts the bot. Ann is on the list, Bob is not.
func newLife(t testing.TB, changes ...func(*lifeSetup)) *life {
	t.Helper()
	s := lifeSetup{setup: setup{workspace: localslack.Options{PingEvery: 200 * time.Millisecond, RateLimits: localslack.RateLimitsOff}}}
	manifest, err := bot.AppManifest("/the-loop", "the-loop")
	if err = errors.Join(err, s.workspace.ApplyManifest(manifest)); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		c(&s)
	}
	w := newWorld(t, func(o *setup) { o.workspace, o.plan, o.noBot = s.workspace, s.plan, true })
	l := &life{world: w}
	l.limits.Store(&s.limits)
	w.core = l.newCore(s.slow)
	w.options = func(o *bot.Options) {
		config := o.Config
		o.Config = func() bot.Config { return l.config(config()) }
		o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		if s.options != nil {
			s.options(o)
		}
	}
	if !s.late {
		w.start()
		w.until("a connection", func() bool { return w.Connections() == 1 })
	}
	return l
}

func (l *life) config(c bot.Config) bot.Config {
	c.Create, c.Harnesses = *l.limits.Load(), []string{smallagent.Name, "other"}
	c.DefaultHarness, c.DefaultCwd = smallagent.Name, l.plan.TmuxDir
	return c
}

func (l *life) newCore(slow time.Duration) *core.Core {
	p := l.plan
	agents := harness.NewSet(smallagent.Harness{Argv: []string{os.Args[0], roleAgent}, Dir: p.Agents},
		harness.Template{Title: "other", Binary: filepath.Join(p.TmuxDir, "not-there"), Args: []string{"{prompt}"}})
	return core.New(core.Options{Terminal: l.tm, Store: slowStore{registry.New(p.Root), slow}, Sink: l.events, Harnesses: agents.Get,
		Config: func() core.Config {
			return core.Config{Enabled: true, Declared: l.world.config().Declared, RemainOnExit: true, Resume: true, ChatService: "Slack",
				KillGrace: 2 * time.Second, Probe: p.Probe, Env: envOf(filepath.Join(p.TmuxDir, "env")), Defaults: core.Defaults{Harness: smallagent.Name, Cwd: p.TmuxDir,
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
		time.Sleep(s.by) // the work itself, not a wait of the test
	}
	return s.Store.Lock(ctx, id, verb)
}

// slash gives a command as Ann and returns what she is answered.
func (l *life) slash(text string) string {
	l.t.Helper()
	before := len(l.Ephemerals(l.ann.ID))
	l.command(text)
	l.until("an answer to "+text, func() bool { return len(l.Ephemerals(l.ann.ID)) > before })
	return l.Ephemerals(l.ann.ID)[before].Text
}

// status gives the command of that name and returns what the channel is told, or where Slack does not take that, Ann.
func (l *life) status() string {
	l.t.Helper()
	whispers, posts := len(l.Ephemerals(l.ann.ID)), l.statuses()
	l.command("status")
	var told string
	l.until("the status", func() bool {
		if e := l.Ephemerals(l.ann.ID); len(e) > whispers {
			told = e[whispers].Text
		} else if p := l.statuses(); len(p) > len(posts) {
			told = p[len(posts)]
		}
		return told != ""
	})
	return told
}

// statuses are those that the channel was told.
func (l *life) statuses() (texts []string) {
	for _, m := range l.Messages(l.ch) {
		if m.User == l.BotUserID() && strings.HasPrefix(m.Text, "Connected for ") {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

func (l *life) command(text string) {
	l.t.Helper()
	if _, err := l.ann.Slash(l.ctx, l.ch, "/the-loop", text); err != nil {
		l.t.Fatal(err)
	}
}

// says gives a command whose answer must have all of the parts.
func (l *life) says(text string, parts ...string) string {
	l.t.Helper()
	got := l.slash(text)
	if !contains(got, parts...) {
		l.t.Errorf("%s is answered %q; want %q in it", text, got, parts)
	}
	return got
}

// view waits for Ann's topmost modal to have all of the parts, and returns it.
func (l *life) view(parts ...string) localslack.View {
	l.t.Helper()
	var v localslack.View
	l.until("a modal with "+strings.Join(parts, ", "), func() bool {
		open := l.Views(l.ann.ID)
		if len(open) == 0 {
			return false
		}
		v = open[len(open)-1]
		return contains(string(v.Blocks), parts...)
	})
	return v
}

// submit fills a modal in and returns what is wrong with it.
func (l *life) submit(v localslack.View, values map[string]string) map[string]string {
	l.t.Helper()
	wrong, err := l.ann.Submit(l.ctx, v.ID, values)
	if err != nil {
		l.t.Fatal(err)
	}
	return wrong
}

// row is a session's row; one with an empty ref when there is none.
func (l *life) row(name string) sessions.Row {
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

// session is one that runs, with its thread.
func (l *life) session(name string) *agent {
	l.t.Helper()
	r := l.row(name)
	a := &agent{w: l.world, ref: r.Ref, id: r.ID, conv: r.Conversation, ch: l.ch}
	a.announced()
	a.ready()
	return a
}

// make creates a session in Slack and waits for it.
func (l *life) make(name string) *agent {
	l.t.Helper()
	l.says("create "+name, "started")
	return l.session(name)
}

// shows waits for a session's announcement to have all of the parts and exactly these buttons.
func (a *agent) shows(buttons string, parts ...string) {
	a.w.t.Helper()
	a.w.until("the announcement to show "+buttons+" and "+strings.Join(parts, ", "), func() bool {
		m, _ := a.w.Message(a.w.ch, a.root)
		return contains(m.Text, parts...) && labels(m.Blocks) == buttons
	})
}

// labels are those of a message's buttons.
func labels(blocks json.RawMessage) string {
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

// press presses a button of the announcement as Ann.
func (a *agent) press(action string) {
	a.w.t.Helper()
	if err := a.w.ann.Click(a.w.ctx, a.w.ch, a.root, action); err != nil {
		a.w.t.Fatal(err)
	}
}

// whispered waits for Ann to be told something in the thread that has all of the parts.
func (a *agent) whispered(parts ...string) localslack.Ephemeral {
	a.w.t.Helper()
	var found localslack.Ephemeral
	a.w.until("a whisper with "+strings.Join(parts, ", "), func() bool {
		for _, e := range a.w.Ephemerals(a.w.ann.ID) {
			if e.ThreadTS == a.root && contains(e.Text, parts...) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// nowhere fails when a secret was posted to anybody.
func (l *life) nowhere() {
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

// count is how many events of that name there were.
func (l *life) count(name string) int {
	return len(slices.DeleteFunc(l.events.Events(), func(e sessions.Event) bool { return e.Name != name }))
}

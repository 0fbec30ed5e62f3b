package bot_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"the-loop/bot/command"
	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/threads"
)

const (
	buttonsUp      = "Peek Restart Stop"
	buttonsDown    = "Start"
	buttonsCreated = "Start Delete"
)

func TestR6_1_ASessionIsCreatedByOneLine(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	dir := filepath.Join(l.plan.TmuxDir, "two words")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// The keyboard made long dashes and curly quotes of what was typed; the brief stays as it is.
	l.says("create scout —harness "+smallagent.Name+" —cwd “"+dir+"” — Watch the “build” — please", "scout", "started", "<#"+l.ch+">")
	rec, err := registry.New(l.plan.Root).Load(l.ctx, "standing:scout")
	if err != nil {
		t.Fatal(err)
	}
	d := rec.Definition
	if d.Source != sessions.SourceCreated || d.Harness != smallagent.Name || d.Cwd != dir || d.Prompt != "Watch the “build” — please" ||
		!d.AutoStart || !d.Chat.Enabled || len(d.HarnessArgs) != 3 || d.PromptFile != "" {
		t.Errorf("recorded %+v", d)
	}
	a := l.session("scout")
	a.shows(buttonsUp, "*scout* is running", dir)
	if got := a.entries(smallagent.TypeUser)[0].Text; !strings.HasSuffix(got, "\n\nWatch the “build” — please") || !strings.Contains(got, "own no work item") {
		t.Errorf("the agent began with %q", got)
	}
}

func TestR6_1_ASessionIsCreatedByAForm(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	other := l.AddChannel("other", localslack.Members(l.ann.ID, l.BotUserID())).ID
	l.make("taken")
	l.command("create")
	v := l.view("Announce it in", l.ch)
	if wrong := l.submit(v, map[string]string{"name": "Not a name"}); !strings.Contains(wrong["name"], "cannot name a session") {
		t.Errorf("a bad name: %v", wrong)
	}
	if wrong := l.submit(v, map[string]string{"name": "taken"}); !strings.Contains(wrong["name"], "there is a session standing:taken already") {
		t.Errorf("a taken name: %v", wrong)
	}
	if wrong := l.submit(v, map[string]string{"name": "form", "cwd": "/not/there"}); !strings.Contains(wrong["cwd"], "/not/there cannot be used") {
		t.Errorf("a folder that is not there: %v", wrong)
	}
	if wrong := l.submit(v, map[string]string{"name": "form", "cwd": "relative"}); !strings.Contains(wrong["cwd"], "absolute") {
		t.Errorf("a relative folder: %v", wrong)
	}
	if wrong := l.submit(v, map[string]string{"name": "form", "harness": "other"}); len(wrong["harness"]) == 0 && len(wrong["name"]) == 0 {
		t.Errorf("a program that is not there: %v", wrong)
	}
	if r := l.row("form"); r.Ref != "" {
		t.Errorf("a refused form left %+v", r)
	}
	if wrong := l.submit(v, map[string]string{"name": "form", "brief": "Be brief.", "channel": other}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.view("*form*", "started", "It is announced in", other)
	l.until("the announcement", func() bool {
		m := l.Messages(other)
		return len(m) > 0 && strings.Contains(m[len(m)-1].Text, "*form* is running")
	})
	l.command("create")
	if wrong := l.submit(l.view("Announce it in"), map[string]string{"name": "idle", "start": ""}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.view("*idle*", "stopped", "created")
	if r := l.row("idle"); r.State != sessions.StateStopped {
		t.Errorf("what was not to be started is %s", r.State)
	}
}

func TestR6_2_R6_3_RefusalsAreTheCoresOwn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	d := l.definition("declared")
	l.change(func(p *plan) { p.Declared = append(p.Declared, d) })
	l.make("one")
	for text, part := range map[string]string{
		"create one":                         "there is a session standing:one already",
		"create declared":                    "standing:declared is declared in the config (standingSessions.sessions[0])",
		"create Bad_Name":                    "cannot name a session",
		"create x --cwd /not/there":          "the folder /not/there cannot be used",
		"create x --harness cobol":           "there is no harness \"cobol\"",
		"create x --harness-arg --evil":      "Usage: ",
		"create x --prompt-file /etc/passwd": "Usage: ",
		"create x y":                         "it takes one name",
		"start nobody":                       "there is no session standing:nobody",
		"say one":                            "it takes a name and a text",
		"peek nobody":                        "there is no session standing:nobody",
		"restart --all":                      "env.file is not set",
		"restart --everything":               "Usage: ",
		"dance":                              "Commands:",
	} {
		l.says(text, part)
	}
	if r := l.row("x"); r.Ref != "" {
		t.Errorf("a refused command left %+v", r)
	}
}

// What may be created from Slack ends where the configuration says, whichever way it is asked for.
func TestTheLimitsHoldForCommandsAndForms(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	in, out := filepath.Join(l.plan.TmuxDir, "in"), filepath.Join(l.plan.TmuxDir, "out")
	for _, dir := range []string{in, out} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(in, "way-out")); err != nil {
		t.Fatal(err)
	}
	l.limits.Store(&command.Limits{CwdRoots: []string{in}, Harnesses: []string{smallagent.Name}})
	for _, args := range []string{"", " --cwd " + out, " --cwd " + in + "/way-out", " --cwd " + in + "/../out", " --cwd ~"} {
		l.says("create x"+args, "create.cwdRoots allows "+in)
	}
	l.says("create x --harness other --cwd "+in, "create.harnesses allows "+smallagent.Name)
	l.command("create")
	v := l.view("Announce it in", smallagent.Name)
	if strings.Contains(string(v.Blocks), `"other"`) {
		t.Error("the form offers a harness that is not allowed")
	}
	if wrong := l.submit(v, map[string]string{"name": "x", "cwd": in + "/way-out"}); !strings.Contains(wrong["cwd"], "create.cwdRoots") {
		t.Errorf("refused: %v", wrong)
	}
	if r := l.row("x"); r.Ref != "" {
		t.Errorf("created %+v", r)
	}
	if wrong := l.submit(v, map[string]string{"name": "x", "cwd": in}); len(wrong) != 0 {
		t.Errorf("refused: %v", wrong)
	}
	l.view("*x* running")
}

func TestR6_4_DeletingAsksFirst(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("gone")
	l.command("delete gone")
	v := l.view("Delete *gone*?", "stopped first")
	if err := l.ann.CloseView(l.ctx, v.ID); err != nil {
		t.Fatal(err)
	}
	if !l.row("gone").Running {
		t.Error("deleted without an answer")
	}
	l.command("delete gone")
	l.submit(l.view("Delete *gone*?"), nil)
	l.view("*gone* was deleted")
	if r := l.row("gone"); r.Ref != "" {
		t.Errorf("it is still there: %+v", r)
	}
	a.shows("", "*gone* was deleted")
	a.answer("This session was deleted")
	l.dropped(a.reply("anybody?"), threads.ReasonUnmapped)
	l.says("create gone", "started") // another one, with a thread of its own
	if b := l.session("gone"); b.root == a.root || b.id == a.id {
		t.Error("the new one has the old one's thread")
	}
}

func TestR6_5_ADeclaredSessionIsNotDeleted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.agent("fixed")
	a.shows(buttonsUp, "is running")
	l.command("delete fixed")
	l.view("standingSessions.sessions[0]", "the-loop standing stop fixed")
	a.reply("@the-loop delete")
	a.answer("standingSessions.sessions[0]", "the-loop standing stop fixed")
	l.says("stop fixed", "stopped")
	a.shows(buttonsDown, "is stopped")
}

// The same verbs do the same to a session that is declared and to one that was created.
func TestR6_7_TheVerbsDoNotCareWhereASessionComesFrom(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	declared, created := l.agent("declared"), l.make("created")
	for _, a := range []*agent{declared, created} {
		name := a.ref.Name()
		down := buttonsDown
		if a == created {
			down = buttonsCreated
		}
		l.says("say "+name+" “quoted” — as typed", "has received it")
		a.wants("“quoted” — as typed")
		l.says("stop "+name, "stopped")
		a.shows(down, "is stopped")
		l.says("stop "+name, "already stopped")
		l.says("say "+name+" hello", "is not running", "the-loop standing start "+name)
		l.says("start "+name, "resumed")
		a.shows(buttonsUp, "is running")
		l.says("start "+name, "already running")
		l.says("restart "+name, "resumed")
		l.says("list", "declared", "created")
		a.until(smallagent.StateReady)
		a.tells("still you?")
	}
}

func TestR4_1_TheAnnouncementsButtonsWorkAfterARestartOfTheBot(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("helper")
	a.shows(buttonsUp, "*helper* is running", smallagent.Name, l.plan.TmuxDir, "the-loop attach helper")
	l.back()
	a.press("session_stop")
	a.shows(buttonsCreated, "is stopped")
	l.back()
	a.press("session_start")
	a.shows(buttonsUp, "is running")
	a.until(smallagent.StateReady)
	a.press("session_peek")
	a.whisperedChannel(l, "*helper* running", "```")
	before := l.row("helper").Changed
	a.press("session_restart")
	l.until("the restart", func() bool { return l.row("helper").Changed.After(before) && l.row("helper").Running })
	a.press("session_stop")
	a.shows(buttonsCreated, "is stopped")
	a.press("session_delete")
	l.submit(l.view("Delete *helper*?"), nil)
	a.shows("", "was deleted")
	if n := l.count(sessions.EventDeleted); n != 1 {
		t.Errorf("%d events of the deletion", n)
	}
}

// whisperedChannel waits for Ann to be answered to a press on the announcement.
func (a *agent) whisperedChannel(l *life, parts ...string) {
	l.t.Helper()
	l.until("an answer with "+strings.Join(parts, ", "), func() bool {
		for _, e := range l.Ephemerals(l.ann.ID) {
			if contains(e.Text, parts...) {
				return true
			}
		}
		return false
	})
}

func TestAPressOnASessionThatWasReplacedTouchesNothing(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("twin")
	v := l.menu(a.root, "*twin* is running", "session_stop")
	if _, err := l.core.Delete(l.ctx, sessions.DeleteRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "twin"}); err != nil {
		t.Fatal(err)
	}
	l.pick(v, "session_stop")
	l.view("this session was deleted")
	if !l.row("twin").Running {
		t.Error("the new session was stopped by a button of the old one")
	}
}

func TestPeekIsForWhoAskedAndSharedWithAPicture(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("painter")
	a.tells("my key is " + secret)
	l.until("the turn's end", func() bool { return a.screen().State == smallagent.StateReady })
	l.says("peek painter", "*painter* running", "```", "my key is [API_KEY]")
	if n := len(a.answers()); n != 0 {
		t.Errorf("the thread was told %d things", n)
	}
	l.says("peek painter —share", "Shared in its thread, with a picture")
	a.answer("Shared by <@"+l.ann.ID+">", "my key is [API_KEY]")
	var file localslack.File
	for _, m := range l.Thread(l.ch, a.root) {
		if len(m.Files) == 1 {
			file = m.Files[0]
		}
	}
	img, err := png.Decode(bytes.NewReader(file.Content))
	if err != nil || img.Bounds().Dx() < 400 || file.Name != "painter.png" {
		t.Errorf("the picture %q: %v", file.Name, err)
	}
	l.nowhere()
	a.reply("@the-loop peek")
	a.whispered("*painter* running", "my key is [API_KEY]")
	a.reply("@the-loop peek --share")
	a.whispered("Shared in its thread, with a picture")
	l.nowhere()
}

func TestWithoutTheScopeForFilesPeekIsSharedAsText(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(s *lifeSetup) {
		s.workspace.Scopes = without(s.workspace.Scopes, "files:write")
	})
	a := l.make("painter")
	if got := l.says("peek painter --share", "Shared in its thread"); strings.Contains(got, "icture") {
		t.Errorf("answered %q", got)
	}
	a.answer("Shared by <@" + l.ann.ID + ">")
}

func without(list []string, s string) []string {
	var rest []string
	for _, o := range list {
		if o != s {
			rest = append(rest, o)
		}
	}
	return rest
}

// An agent that dies is noticed within seconds, and its thread told once, with what it showed last.
func TestAThreadIsToldOnceThatItsAgentDied(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("mortal")
	a.tells("remember " + secret)
	l.until("the turn's end", func() bool { return a.screen().State == smallagent.StateReady })
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.answer(":red_circle: *mortal* is down: the agent ended, killed by signal", "```", "remember [API_KEY]", "mention me with `start`")
	a.shows("Start Peek Delete", "not running: its agent has ended")
	l.back()
	l.reconcile()
	l.passed()
	if n := a.count("is down"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if n := l.count("standing.ended"); n != 1 {
		t.Errorf("%d events", n)
	}
	a.press("session_start")
	a.shows(buttonsUp, "is running")
	a.until(smallagent.StateReady)
	a.tells("and again")
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.until("the second notice", func() bool { return a.count("is down") == 2 })
	l.nowhere()
}

// A session that is stopped by a command on its machine did not die.
func TestAStoppedSessionIsNotSaidToHaveDied(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("calm")
	for range 3 {
		if _, err := l.core.Restart(l.ctx, sessions.RestartRequest{Ref: a.ref}); err != nil {
			t.Fatal(err)
		}
		l.reconcile()
	}
	if _, err := l.core.Stop(l.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	a.shows(buttonsCreated, "is stopped")
	if n := a.count("is down"); n != 0 {
		t.Errorf("told %d times that it died", n)
	}
}

// menu picks the shortcut in a message's menu, with no other modal open, and waits for what it shows.
func (l *life) menu(ts string, parts ...string) localslack.View {
	l.t.Helper()
	if open := l.Views(l.ann.ID); len(open) > 0 { // what lies on the first goes with it
		if err := l.ann.CloseView(l.ctx, open[0].ID); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.ann.Shortcut(l.ctx, l.ch, ts, "session_menu"); err != nil {
		l.t.Fatal(err)
	}
	return l.view(parts...)
}

// pick presses a button in a modal.
func (l *life) pick(v localslack.View, action string) {
	l.t.Helper()
	if err := l.ann.Click(l.ctx, "", v.ID, action); err != nil {
		l.t.Fatal(err)
	}
}

func TestTheShortcutOffersWhatCanBeDone(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("menu")
	ts := a.tells("hello")
	for _, at := range []string{a.root, ts} {
		if got := labels(l.menu(at, "*menu* is running").Blocks); got != buttonsUp {
			t.Errorf("it offers %q", got)
		}
	}
	l.pick(l.menu(ts, "*menu* is running"), "session_peek")
	l.view("*menu* running", "hello")
	l.pick(l.menu(ts, "*menu* is running"), "session_stop")
	l.view("*menu* stopped")
	l.pick(l.menu(ts, "*menu* is stopped"), "session_delete")
	l.submit(l.view("Delete *menu*?"), nil)
	a.shows("", "was deleted")
	elsewhere, err := l.ann.Post(l.ch, "something else")
	if err != nil {
		t.Fatal(err)
	}
	l.menu(elsewhere, "not in a session's thread")
}

func TestAMentionDeletesOnlyAfterAPress(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("asked")
	a.reply("@the-loop delete")
	e := a.whispered("Delete *asked*?")
	if !l.row("asked").Running {
		t.Error("deleted without an answer")
	}
	if err := l.ann.Click(l.ctx, l.ch, e.TS, "session_delete_now"); err != nil {
		t.Fatal(err)
	}
	a.shows("", "was deleted")
	if r := l.row("asked"); r.Ref != "" {
		t.Errorf("still there: %+v", r)
	}
}

func TestAFormThatCannotBeOpenedInTimeSaysSo(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.Faults().InjectAPI("views.open", 1, localslack.Error("expired_trigger_id"))
	l.says("create", "more than three seconds", "try again")
}

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
	buttonsRunning = "Peek Restart Stop"
	buttonsStopped = "Start"
	buttonsCreated = "Start Delete"
)

func TestR6_1_ASessionIsCreatedByOneLine(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	dir := filepath.Join(l.botConfig.TmuxDir, "two words")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// The keyboard made long dashes and curly quotes of what was typed; the brief stays as it is.
	l.wantSlashAnswer("create scout —harness "+smallagent.Name+" —cwd “"+dir+"” — Watch the “build” — please", "scout", "started", "<#"+l.ch+">")
	rec, err := registry.New(l.botConfig.Root).Load(l.ctx, "standing:scout")
	if err != nil {
		t.Fatal(err)
	}
	d := rec.Definition
	if d.Source != sessions.SourceCreated || d.Harness != smallagent.Name || d.Cwd != dir || d.Prompt != "Watch the “build” — please" ||
		!d.AutoStart || !d.Chat.Enabled || len(d.HarnessArgs) != 3 || d.PromptFile != "" {
		t.Errorf("recorded %+v", d)
	}
	a := l.startedSession("scout")
	a.waitAnnouncement(buttonsRunning, "*scout* is running", dir)
	if got := a.entries(smallagent.TypeUser)[0].Text; !strings.HasSuffix(got, "\n\nWatch the “build” — please") || !strings.Contains(got, "own no work item") {
		t.Errorf("the agent began with %q", got)
	}
}

func TestR6_1_ASessionIsCreatedByAForm(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	other := l.AddChannel("other", localslack.Members(l.ann.ID, l.BotUserID())).ID
	l.createSession("taken")
	l.runCommand("create")
	v := l.waitModal("Announce it in", l.ch)
	if wrong := l.submitModal(v, map[string]string{"name": "Not a name"}); !strings.Contains(wrong["name"], "cannot name a session") {
		t.Errorf("a bad name: %v", wrong)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "taken"}); !strings.Contains(wrong["name"], "there is a session standing:taken already") {
		t.Errorf("a taken name: %v", wrong)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "form", "cwd": "/not/there"}); !strings.Contains(wrong["cwd"], "/not/there cannot be used") {
		t.Errorf("a folder that is not there: %v", wrong)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "form", "cwd": "relative"}); !strings.Contains(wrong["cwd"], "absolute") {
		t.Errorf("a relative folder: %v", wrong)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "form", "harness": "other"}); len(wrong["harness"]) == 0 && len(wrong["name"]) == 0 {
		t.Errorf("a program that is not there: %v", wrong)
	}
	if r := l.row("form"); r.Ref != "" {
		t.Errorf("a refused form left %+v", r)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "form", "brief": "Be brief.", "channel": other}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.waitModal("*form*", "started", "It is announced in", other)
	l.waitUntil("the announcement", func() bool {
		m := l.Messages(other)
		return len(m) > 0 && strings.Contains(m[len(m)-1].Text, "*form* is running")
	})
	l.runCommand("create")
	if wrong := l.submitModal(l.waitModal("Announce it in"), map[string]string{"name": "idle", "start": ""}); len(wrong) != 0 {
		t.Fatalf("refused: %v", wrong)
	}
	l.waitModal("*idle*", "stopped", "created")
	if r := l.row("idle"); r.State != sessions.StateStopped {
		t.Errorf("what was not to be started is %s", r.State)
	}
}

func TestR6_2_R6_3_RefusalsOfTheCoreAreShown(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	d := l.definition("declared")
	l.changeConfig(func(p *botConfig) { p.Declared = append(p.Declared, d) })
	l.createSession("one")
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
		l.wantSlashAnswer(text, part)
	}
	if r := l.row("x"); r.Ref != "" {
		t.Errorf("a refused command left %+v", r)
	}
}

// What may be created from Slack ends where the configuration says, whichever way it is asked for.
func TestTheLimitsHoldForCommandsAndForms(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	in, out := filepath.Join(l.botConfig.TmuxDir, "in"), filepath.Join(l.botConfig.TmuxDir, "out")
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
		l.wantSlashAnswer("create x"+args, "create.cwdRoots allows "+in)
	}
	l.wantSlashAnswer("create x --harness other --cwd "+in, "create.harnesses allows "+smallagent.Name)
	l.runCommand("create")
	v := l.waitModal("Announce it in", smallagent.Name)
	if strings.Contains(string(v.Blocks), `"other"`) {
		t.Error("the form offers a harness that is not allowed")
	}
	if wrong := l.submitModal(v, map[string]string{"name": "x", "cwd": in + "/way-out"}); !strings.Contains(wrong["cwd"], "create.cwdRoots") {
		t.Errorf("refused: %v", wrong)
	}
	if r := l.row("x"); r.Ref != "" {
		t.Errorf("created %+v", r)
	}
	if wrong := l.submitModal(v, map[string]string{"name": "x", "cwd": in}); len(wrong) != 0 {
		t.Errorf("refused: %v", wrong)
	}
	l.waitModal("*x* running")
}

func TestR6_4_DeletingAsksFirst(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("gone")
	l.runCommand("delete gone")
	v := l.waitModal("Delete *gone*?", "stopped first")
	if err := l.ann.CloseView(l.ctx, v.ID); err != nil {
		t.Fatal(err)
	}
	if !l.row("gone").Running {
		t.Error("deleted without an answer")
	}
	l.runCommand("delete gone")
	l.submitModal(l.waitModal("Delete *gone*?"), nil)
	l.waitModal("*gone* was deleted")
	if r := l.row("gone"); r.Ref != "" {
		t.Errorf("it is still there: %+v", r)
	}
	a.waitAnnouncement("", "*gone* was deleted")
	a.waitBotMessage("This session was deleted")
	l.waitDropped(a.reply("anybody?"), threads.ReasonUnmapped)
	l.wantSlashAnswer("create gone", "started") // another one, with a thread of its own
	if b := l.startedSession("gone"); b.root == a.root || b.id == a.id {
		t.Error("the new one has the old one's thread")
	}
}

func TestR6_5_ADeclaredSessionIsNotDeleted(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.startSession("fixed")
	a.waitAnnouncement(buttonsRunning, "is running")
	l.runCommand("delete fixed")
	l.waitModal("standingSessions.sessions[0]", "the-loop standing stop fixed")
	a.reply("@the-loop delete")
	a.waitBotMessage("standingSessions.sessions[0]", "the-loop standing stop fixed")
	l.wantSlashAnswer("stop fixed", "stopped")
	a.waitAnnouncement(buttonsStopped, "is stopped")
}

// The same verbs do the same to a session that is declared and to one that was created.
func TestR6_7_TheVerbsTreatDeclaredAndCreatedSessionsAlike(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	declared, created := l.startSession("declared"), l.createSession("created")
	for _, a := range []*testSession{declared, created} {
		name := a.ref.Name()
		down := buttonsStopped
		if a == created {
			down = buttonsCreated
		}
		l.wantSlashAnswer("say "+name+" “quoted” — as typed", "has received it")
		a.wantReceived("“quoted” — as typed")
		l.wantSlashAnswer("stop "+name, "stopped")
		a.waitAnnouncement(down, "is stopped")
		l.wantSlashAnswer("stop "+name, "already stopped")
		l.wantSlashAnswer("say "+name+" hello", "is not running", "the-loop standing start "+name)
		l.wantSlashAnswer("start "+name, "resumed")
		a.waitAnnouncement(buttonsRunning, "is running")
		l.wantSlashAnswer("start "+name, "already running")
		l.wantSlashAnswer("restart "+name, "resumed")
		l.wantSlashAnswer("list", "declared", "created")
		a.waitState(smallagent.StateReady)
		a.replyAccepted("still you?")
	}
}

func TestR4_1_TheAnnouncementsButtonsWorkAfterARestartOfTheBot(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("helper")
	a.waitAnnouncement(buttonsRunning, "*helper* is running", smallagent.Name, l.botConfig.TmuxDir, "the-loop attach helper")
	l.startAndConnect()
	a.pressButton("session_stop")
	a.waitAnnouncement(buttonsCreated, "is stopped")
	l.startAndConnect()
	a.pressButton("session_start")
	a.waitAnnouncement(buttonsRunning, "is running")
	a.waitState(smallagent.StateReady)
	a.pressButton("session_peek")
	a.waitChannelEphemeral(l, "*helper* running", "```")
	before := l.row("helper").Changed
	a.pressButton("session_restart")
	l.waitUntil("the restart", func() bool { return l.row("helper").Changed.After(before) && l.row("helper").Running })
	a.pressButton("session_stop")
	a.waitAnnouncement(buttonsCreated, "is stopped")
	a.pressButton("session_delete")
	l.submitModal(l.waitModal("Delete *helper*?"), nil)
	a.waitAnnouncement("", "was deleted")
	if n := l.countEvents(sessions.EventDeleted); n != 1 {
		t.Errorf("%d events of the deletion", n)
	}
}

// waitChannelEphemeral waits for Ann to be answered to a press on the announcement.
func (a *testSession) waitChannelEphemeral(l *botEnv, parts ...string) {
	l.t.Helper()
	l.waitUntil("an answer with "+strings.Join(parts, ", "), func() bool {
		for _, e := range l.Ephemerals(l.ann.ID) {
			if containsAll(e.Text, parts...) {
				return true
			}
		}
		return false
	})
}

func TestAPressOnAReplacedSessionChangesNothing(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("twin")
	v := l.openShortcut(a.root, "*twin* is running", "session_stop")
	if _, err := l.core.Delete(l.ctx, sessions.DeleteRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "twin"}); err != nil {
		t.Fatal(err)
	}
	l.pressInModal(v, "session_stop")
	l.waitModal("this session was deleted")
	if !l.row("twin").Running {
		t.Error("the new session was stopped by a button of the old one")
	}
}

func TestPeekIsEphemeralAndSharedWithAPicture(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("painter")
	a.replyAccepted("my key is " + secret)
	l.waitUntil("the turn's end", func() bool { return a.screen().State == smallagent.StateReady })
	l.wantSlashAnswer("peek painter", "*painter* running", "```", "my key is [API_KEY]")
	if n := len(a.botMessages()); n != 0 {
		t.Errorf("the thread was told %d things", n)
	}
	l.wantSlashAnswer("peek painter —share", "Shared in its thread, with a picture")
	a.waitBotMessage("Shared by <@"+l.ann.ID+">", "my key is [API_KEY]")
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
	l.checkSecretNotPosted()
	a.reply("@the-loop peek")
	a.waitEphemeral("*painter* running", "my key is [API_KEY]")
	a.reply("@the-loop peek --share")
	a.waitEphemeral("Shared in its thread, with a picture")
	l.checkSecretNotPosted()
}

func TestWithoutTheScopeForFilesPeekIsSharedAsText(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) {
		s.workspace.Scopes = without(s.workspace.Scopes, "files:write")
	})
	a := l.createSession("painter")
	if got := l.wantSlashAnswer("peek painter --share", "Shared in its thread"); strings.Contains(got, "icture") {
		t.Errorf("answered %q", got)
	}
	a.waitBotMessage("Shared by <@" + l.ann.ID + ">")
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
func TestAThreadSaysOnceThatItsAgentDied(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("mortal")
	a.replyAccepted("remember " + secret)
	l.waitUntil("the turn's end", func() bool { return a.screen().State == smallagent.StateReady })
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.waitBotMessage(":red_circle: *mortal* is down: the agent ended, killed by signal", "```", "remember [API_KEY]", "mention me with `start`")
	a.waitAnnouncement("Start Peek Delete", "not running: its agent has ended")
	l.startAndConnect()
	l.reconcileNow()
	l.waitProcessed()
	if n := a.countBotMessages("is down"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if n := l.countEvents("standing.ended"); n != 1 {
		t.Errorf("%d events", n)
	}
	a.pressButton("session_start")
	a.waitAnnouncement(buttonsRunning, "is running")
	a.waitState(smallagent.StateReady)
	a.replyAccepted("and again")
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.waitUntil("the second notice", func() bool { return a.countBotMessages("is down") == 2 })
	l.checkSecretNotPosted()
}

// A session that is stopped by a command on its machine did not die.
func TestAStoppedSessionIsNotSaidToHaveDied(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("calm")
	for range 3 {
		if _, err := l.core.Restart(l.ctx, sessions.RestartRequest{Ref: a.ref}); err != nil {
			t.Fatal(err)
		}
		l.reconcileNow()
	}
	if _, err := l.core.Stop(l.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	l.reconcileNow()
	a.waitAnnouncement(buttonsCreated, "is stopped")
	if n := a.countBotMessages("is down"); n != 0 {
		t.Errorf("told %d times that it died", n)
	}
}

// openShortcut picks the shortcut in a message's menu, with no other modal open, and waits for what it shows.
func (l *botEnv) openShortcut(ts string, parts ...string) localslack.View {
	l.t.Helper()
	if open := l.Views(l.ann.ID); len(open) > 0 { // what lies on the first goes with it
		if err := l.ann.CloseView(l.ctx, open[0].ID); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.ann.Shortcut(l.ctx, l.ch, ts, "session_menu"); err != nil {
		l.t.Fatal(err)
	}
	return l.waitModal(parts...)
}

// pressInModal presses a button in a modal.
func (l *botEnv) pressInModal(v localslack.View, action string) {
	l.t.Helper()
	if err := l.ann.Click(l.ctx, "", v.ID, action); err != nil {
		l.t.Fatal(err)
	}
}

func TestTheShortcutOffersWhatCanBeDone(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("menu")
	ts := a.replyAccepted("hello")
	for _, at := range []string{a.root, ts} {
		if got := buttonLabels(l.openShortcut(at, "*menu* is running").Blocks); got != buttonsRunning {
			t.Errorf("it offers %q", got)
		}
	}
	l.pressInModal(l.openShortcut(ts, "*menu* is running"), "session_peek")
	l.waitModal("*menu* running", "hello")
	l.pressInModal(l.openShortcut(ts, "*menu* is running"), "session_stop")
	l.waitModal("*menu* stopped")
	l.pressInModal(l.openShortcut(ts, "*menu* is stopped"), "session_delete")
	l.submitModal(l.waitModal("Delete *menu*?"), nil)
	a.waitAnnouncement("", "was deleted")
	elsewhere, err := l.ann.Post(l.ch, "something else")
	if err != nil {
		t.Fatal(err)
	}
	l.openShortcut(elsewhere, "not in a session's thread")
}

func TestAMentionDeletesOnlyAfterAPress(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("asked")
	a.reply("@the-loop delete")
	e := a.waitEphemeral("Delete *asked*?")
	if !l.row("asked").Running {
		t.Error("deleted without an answer")
	}
	if err := l.ann.Click(l.ctx, l.ch, e.TS, "session_delete_now"); err != nil {
		t.Fatal(err)
	}
	a.waitAnnouncement("", "was deleted")
	if r := l.row("asked"); r.Ref != "" {
		t.Errorf("still there: %+v", r)
	}
}

func TestAFormThatCannotBeOpenedInTimeSaysSo(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.Faults().InjectAPI("views.open", 1, localslack.Error("expired_trigger_id"))
	l.wantSlashAnswer("create", "after more than three seconds", "try again")
}

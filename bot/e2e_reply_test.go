package bot_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
)

func TestAReplyIsTypedSubmittedAndReceipted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	ts := a.replyAccepted("hello, agent")
	a.wantReceived("hello, agent")
	a.wantPaneInput("hello, agent")
	w.waitUntil("one reaction", func() bool { return len(w.Reactions(w.ch, ts)) == 1 })
	if n := len(a.botMessages()); n != 0 {
		t.Errorf("the thread was told %d things; want none", n)
	}
}

// startTemplateSession is a session with a harness that the configuration describes: no proof of anything, and no screen.
// start, when given, starts a bot that knows of it.
func (w *env) startTemplateSession(name string, delay time.Duration, start ...func()) *testSession {
	w.t.Helper()
	w.changeConfig(func(p *botConfig) {
		p.Harnesses = []harness.Template{{Title: "tool", Binary: os.Args[0], SubmitDelay: delay, CommandPrefixes: []string{"!"},
			Args: []string{roleAgent, "--dir", p.Agents, "--session-id", "{sessionId}", "{harnessArgs}"}}}
	})
	d := w.definition(name)
	d.Harness = "tool"
	a := w.startDefined(d)
	for _, s := range start {
		s()
	}
	a.waitAnnounced()
	a.waitState(smallagent.StateReady)
	return a
}

func TestAHarnessWithoutProofGetsTheReceiptTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startTemplateSession("tool", 20*time.Millisecond)
	a.waitReceipt(a.reply("hello, tool"), receiptTyped)
	w.waitUntil("the text", func() bool { return len(a.receivedTexts()) == 1 })
	a.waitReceipt(a.reply("!ls"), receiptTyped)
	w.waitUntil("the second text", func() bool { return len(a.receivedTexts()) == 2 })
	a.wantReceived("hello, tool", `From "Ann": !ls`)
	a.wantPaneInput("hello, tool", `From "Ann": !ls`)
}

// NousResearch/hermes-agent#36848, PostHog#43263, openclaw/openclaw#96487: who is not on the list talks to the agent.
// openclaw/openclaw#41073, errbot#969: what is no plain message of a member is mistaken for one.
func TestR4_4_WhatIsNotForTheAgentReachesNoPane(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(s *envOptions) { s.config = func(p *botConfig) { p.AllowShared = true } })
	a := w.startSession("helper")
	w.ShareChannel(w.ch, "T0ELSEWHERE")
	eve := w.AddUser("eve", localslack.Stranger("T0ELSEWHERE"))
	robot := w.AddUser("robot", localslack.Bot())
	twin := w.AddUser("ann2", localslack.Named("Ann Smith", "Ann"), localslack.Guest())
	w.Invite(w.ch, eve.ID, robot.ID, twin.ID)
	w.changeConfig(func(p *botConfig) { p.Users = append(p.Users, eve.ID, robot.ID) })
	elsewhere, err := w.ann.Post(w.ch, "a message of the channel")
	if err != nil {
		t.Fatal(err)
	}
	unmapped, err := w.ann.Reply(w.ch, elsewhere, "in another thread")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, ts, reason string }{
		{"top-level", elsewhere, "top-level"},
		{"unmapped", unmapped, "unmapped"},
		{"unauthorized", a.replyBy(w.bob, "let me in"), "unauthorized-actor"},
		{"with the name of somebody on the list", a.replyBy(twin, "it is me"), "unauthorized-actor"},
		{"of a foreign team, and listed", a.replyBy(eve, "we are friends"), "unauthorized-actor"},
		{"a bot, and listed", a.replyBy(robot, "beep"), "bot-authored"},
		{"by an app with a member's token", a.reply("automated", localslack.AsApp("B0OTHER", "A0OTHER")), "bot-authored"},
		{"without a user", a.reply("hook", localslack.AsBotMessage("hook")), "bot-authored"},
	} {
		t.Run(c.name, func(t *testing.T) { w.waitDropped(c.ts, c.reason) })
	}
	ts := a.replyAccepted("see https://example.com/")
	if err := w.Unfurl(w.ch, ts); err != nil {
		t.Fatal(err)
	}
	w.waitDropped(ts, "unfurl")
	a.replyAccepted("the end")
	a.wantReceived("see https://example.com/", "the end")
	a.wantPaneInput("see https://example.com/", "the end")
	if n := len(a.botMessages()); n != 0 {
		t.Errorf("strangers were answered %d times", n)
	}
}

// hermes-agent#95417: the preview of a link comes while the reply is on its way.
func TestAPreviewMakesNoSecondTurn(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(s *envOptions) { s.workspace.AutoUnfurl = true })
	a := w.startSession("helper")
	w.waitDropped(a.replyAccepted("read https://example.com/a?b=1&c=2"), "unfurl")
	a.replyAccepted("done?")
	a.wantReceived("read https://example.com/a?b=1&c=2", "done?")
	a.wantPaneInput("read https://example.com/a?b=1&c=2", "done?")
}

// openclaw/openclaw#13161: an empty list lets everybody in.
func TestAnEmptyListAuthorizesNobody(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.changeConfig(func(p *botConfig) { p.Users = nil })
	w.waitDropped(a.reply("anybody?"), "unauthorized-actor")
	w.changeConfig(func(p *botConfig) { p.Users = []string{w.ann.ID} })
	a.replyAccepted("now?")
	a.wantReceived("now?")
	a.wantPaneInput("now?")
}

func TestRepliesWaitWhileTheConfigurationIsNotValid(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.changeConfig(func(p *botConfig) { p.Suspended = true })
	ts := a.reply("wait for it")
	a.waitReceipt(ts, receiptReceived)
	a.wantPaneInput()
	w.changeConfig(func(p *botConfig) { p.Suspended = false })
	a.waitReceipt(ts, receiptAccepted)
	a.wantPaneInput("wait for it")
}

// startDialog has the agent ask a question, which holds what is said to it.
func (a *testSession) startDialog() {
	a.env.t.Helper()
	a.replyAccepted("ask: deploy")
	a.waitState(smallagent.StateAsking)
}

// denyInTerminal answers the question in the terminal.
func (a *testSession) denyInTerminal() {
	a.env.t.Helper()
	a.sendKeys("2")
}

func TestAReplyThatIsEditedWhileItWaitsArrivesAsItIsNowOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.startDialog()
	first, second := a.reply("old first"), a.reply("old second")
	a.waitReceipt(first, receiptHeld)
	for ts, text := range map[string]string{first: "new first", second: "new second"} {
		if err := w.ann.Edit(w.ch, ts, text); err != nil {
			t.Fatal(err)
		}
	}
	w.waitProcessed()
	a.denyInTerminal()
	a.waitReceipt(first, receiptAccepted)
	a.waitReceipt(second, receiptAccepted)
	a.wantReceived("ask: deploy", "new first", "new second")
	if err := w.ann.Edit(w.ch, first, "newer still"); err != nil {
		t.Fatal(err)
	}
	a.waitBotMessage("An edit came too late")
	a.wantReceived("ask: deploy", "new first", "new second")
}

func TestAReplyThatIsDeletedWhileItWaitsIsNotTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.startDialog()
	first, second := a.reply("never mind"), a.reply("nor this")
	a.waitReceipt(first, receiptHeld)
	for _, ts := range []string{first, second} {
		if err := w.ann.Delete(w.ch, ts); err != nil {
			t.Fatal(err)
		}
		w.waitDropped(ts, "withdrawn")
	}
	a.denyInTerminal()
	a.replyAccepted("after")
	a.wantReceived("ask: deploy", "after")
	a.wantNotTyped("never mind", "nor this")
}

// wantNotTyped fails when any of these came out of the terminal.
func (a *testSession) wantNotTyped(parts ...string) {
	a.env.t.Helper()
	for _, p := range parts {
		if strings.Contains(a.paneInput(), p) {
			a.env.t.Errorf("the pane of %s got %q", a.ref, p)
		}
	}
}

func TestSomebodyTakenOffTheListGetsNoHeldReplyThrough(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.startDialog()
	ts := a.reply("one last thing")
	a.waitReceipt(ts, receiptHeld)
	w.changeConfig(func(p *botConfig) { p.Users = []string{w.bob.ID} })
	a.denyInTerminal()
	w.waitDropped(ts, "unauthorized-actor")
	w.changeConfig(func(p *botConfig) { p.Users = []string{w.ann.ID, w.bob.ID} })
	a.replyAccepted("back again")
	a.wantReceived("ask: deploy", "back again")
	a.wantNotTyped("one last thing")
}

// openclaw/openclaw#41073, vercel/chat#171, spacedriveapp/spacebot#228: captions and broadcast replies are lost.
func TestCaptionsAndBroadcastRepliesArrive(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	plan := a.replyAccepted("look at this", localslack.WithFiles(localslack.File{Name: "plan.txt", Content: []byte("a plan")}))
	a.replyAccepted("for all to see", localslack.Broadcast())
	picture := a.replyAccepted("", localslack.WithFiles(localslack.File{Name: "x.png", Content: []byte("x")}))
	a.wantReceived("look at this\nAttached file: "+a.inboxPath(plan, "plan.txt"), "for all to see", "Attached file: "+a.inboxPath(picture, "x.png"))
}

// nearform/slack-knowledgebase-chatgpt-responder#983, slack-go#792: the bot answers itself.
func TestTheBotIgnoresItsOwnMessages(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.reply("@the-loop status")
	m := a.waitBotMessage("*helper* running")
	w.waitDropped(m.TS, "bot-authored")
	if err := w.Unfurl(w.ch, m.TS); err != nil {
		t.Fatal(err)
	}
	w.waitDropped(m.TS, "bot-authored")
	w.waitProcessed()
	a.replyAccepted("the end")
	a.wantReceived("the end")
}

// vellum-ai/vellum-assistant#38770, RocketChat/Rocket.Chat#6782, wee-slack#186: entities reach the agent, or are decoded
// twice.
func TestTextArrivesAsTyped(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	var want []string
	for _, c := range []struct {
		name, text, want string
		opts             []localslack.PostOption
	}{
		{name: "entities", text: `if a < b && c > d { print("&amp; &lt;") }`},
		{name: "a link", text: "https://example.com/?a=1&b=<2>"},
		{name: "mentions", text: "ask @ann about #agents, @here", want: "ask @Ann about #agents, @here"},
		{name: "lines", text: "one\n\n  two\n\tthree"},
		{name: "code", text: "run `ls -l` and\n```\nfunc main() {\n\t<-done\n}\n```\nthen stop"},
		{name: "a list", text: "1. one\n2. two\n• three"},
		{name: "CJK", text: "日本語のテキスト、中文，한국어"},
		{name: "emoji", text: "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👍🏽 é"},
		{name: "smart quotes", text: "“don’t” — stop…"},
		{name: "40 kB", text: strings.Repeat("40 kB in one piece; ", 2000)},
		{name: "without blocks", text: "a < b & *c*", opts: []localslack.PostOption{localslack.WithoutBlocks()}},
		{name: "an entity on the wire", text: "x", want: "&lt;b&gt; <@U>", opts: []localslack.PostOption{
			localslack.WithoutBlocks(), localslack.WithText("&amp;lt;b&amp;gt; &lt;@U&gt;")}},
		{name: "tokens on the wire", text: "x", want: "@Ann #agents @channel 2 May https://a.example/",
			opts: []localslack.PostOption{localslack.WithoutBlocks(), localslack.WithText("<@" + w.ann.ID + "> <#" + w.ch +
				"|agents> <!channel> <!date^1^{date}|2 May> <https://a.example/>")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.text
			}
			want = append(want, c.want)
			a.replyAccepted(c.text, c.opts...)
			a.wantPaneInput(want...)
		})
	}
}

// eneskirca/nodeterm#198: an escape in the text leaves the paste, and the rest of it runs.
func TestNothingInATextLeavesThePasteOrSubmits(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	var want []string
	for _, c := range []struct{ name, text, want string }{
		{"the end of a paste", "a\x1b[201~\rrm -rf /\r", "a[201~\nrm -rf /"},
		{"CR", "b\rc\r\nd", "b\nc\nd"},
		{"C1", "e\u009b201~f\u0090g\u009c", "e201~fg"},
		{"control keys", "h\x03\x04\x15\x1a\x00\x7fi", "hi"},
		{"bidi and invisible characters", "j\u202ek\u2066l\u200bm\ufeff", "jklm"},
		{"line separators", "n\u2028o\u2029p", "n\no\np"},
		{"a title and a cursor report", "q\x1b]0;title\x07r\x1b[6ns", "q]0;titler[6ns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want = append(want, c.want)
			for _, opts := range [][]localslack.PostOption{nil, {localslack.WithoutBlocks()}} {
				a.replyAccepted(c.text, opts...)
			}
			want = append(want, c.want)
			a.wantPaneInput(want...)
		})
	}
	a.wantReceived(want...)
}

// What slack-go cannot decode is read leniently.
func TestBlocksThatNobodyCanDecodeFallBackToTheText(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("malformed for good", localslack.MalformedBlocks())
	a.replyAccepted("no blocks", localslack.WithBlocks(json.RawMessage(`[]`)))
	a.wantReceived("malformed for good", "no blocks")
}

// openclaw/openclaw#75969: a reply ends up in another thread's session.
func TestInterleavedThreadsNeverCross(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	agents := []*testSession{w.startSession("one"), w.startSession("two")}
	want := map[*testSession][]string{}
	var last string
	for i := range 10 {
		for _, a := range agents {
			text := a.ref.Name() + " " + strings.Repeat("x", i)
			want[a] = append(want[a], strings.TrimRight(text, " "))
			last = a.reply(strings.TrimRight(text, " "))
		}
	}
	agents[1].waitReceipt(last, receiptAccepted)
	for _, a := range agents {
		w.waitUntil("all of them", func() bool { return len(a.receivedTexts()) >= len(want[a]) })
		a.wantReceived(want[a]...)
	}
	_, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: agents[0].ref})
	if err != nil {
		t.Fatal(err)
	}
	agents[0].waitReceipt(agents[0].reply("gone?"), receiptFailed)
	agents[0].waitBotMessage("Not delivered", "standing:one is not running")
	if n := len(agents[1].botMessages()); n != 0 {
		t.Errorf("the other thread was told %d things", n)
	}
}

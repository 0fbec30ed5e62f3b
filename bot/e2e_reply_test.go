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
	w := newWorld(t)
	a := w.agent("helper")
	ts := a.tells("hello, agent")
	a.wants("hello, agent")
	a.wantsBytes("hello, agent")
	w.until("one reaction", func() bool { return len(w.Reactions(w.ch, ts)) == 1 })
	if n := len(a.answers()); n != 0 {
		t.Errorf("the thread was told %d things; want none", n)
	}
}

// templated is a session with a harness that the configuration describes: no proof of anything, and no screen.
// start, when given, starts a bot that knows of it.
func (w *world) templated(name string, delay time.Duration, start ...func()) *agent {
	w.t.Helper()
	w.change(func(p *plan) {
		p.Harnesses = []harness.Template{{Title: "tool", Binary: os.Args[0], SubmitDelay: delay, CommandPrefixes: []string{"!"},
			Args: []string{roleAgent, "--dir", p.Agents, "--session-id", "{sessionId}", "{harnessArgs}"}}}
	})
	d := w.definition(name)
	d.Harness = "tool"
	a := w.launch(d)
	for _, s := range start {
		s()
	}
	a.announced()
	a.until(smallagent.StateReady)
	return a
}

func TestAHarnessWithoutProofGetsTheReceiptTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.templated("tool", 20*time.Millisecond)
	a.receipt(a.reply("hello, tool"), typed)
	w.until("the text", func() bool { return len(a.got()) == 1 })
	a.receipt(a.reply("!ls"), typed)
	w.until("the second text", func() bool { return len(a.got()) == 2 })
	a.wants("hello, tool", `From "Ann": !ls`)
	a.wantsBytes("hello, tool", `From "Ann": !ls`)
}

// NousResearch/hermes-agent#36848, PostHog#43263, openclaw/openclaw#96487: who is not on the list talks to the agent.
// openclaw/openclaw#41073, errbot#969: what is no plain message of a member is mistaken for one.
func TestR4_4_WhatIsNotForTheAgentReachesNoPane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.plan = func(p *plan) { p.AllowShared = true } })
	a := w.agent("helper")
	w.ShareChannel(w.ch, "T0ELSEWHERE")
	eve := w.AddUser("eve", localslack.Stranger("T0ELSEWHERE"))
	robot := w.AddUser("robot", localslack.Bot())
	twin := w.AddUser("ann2", localslack.Named("Ann Smith", "Ann"), localslack.Guest())
	w.Invite(w.ch, eve.ID, robot.ID, twin.ID)
	w.change(func(p *plan) { p.Users = append(p.Users, eve.ID, robot.ID) })
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
		t.Run(c.name, func(t *testing.T) { w.dropped(c.ts, c.reason) })
	}
	ts := a.tells("see https://example.com/")
	if err := w.Unfurl(w.ch, ts); err != nil {
		t.Fatal(err)
	}
	w.dropped(ts, "unfurl")
	a.tells("the end")
	a.wants("see https://example.com/", "the end")
	a.wantsBytes("see https://example.com/", "the end")
	if n := len(a.answers()); n != 0 {
		t.Errorf("strangers were answered %d times", n)
	}
}

// hermes-agent#95417: the preview of a link comes while the reply is on its way.
func TestAPreviewMakesNoSecondTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.workspace.AutoUnfurl = true })
	a := w.agent("helper")
	w.dropped(a.tells("read https://example.com/a?b=1&c=2"), "unfurl")
	a.tells("done?")
	a.wants("read https://example.com/a?b=1&c=2", "done?")
	a.wantsBytes("read https://example.com/a?b=1&c=2", "done?")
}

// openclaw/openclaw#13161: an empty list lets everybody in.
func TestAnEmptyListLetsNobodyIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.change(func(p *plan) { p.Users = nil })
	w.dropped(a.reply("anybody?"), "unauthorized-actor")
	w.change(func(p *plan) { p.Users = []string{w.ann.ID} })
	a.tells("now?")
	a.wants("now?")
	a.wantsBytes("now?")
}

func TestRepliesWaitWhileTheConfigurationIsNotValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.change(func(p *plan) { p.Suspended = true })
	ts := a.reply("wait for it")
	a.receipt(ts, received)
	a.wantsBytes()
	w.change(func(p *plan) { p.Suspended = false })
	a.receipt(ts, accepted)
	a.wantsBytes("wait for it")
}

// asking has the agent ask a question, which holds what is said to it.
func (a *agent) asking() {
	a.w.t.Helper()
	a.tells("ask: deploy")
	a.until(smallagent.StateAsking)
}

// deny answers the question in the terminal.
func (a *agent) deny() {
	a.w.t.Helper()
	a.keys("2")
}

func TestAReplyThatIsEditedWhileItWaitsArrivesAsItIsNowOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.asking()
	first, second := a.reply("old first"), a.reply("old second")
	a.receipt(first, held)
	for ts, text := range map[string]string{first: "new first", second: "new second"} {
		if err := w.ann.Edit(w.ch, ts, text); err != nil {
			t.Fatal(err)
		}
	}
	w.passed()
	a.deny()
	a.receipt(first, accepted)
	a.receipt(second, accepted)
	a.wants("ask: deploy", "new first", "new second")
	if err := w.ann.Edit(w.ch, first, "newer still"); err != nil {
		t.Fatal(err)
	}
	a.answer("An edit came too late")
	a.wants("ask: deploy", "new first", "new second")
}

func TestAReplyThatIsDeletedWhileItWaitsIsNotTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.asking()
	first, second := a.reply("never mind"), a.reply("nor this")
	a.receipt(first, held)
	for _, ts := range []string{first, second} {
		if err := w.ann.Delete(w.ch, ts); err != nil {
			t.Fatal(err)
		}
		w.dropped(ts, "withdrawn")
	}
	a.deny()
	a.tells("after")
	a.wants("ask: deploy", "after")
	a.wantsNoText("never mind", "nor this")
}

// wantsNoText fails when any of these came out of the terminal.
func (a *agent) wantsNoText(parts ...string) {
	a.w.t.Helper()
	for _, p := range parts {
		if strings.Contains(a.bytes(), p) {
			a.w.t.Errorf("the pane of %s got %q", a.ref, p)
		}
	}
}

func TestSomebodyTakenOffTheListGetsNoHeldReplyThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.asking()
	ts := a.reply("one last thing")
	a.receipt(ts, held)
	w.change(func(p *plan) { p.Users = []string{w.bob.ID} })
	a.deny()
	w.dropped(ts, "unauthorized-actor")
	w.change(func(p *plan) { p.Users = []string{w.ann.ID, w.bob.ID} })
	a.tells("back again")
	a.wants("ask: deploy", "back again")
	a.wantsNoText("one last thing")
}

// openclaw/openclaw#41073, vercel/chat#171, spacedriveapp/spacebot#228: captions and broadcast replies are lost.
func TestCaptionsAndBroadcastRepliesArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	plan := a.tells("look at this", localslack.WithFiles(localslack.File{Name: "plan.txt", Content: []byte("a plan")}))
	a.tells("for all to see", localslack.Broadcast())
	picture := a.tells("", localslack.WithFiles(localslack.File{Name: "x.png", Content: []byte("x")}))
	a.wants("look at this\nAttached file: "+a.inbox(plan, "plan.txt"), "for all to see", "Attached file: "+a.inbox(picture, "x.png"))
}

// nearform/slack-knowledgebase-chatgpt-responder#983, slack-go#792: the bot answers itself.
func TestTheBotDoesNotHearItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.reply("@the-loop status")
	m := a.answer("*helper* running")
	w.dropped(m.TS, "bot-authored")
	if err := w.Unfurl(w.ch, m.TS); err != nil {
		t.Fatal(err)
	}
	w.dropped(m.TS, "bot-authored")
	w.passed()
	a.tells("the end")
	a.wants("the end")
}

// vellum-ai/vellum-assistant#38770, RocketChat/Rocket.Chat#6782, wee-slack#186: entities reach the agent, or are decoded
// twice.
func TestTextArrivesAsTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	a := w.agent("helper")
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
			a.tells(c.text, c.opts...)
			a.wantsBytes(want...)
		})
	}
}

// eneskirca/nodeterm#198: an escape in the text leaves the paste, and the rest of it runs.
func TestNothingInATextLeavesThePasteOrSubmits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	a := w.agent("helper")
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
				a.tells(c.text, opts...)
			}
			want = append(want, c.want)
			a.wantsBytes(want...)
		})
	}
	a.wants(want...)
}

// What slack-go cannot decode is read leniently.
func TestBlocksThatNobodyCanDecodeFallBackToTheText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("malformed for good", localslack.MalformedBlocks())
	a.tells("no blocks", localslack.WithBlocks(json.RawMessage(`[]`)))
	a.wants("malformed for good", "no blocks")
}

// openclaw/openclaw#75969: a reply ends up in another thread's session.
func TestInterleavedThreadsNeverCross(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	agents := []*agent{w.agent("one"), w.agent("two")}
	want := map[*agent][]string{}
	var last string
	for i := range 10 {
		for _, a := range agents {
			text := a.ref.Name() + " " + strings.Repeat("x", i)
			want[a] = append(want[a], strings.TrimRight(text, " "))
			last = a.reply(strings.TrimRight(text, " "))
		}
	}
	agents[1].receipt(last, accepted)
	for _, a := range agents {
		w.until("all of them", func() bool { return len(a.got()) >= len(want[a]) })
		a.wants(want[a]...)
	}
	_, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: agents[0].ref})
	if err != nil {
		t.Fatal(err)
	}
	agents[0].receipt(agents[0].reply("gone?"), errorText)
	agents[0].answer("Not delivered", "standing:one is not running")
	if n := len(agents[1].answers()); n != 0 {
		t.Errorf("the other thread was told %d things", n)
	}
}

package interact

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// fakeResender records choices.
type fakeResender struct {
	got    chan threads.ResendChoice
	answer string
	err    error
}

func (j *fakeResender) Resend(_ context.Context, d threads.ResendChoice) (string, error) {
	j.got <- d
	return j.answer, j.err
}

func postResendPrompt(x *env) (root, ts string) {
	root = x.postRoot()
	return root, x.post(chat.Post{Root: root, Text: "?", Nonce: "n", Buttons: []chat.Button{
		{Label: "Send again", Action: chat.ActionSend, Value: "token-1"}, {Label: "Skip", Action: chat.ActionSkip, Value: "token-1"}}})
}

func (x *env) click(p *localslack.Person, ts, action string) {
	x.t.Helper()
	if err := p.Click(x.ctx, x.ch, ts, action); err != nil {
		x.t.Fatal(err)
	}
}

func TestAButtonPressIsRunAndAnswered(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	j := &fakeResender{got: make(chan threads.ResendChoice, 1), answer: "done"}
	x.interactions.OnResend(j)
	x.connectAndWait()
	root, ts := postResendPrompt(x)
	x.click(x.ann, ts, chat.ActionSkip)
	d := <-j.got
	if want := (threads.ResendChoice{Token: "token-1", Action: chat.ActionSkip, TS: ts, Actor: authz.Actor{User: x.ann.ID, Team: x.TeamID()}}); d != want {
		t.Errorf("decided %+v, want %+v", d, want)
	}
	x.waitUntil("the answer", func() bool { return len(x.Ephemerals(x.ann.ID)) == 1 })
	if e := x.Ephemerals(x.ann.ID)[0]; e.Text != "done" || e.Source != "response_url" || e.Channel != x.ch {
		t.Errorf("told %+v in %s", e, root)
	}
}

// NousResearch/hermes-agent#36848, openclaw/openclaw#13161: buttons ask the same question as replies.
func TestAButtonPressOfAnUnauthorizedUserIsDropped(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	j := &fakeResender{got: make(chan threads.ResendChoice, 9), answer: "done"}
	x.interactions.o.Commands = echoCommands{}
	x.interactions.OnResend(j)
	x.connectAndWait()
	_, ts := postResendPrompt(x)
	twin := x.AddUser("ann2", localslack.Named("ann", "ann"))
	x.Invite(x.ch, twin.ID)
	x.click(twin, ts, chat.ActionSend)
	x.waitUntil("the drop", func() bool { return x.recorder.has("channel.dropped unauthorized-actor") })
	if f := x.recorder.lastDrop(); f["user"] != twin.ID || f["ts"] != ts {
		t.Errorf("dropped %v", f)
	}
	x.waitUntil("the log", func() bool { return strings.Contains(x.logs.String(), twin.ID) })
	if _, err := twin.Slash(x.ctx, x.ch, "/the-loop", "help"); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("the second drop", func() bool { return x.recorder.count("channel.dropped unauthorized-actor") == 2 })
	if n := len(x.Ephemerals(twin.ID)); n != 0 || len(j.got) != 0 {
		t.Errorf("%d answers, %d decisions", n, len(j.got))
	}
}

func TestInteractionsAreRefusedWhileTheConfigIsInvalid(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	j := &fakeResender{got: make(chan threads.ResendChoice, 9)}
	x.interactions.o.Policy = func() authz.Policy { return authz.Policy{Users: []string{x.ann.ID}, Team: x.TeamID(), Suspended: true} }
	x.interactions.OnResend(j)
	x.connectAndWait()
	_, ts := postResendPrompt(x)
	x.click(x.ann, ts, chat.ActionSend)
	x.waitUntil("the drop", func() bool { return x.recorder.has("channel.dropped config-invalid") })
	if len(j.got) != 0 || len(x.Ephemerals(x.ann.ID)) != 0 {
		t.Error("somebody got in")
	}
}

func TestAFailedPressIsAnsweredAndADeniedOneIsNot(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	j := &fakeResender{got: make(chan threads.ResendChoice, 9), err: errors.New("pane <gone>")}
	x.interactions.OnResend(j)
	x.connectAndWait()
	_, ts := postResendPrompt(x)
	x.Faults().InjectAPI("response_url", 1, localslack.HTML(500))
	x.click(x.ann, ts, chat.ActionSend)
	x.waitUntil("the answer", func() bool { return len(x.Ephemerals(x.ann.ID)) == 1 })
	if e := x.Ephemerals(x.ann.ID)[0]; e.Text != "That did not work: pane &lt;gone&gt;" || e.Source != "chat.postEphemeral" {
		t.Errorf("told %+v", e)
	}
	<-j.got
	x.interactions.Wait()
	j.err = threads.ErrDenied
	x.click(x.ann, ts, chat.ActionSend)
	x.waitUntil("the drop", func() bool { return x.recorder.has("channel.dropped unauthorized-actor") })
	if n := len(x.Ephemerals(x.ann.ID)); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// echoCommands answers commands with what it got.
type echoCommands struct{}

func (echoCommands) HandleCommand(_ context.Context, a Interaction) (string, error) {
	return a.Name + ":" + a.Text, nil
}

func TestACommandIsAnsweredEphemerally(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.interactions.o.Commands = echoCommands{}
	x.connectAndWait()
	for text, want := range map[string]string{"": "/the-loop:", "list": ":list", "“help” & <more>": ":“help” & <more>"} {
		before := len(x.Ephemerals(x.ann.ID))
		if _, err := x.ann.Slash(x.ctx, x.ch, "/the-loop", text); err != nil {
			t.Fatal(err)
		}
		x.waitUntil("the answer", func() bool { return len(x.Ephemerals(x.ann.ID)) > before })
		if e := x.Ephemerals(x.ann.ID)[before]; e.Text != want && !strings.HasSuffix(e.Text, want) {
			t.Errorf("%q is answered %q", text, e.Text)
		}
	}
}

const formView = `{"type":"modal","callback_id":"form","title":{"type":"plain_text","text":"Form"},"submit":{"type":"plain_text","text":"Go"},
	"blocks":[{"type":"input","block_id":"name","label":{"type":"plain_text","text":"Name"},"element":{"type":"plain_text_input","action_id":"v"}}]}`

// openForm has Ann press a shortcut whose handler opens a modal, and returns the modal's id.
func openForm(x *env) string {
	x.t.Helper()
	x.interactions.OnShortcut("open", func(ctx context.Context, a Interaction) (string, error) {
		var view slackgo.ModalViewRequest
		if err := json.Unmarshal([]byte(formView), &view); err != nil {
			return "", err
		}
		_, err := x.client.OpenView(ctx, a.TriggerID, view)
		return "", err
	})
	x.connectAndWait()
	if err := x.ann.GlobalShortcut(x.ctx, "open"); err != nil {
		x.t.Fatal(err)
	}
	x.waitUntil("the modal", func() bool { return len(x.Views(x.ann.ID)) == 1 })
	return x.Views(x.ann.ID)[0].ID
}

func TestAModalIsAnsweredWithItsAck(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.interactions.OnView("form", func(_ context.Context, a Interaction) any {
		if lenientjson.Parse(a.Payload).Obj("view").Obj("state").Obj("values").Obj("name").Obj("v").Str("value") == "good" {
			return nil
		}
		return map[string]any{"response_action": "errors", "errors": map[string]string{"name": "not good"}}
	})
	id := openForm(x)
	if errs, err := x.ann.Submit(x.ctx, id, map[string]string{"name": "bad"}); err != nil || errs["name"] != "not good" {
		t.Errorf("submitted bad: %v, %v", errs, err)
	}
	if errs, err := x.ann.Submit(x.ctx, id, map[string]string{"name": "good"}); err != nil || len(errs) != 0 {
		t.Errorf("submitted good: %v, %v", errs, err)
	}
	x.waitUntil("closed", func() bool { return len(x.Views(x.ann.ID)) == 0 })
}

// slack-go#1196: Slack drops an ack of 20 kB or more, and the modal would hang.
func TestAnAnswerThatIsTooLongForAnAckIsLeftOut(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.interactions.OnView("form", func(context.Context, Interaction) any { return map[string]string{"x": strings.Repeat("x", 30_000)} })
	id := openForm(x)
	began := time.Now()
	if _, err := x.ann.Submit(x.ctx, id, map[string]string{"name": "n"}); err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	x.waitUntil("the log", func() bool { return strings.Contains(x.logs.String(), "left out of its ack") })
}

func TestAnInteractionIsReadFromItsPayload(t *testing.T) {
	t.Parallel()
	c := newEnv(t).client
	c.SetSelf(slack.Self{Team: "T1"})
	message := parseInteraction(c, slack.Envelope{Type: slack.EnvelopeInteractive}, lenientjson.Parse(json.RawMessage(`{"type":"message_action","callback_id":"c","user":{"id":"U1","team_id":"T9"},
		"team":{"id":"T1"},"channel":{"id":"C1"},"message_ts":"2.0","message":{"ts":"2.0","thread_ts":"1.0"},"trigger_id":"t","response_url":"r"}`)))
	if message.Name != "c" || message.Root != "1.0" || message.TS != "2.0" || message.Channel != "C1" || message.TriggerID != "t" || message.Actor.Team != "T9" {
		t.Errorf("message action: %+v", message)
	}
	if a := parseInteraction(c, slack.Envelope{}, lenientjson.Parse(json.RawMessage(`{"user":{"id":"U1"},"team":{"id":"T1"}}`))); a.Actor.Team != "" {
		t.Errorf("the place's team was taken for the member's: %+v", a.Actor)
	}
	_ = parseInteraction(c, slack.Envelope{}, nil) // an empty payload is nobody's act
}

func TestTheHomeTabIsShownToAuthorizedUsers(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	got := make(chan Interaction, 9)
	x.interactions.OnHome(func(_ context.Context, a Interaction) (string, error) { got <- a; return "", nil })
	x.connectAndWait()
	if err := x.AddUser("eve").OpenHome(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.waitUntil("the drop", func() bool { return x.recorder.has("channel.dropped unauthorized-actor") })
	if err := x.ann.OpenHome(x.ctx); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.Actor.User != x.ann.ID || a.Actor.Team != x.TeamID() || a.Value != "home" {
		t.Errorf("opened by %+v", a)
	}
}

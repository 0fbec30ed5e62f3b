package localslack

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"testing"

	"the-loop/bot/localslack/store"
)

const boltDir = "../../testdata/bolt"

// bolt runs Slack's own framework against the workspace until the test ends.
func (f *fixture) bolt() {
	f.t.Helper()
	requireBolt(f.t)
	ctx, cancel := context.WithCancel(f.ctx)
	cmd := exec.CommandContext(ctx, "node", "conversation.js")
	cmd.Dir = boltDir
	cmd.Env = append(os.Environ(), "API_URL="+f.APIURL(), "BOT_TOKEN="+f.BotToken(), "APP_TOKEN="+f.AppToken())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed at the end
		close(exited)
		f.Mu.Lock()
		defer f.Mu.Unlock()
		f.Notify()
	}()
	f.t.Cleanup(func() {
		cancel()
		<-exited
		if f.t.Failed() {
			f.t.Logf("Bolt said:\n%s", out.String())
		}
	})
	f.waitUntil("Bolt connects", func() bool {
		select {
		case <-exited:
			f.t.Fatalf("Bolt ended: %s", out.String())
		default:
		}
		return f.Connections() == 1
	})
}

func realTime(o *store.Options) { o.Clock = nil }

func TestBoltRunsAConversation(t *testing.T) {
	t.Parallel()
	f := startFixture(t, realTime)
	f.bolt()

	root := f.post("hello there")
	f.waitUntil("a message is heard and answered in its thread", func() bool { return len(f.Thread(f.ch, root)) == 2 })
	answer := f.Thread(f.ch, root)[1]
	if answer.Text != "hello <@"+f.ann.ID+">" || answer.ThreadTS != root {
		t.Fatalf("answered %+v", answer)
	}

	if err := f.ann.Click(f.ctx, f.ch, answer.TS, "go"); err != nil {
		t.Fatal(err)
	}
	f.waitUntil("the button's message is changed", func() bool {
		m, _ := f.Message(f.ch, answer.TS)
		return m.Text == "gone fast"
	})

	must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", "status"))
	f.waitUntil("a command is answered through its response URL", func() bool {
		e := f.Ephemerals(f.ann.ID)
		return len(e) == 1 && e[0].Text == "you said status" && e[0].Source == "response_url"
	})
}

func TestBoltShowsAFieldErrorAndThenAcceptsTheForm(t *testing.T) {
	t.Parallel()
	f := startFixture(t, realTime)
	f.bolt()
	must[SlashResult](t)(f.ann.Slash(f.ctx, f.ch, "/agent", "form"))
	f.waitUntil("a modal opens", func() bool { return len(f.Views(f.ann.ID)) == 1 })
	view := f.Views(f.ann.ID)[0]

	wrong := must[map[string]string](t)(f.ann.Submit(f.ctx, view.ID, map[string]string{"name": "two words"}))
	if !maps.Equal(wrong, map[string]string{"name": "a name has no spaces"}) || len(f.Views(f.ann.ID)) != 1 {
		t.Fatalf("errors %v, open %v", wrong, f.Views(f.ann.ID))
	}
	wrong = must[map[string]string](t)(f.ann.Submit(f.ctx, view.ID, map[string]string{"name": "worker"}))
	if len(wrong) != 0 || len(f.Views(f.ann.ID)) != 0 {
		t.Fatalf("errors %v, open %v", wrong, f.Views(f.ann.ID))
	}
	f.waitUntil("the form did its work", func() bool {
		m := f.Messages(f.ch)
		return len(m) == 1 && m[0].Text == "worker by <@"+f.ann.ID+">"
	})
}

func TestBoltReceivesMentionsShortcutsAndHome(t *testing.T) {
	t.Parallel()
	f := startFixture(t, realTime)
	f.bolt()
	ts := f.post("@the-loop are you there?")
	f.waitUntil("a mention is heard", func() bool { return len(f.Thread(f.ch, ts)) == 2 })
	if err := f.ann.Shortcut(f.ctx, f.ch, ts, "session_menu"); err != nil {
		t.Fatal(err)
	}
	f.waitUntil("a shortcut works on its message", func() bool { return f.HasReaction(f.ch, ts, "eyes") })
	if err := f.ann.OpenHome(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.waitUntil("Home is published", func() bool { _, ok := f.Home(f.ann.ID); return ok })
	f.waitUntil("all acked", func() bool { return f.Pending() == 0 })
}

func TestBoltReconnectsAfterARefresh(t *testing.T) {
	t.Parallel()
	f := startFixture(t, realTime)
	f.bolt()
	f.Disconnect("refresh_requested")
	f.waitUntil("it left", func() bool { return f.Connections() == 0 })
	f.waitUntil("it is back", func() bool { return f.Connections() == 1 })
	root := f.post("hello again")
	f.waitUntil("and answers", func() bool { return len(f.Thread(f.ch, root)) == 2 })
}

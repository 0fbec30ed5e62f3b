package localslack

import (
	"testing"
	"time"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/wiretest"
)

const setStatus = "assistant.threads.setStatus"

func TestAStatusIsOfAThreadThatTheAppMayWriteIn(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	inside, err := f.ann.Reply(f.ch, root, "a reply")
	if err != nil {
		t.Fatal(err)
	}
	f.CallFails("channel_not_found", setStatus, wiretest.Form("channel_id", "C0NONE", "thread_ts", root, "status", "x"))
	f.CallFails("invalid_thread_ts", setStatus, wiretest.Form("channel_id", f.ch, "thread_ts", "1.000001", "status", "x"))
	f.CallFails("invalid_thread_ts", setStatus, wiretest.Form("channel_id", f.ch, "thread_ts", inside, "status", "x"))
	f.CallFails("invalid_arguments", setStatus, wiretest.Form("channel_id", f.ch, "thread_ts", root))
	f.Faults().InjectAPI(setStatus, 1, faults.Error("unknown_method"))
	f.CallFails("unknown_method", setStatus, wiretest.Form("channel_id", f.ch, "thread_ts", root, "status", "x"))
	if s := f.Status(f.ch, root); s != "" {
		t.Errorf("it shows %q", s)
	}
}

func TestAStatusIsTakenAwayAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	set := func(text string) {
		t.Helper()
		f.CallOK(setStatus, wiretest.Form("channel_id", f.ch, "thread_ts", root, "status", text))
	}
	set("is working…")
	f.clock.Advance(100 * time.Second)
	set("is still working…")
	f.clock.Advance(100 * time.Second)
	if s := f.Status(f.ch, root); s != "is still working…" {
		t.Errorf("renewed, it shows %q", s)
	}
	f.clock.Advance(21 * time.Second)
	if err := f.WaitFor(f.ctx, func() bool { return f.Status(f.ch, root) == "" }); err != nil {
		t.Errorf("after two minutes it shows %q", f.Status(f.ch, root))
	}
	set("is working…")
	set("")
	if s := f.Status(f.ch, root); s != "" {
		t.Errorf("taken away, it shows %q", s)
	}
}

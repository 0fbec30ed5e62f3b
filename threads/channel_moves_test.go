package threads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const otherChannel = "C2"

// A channel gets another id: its thread goes with it, and so does what waits there, whether the bot hears of it or finds out.
func TestAThreadGoesWithItsChannel(t *testing.T) {
	moved := func(w *env) { w.m.ChannelMoved(channel, otherChannel, w.slack.nextTS()); w.wait() }
	restart := func(w *env) { w.stop(); w.start(); w.wait() }
	for name, c := range map[string]struct {
		away   bool // the bot is away when it happens
		learns func(w *env)
	}{
		"heard":                            {learns: moved},
		"heard twice":                      {learns: func(w *env) { moved(w); moved(w) }},
		"heard, and started again":         {learns: func(w *env) { moved(w); restart(w) }},
		"missed, and found by reading":     {away: true, learns: func(w *env) { w.advance(2 * time.Minute) }},
		"missed, and found by a reply":     {learns: func(*env) {}},
		"missed, and read while connected": {learns: func(w *env) { w.m.Connected(true); w.advance(2 * time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.agent.setOnStep(failInDoubt)
				doubt := w.reply("before")
				w.advance(5 * time.Second)
				w.agent.setOnStep(failHeld)
				waits := w.reply("waits")
				w.advance(time.Second)
				if c.away {
					w.stop()
				}
				w.slack.move(otherChannel)
				missed := w.slack.write(ann, "missed")
				if c.away {
					w.start()
				}
				c.learns(w)
				w.agent.setOnStep(nil)
				live := w.reply("live")
				w.advance(2 * time.Minute)
				w.wantTyped("before", "waits", "missed", "live")
				if _, err := click(w, "Send again", annActor); err != nil {
					t.Fatal(err)
				}
				w.advance(2 * time.Minute)
				w.wantTyped("before", "waits", "missed", "live", "before")
				for _, ts := range []string{doubt, waits, missed, live} {
					w.wantReceipt(ts, "white_check_mark")
				}
				if b := bindingFile(t, w); b.Channel != otherChannel {
					t.Errorf("the binding is in %s", b.Channel)
				}
				if got := w.m.CurrentChannel(channel); got != otherChannel { // as the configuration still has it
					t.Errorf("Channel: %s", got)
				}
				if n := w.slack.roots(); n != 1 {
					t.Errorf("%d announcements", n)
				}
				w.announce() // where the configuration says, by the old id
				if n := w.slack.roots(); n != 1 {
					t.Errorf("%d announcements", n)
				}
			})
		})
	}
}

func (s *fakeSlack) nextTS() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tick()
}

// A message that is still to be posted when its channel gets another id is posted there, also by the next run.
func TestWhatIsToBePostedGoesWithItsChannel(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("after a restart ", restart), func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.slack.setErr(errors.New("no network"))
				w.m.index.of(sid).Call(context.Background(), func(context.Context) { w.m.index.of(sid).post("news") })
				w.advance(time.Minute)
				w.slack.move(otherChannel)
				w.m.ChannelMoved(channel, otherChannel, w.slack.nextTS())
				if restart {
					w.stop()
					w.start()
				}
				w.slack.setErr(nil)
				w.advance(2 * time.Minute)
				w.wantPosts("news")
			})
		})
	}
}

// Somebody else's thread with the same ts is not ours.
func TestAReplyInAnotherChannelMovesNothing(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.slack.write(ann, "hello")
		r := w.slack.reply(ts)
		r.Channel = foreignChannel
		w.handleReplies(r)
		w.advance(time.Minute)
		if at := w.m.index.of(sid).ThreadID().Channel; at != channel {
			t.Errorf("the thread is in %s", at)
		}
		if got := w.droppedReasons(); len(got) != 1 || got[0] != ReasonUnmapped {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestMovesAreFollowedAndNeverUndoneByOldEvents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "channels.json")
	m := loadChannelMoves(path)
	record := func(from, to, ts string, want bool) {
		t.Helper()
		if news, err := m.add(from, to, ts); news != want || err != nil {
			t.Errorf("%s to %s at %s: %v, %v; want %v", from, to, ts, news, err, want)
		}
	}
	wants := func(pairs ...string) {
		t.Helper()
		for range 2 {
			for i := 0; i < len(pairs); i += 2 {
				if got := m.current(pairs[i]); got != pairs[i+1] {
					t.Errorf("%s is %s; want %s", pairs[i], got, pairs[i+1])
				}
			}
			m = loadChannelMoves(path) // the next run
		}
	}
	record("C1", "C2", "10.0", true)
	record("C1", "C2", "10.0", false)
	record("C2", "C3", "20.0", true)
	wants("C1", "C3", "C2", "C3", "C3", "C3", "C9", "C9")
	record("C3", "C1", "30.0", true) // and back
	wants("C1", "C1", "C2", "C1", "C3", "C1")
	record("C1", "C2", "10.0", false) // again, long after
	record("", "C2", "40.0", false)
	record("C1", "", "40.0", false)
	record("C1", "C1", "40.0", false)
	wants("C1", "C1", "C2", "C1")
	for i := range 2 * maxMoves {
		record(fmt.Sprint("D", i), fmt.Sprint("E", i), fmt.Sprintf("%d.0", 100+i), true)
	}
	if n := len(m.targets); n != maxMoves {
		t.Errorf("%d moves are kept", n)
	}
	if err := os.WriteFile(path, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	m = loadChannelMoves(path)
	if news, err := m.add("C1", "C2", "1.0"); !news || err == nil || m.current("C1") != "C2" {
		t.Errorf("with a file that cannot be read: %v, %v", news, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "{half" {
		t.Error("it was overwritten")
	}
}

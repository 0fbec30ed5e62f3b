package bot_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/sessions/harness"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux/tmuxtest"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// meteredSession is a session whose program says when it read what.
type meteredSession struct {
	*testSession
	lines *bufio.Scanner
	total int // bytes it has read, all in all
}

// startMetered starts one, in a channel of its own: Slack takes one message a second in each.
func (w *env) startMetered(name string) *meteredSession {
	w.t.Helper()
	pipe := filepath.Join(w.botConfig.TmuxDir, name)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		w.t.Fatal(err)
	}
	in, err := os.OpenFile(pipe, os.O_RDWR, 0) // both, so that opening waits for nobody
	if err != nil {
		w.t.Fatal(err)
	}
	context.AfterFunc(w.ctx, func() { _ = in.Close() }) // nothing is written to it
	d := w.definition(name)
	d.Harness, d.HarnessArgs = "meter", []string{pipe}
	d.Chat.Channel = w.AddChannel(name, localslack.Members(w.ann.ID, w.BotUserID())).ID
	w.changeConfig(func(p *botConfig) {
		p.Harnesses = []harness.Template{{Title: "meter", Binary: os.Args[0], Args: []string{roleTimes, "{harnessArgs}"}}}
	})
	return &meteredSession{testSession: w.startDefined(d), lines: bufio.NewScanner(in)}
}

// waitUp waits until its program reads and its thread is there.
func (m *meteredSession) waitUp() {
	m.env.t.Helper()
	m.waitAnnounced()
	m.env.waitUntil("the program", func() bool {
		s, err := m.env.tmux.Capture(m.env.ctx, sessions.Target{Mark: m.id})
		return err == nil && strings.Contains(s.Text, "ready")
	})
}

// waitRead waits until the program has read n bytes more, and returns when it read the last.
func (m *meteredSession) waitRead(n int) time.Time {
	m.env.t.Helper()
	var at, got int64
	for want := m.total + n; m.total < want; m.total += int(got) {
		if !m.lines.Scan() {
			m.env.t.Fatal("the program says no more: ", m.lines.Err())
		}
		if _, err := fmt.Sscan(m.lines.Text(), &at, &got); err != nil {
			m.env.t.Fatal(err)
		}
	}
	return time.Unix(0, at)
}

// BenchmarkReplyToPane takes the time from the envelope on the socket to the last byte that the program in the pane has
// read, against one bare tmux invocation with the same load, paste and submit. Both are taken in turn, so that the
// machine's moods meet both.
func BenchmarkReplyToPane(b *testing.B) {
	w := newEnv(b, withoutRateLimits)
	m := w.startMetered("meter")
	m.waitUp()
	m.reply("warm up")
	m.waitRead(len(bracketedPaste("warm up")))
	pane := m.pane()
	text := strings.Repeat("x", 200)
	var ours, floor []time.Duration
	for b.Loop() {
		for range 100 {
			ts := m.reply(text)
			read := m.waitRead(len(bracketedPaste(text)))
			ours = append(ours, read.Sub(w.sentAt(ts)))
			w.waitUntil("it to be settled", func() bool { return m.storedReply(ts).State == binding.StateSettled })
			began := time.Now()
			w.pasteDirectly(pane, text)
			floor = append(floor, m.waitRead(len(bracketedPaste(text))).Sub(began))
		}
	}
	for _, percent := range []int{50, 99} {
		us, least := percentile(ours, percent), percentile(floor, percent)
		b.ReportMetric(us/least, fmt.Sprintf("p%d-ratio", percent))
		b.ReportMetric(us/1e6, fmt.Sprintf("p%d-ms", percent))
		b.ReportMetric(least/1e6, fmt.Sprintf("p%d-floor-ms", percent))
	}
	b.ReportMetric(0, "ns/op")
}

// sentAt is when the envelope of a message went out.
func (w *env) sentAt(ts string) time.Time {
	w.t.Helper()
	for _, f := range slices.Backward(w.Frames()) {
		if f.Dir == "out" && bytes.Contains(f.Data, []byte(`"event_ts":"`+ts+`"`)) {
			return f.Time
		}
	}
	w.t.Fatalf("no envelope of %s", ts)
	return time.Time{}
}

// pasteDirectly is the floor.
func (w *env) pasteDirectly(pane sessions.Pane, text string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, "tmux", "-u", "-N", "-S", tmuxtest.Socket(w.botConfig.TmuxDir), "load-buffer", "-b", "bare", "-", ";",
		"paste-buffer", "-p", "-r", "-d", "-b", "bare", "-t", pane.ID, ";", "set-buffer", "-b", "bare", "\r", ";",
		"paste-buffer", "-r", "-d", "-b", "bare", "-t", pane.ID)
	cmd.Stdin = strings.NewReader(text)
	if err := cmd.Run(); err != nil {
		w.t.Fatal(err)
	}
}

func percentile(d []time.Duration, percent int) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[(len(d)-1)*percent/100])
}

// BenchmarkBurst sends 1,000 replies at once to threads whose panes take them as fast as they can, and takes how long
// acks need and how many replies a second reach the panes. A hundred threads need two minutes until each was read once,
// since Slack lets a bot read about fifty a minute: -short leaves them out.
func BenchmarkBurst(b *testing.B) {
	for _, panes := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("panes=%d", panes), func(b *testing.B) {
			if panes > 10 && testing.Short() {
				b.Skip("two minutes")
			}
			w := newEnv(b, withoutRateLimits, func(s *envOptions) { s.workspace.FrameLog, s.patience = 20_000, 5*time.Minute })
			meters := make([]*meteredSession, panes)
			for i := range meters {
				meters[i] = w.startMetered(fmt.Sprint("m", i))
			}
			for _, m := range meters {
				m.waitUp()
			}
			w.waitThreadsRead(meters)
			var acks []time.Duration
			var took time.Duration
			for b.Loop() {
				seq := w.lastFrame()
				began := time.Now()
				took += w.postBurst(meters, 1000/panes).Sub(began)
				acks = append(acks, w.ackTimes(seq)...)
			}
			b.ReportMetric(percentile(acks, 99)/1e6, "ack-p99-ms")
			b.ReportMetric(percentile(acks, 100)/1e6, "ack-max-ms")
			b.ReportMetric(float64(1000/panes*panes*b.N)/took.Seconds(), "replies/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// waitThreadsRead waits until every thread is read, so that live replies wait for nothing.
func (w *env) waitThreadsRead(meters []*meteredSession) {
	w.t.Helper()
	for _, m := range meters {
		ts := m.reply("warm up")
		m.waitRead(len(bracketedPaste("warm up")))
		w.waitUntil("it to be settled", func() bool { return m.storedReply(ts).State == binding.StateSettled })
	}
}

// postBurst writes n replies into each thread at once and returns when the last was read.
func (w *env) postBurst(meters []*meteredSession, n int) time.Time {
	w.t.Helper()
	text := strings.Repeat("x", 200)
	var mu sync.Mutex
	var last time.Time
	var wg sync.WaitGroup
	for _, m := range meters {
		wg.Go(func() {
			at := m.waitRead(n * len(bracketedPaste(text)))
			mu.Lock()
			defer mu.Unlock()
			if at.After(last) {
				last = at
			}
		})
	}
	for range n {
		for _, m := range meters {
			m.reply(text)
		}
	}
	wg.Wait()
	return last
}

func (w *env) lastFrame() int {
	frames := w.Frames()
	return frames[len(frames)-1].Seq
}

// ackTimes are how long the envelopes after a frame were on their way until their acks were back.
func (w *env) ackTimes(seq int) []time.Duration {
	sent := map[string]time.Time{}
	var took []time.Duration
	for _, f := range w.FramesSince(seq) {
		var e struct {
			ID string `json:"envelope_id"`
		}
		if f.Kind != "text" || json.Unmarshal(f.Data, &e) != nil {
			continue
		}
		if f.Dir == "out" {
			sent[e.ID] = f.Time
		} else if at, ok := sent[e.ID]; ok {
			took = append(took, f.Time.Sub(at))
		}
	}
	return took
}

// BenchmarkThousandThreads takes the memory of a bot in a process of its own with 1,000 bound threads, after it has
// begun to read them. The process is the test binary, which is larger than the
// product's.
func BenchmarkThousandThreads(b *testing.B) {
	const count = 1000
	for b.Loop() {
		w := newEnv(b, withoutRateLimits, withoutBot)
		w.bindStopped(count)
		c := w.startBotProcess()
		w.waitUntil("some threads to be read", func() bool { return len(w.RequestsOf("conversations.replies")) >= 22 })
		w.waitUntil("a report of the heap", func() bool { return w.heapBytes() > 0 })
		b.ReportMetric(float64(procStatusKB(b, c.cmd.Process.Pid, "VmRSS"))/1024, "rss-MiB")
		b.ReportMetric(float64(procStatusKB(b, c.cmd.Process.Pid, "VmHWM"))/1024, "peak-MiB")
		b.ReportMetric(float64(procStatusKB(b, c.cmd.Process.Pid, "RssAnon"))/1024, "own-MiB")
		b.ReportMetric(float64(w.heapBytes())/(1<<20), "heap-MiB")
		c.kill()
	}
	b.ReportMetric(0, "ns/op")
}

// bindStopped makes sessions that are stopped, with threads that are bound.
func (w *env) bindStopped(count int) {
	w.t.Helper()
	client, err := bot.NewClient(slack.ClientOptions{BotToken: w.BotToken(), AppToken: w.AppToken(), APIURL: w.APIURL()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	store := registry.New(w.botConfig.Root)
	dir := filepath.Join(w.botConfig.Root, "threads")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for i := range count {
		d := w.definition(fmt.Sprint("s", i))
		rec := sessions.Record{Version: sessions.RecordVersion, ID: uuid.NewString(), Ref: sessions.StandingRef(d.Name), Definition: d,
			Conversation: uuid.NewString(), Status: sessions.StatusStopped, Created: time.Now(), Changed: time.Now()}
		if err := store.Save(w.ctx, rec); err != nil {
			w.t.Fatal(err)
		}
		ts, err := client.Post(w.ctx, chat.Post{Channel: w.ch, Text: "a session in `" + w.botConfig.TmuxDir + "`", Nonce: rec.ID, Session: rec.ID})
		if err != nil {
			w.t.Fatal(err)
		}
		data, err := json.Marshal(binding.Binding{Version: 1, ID: rec.ID, Ref: rec.Ref, Channel: w.ch, Root: ts, Cursor: ts, LastActive: time.Now()})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, rec.ID+".json"), data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// procStatusKB reads a size in kB from /proc/PID/status.
func procStatusKB(t testing.TB, pid int, key string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatalf("no %s", key)
	return 0
}

// heapBytes is what the bot in another process last said of its heap, in bytes.
func (w *env) heapBytes() int {
	data, err := os.ReadFile(filepath.Join(w.botConfig.Root, heapFile))
	if err != nil {
		return 0
	}
	n := 0
	_, _ = fmt.Sscan(string(data), &n) // half written: 0
	return n
}

package bot_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/relay"
)

// isSent reports whether the envelope of a message went out.
func (w *env) isSent(ts string) bool {
	return slices.ContainsFunc(w.Frames(), func(f localslack.Frame) bool {
		return f.Dir == "out" && bytes.Contains(f.Data, []byte(`"event_ts":"`+ts+`"`))
	})
}

// BenchmarkTurnToThread takes the time from the moment at which the agent writes its answer down to the message on the
// socket. The sessions take turns, each in a channel of its own: Slack takes one message a second in each.
func BenchmarkTurnToThread(b *testing.B) {
	w := newEnv(b, withoutRateLimits, func(s *envOptions) {
		s.patience, s.config = 10*patience, func(p *botConfig) { p.Answers = relay.AnswersFinal }
	})
	agents := make([]*testSession, 12)
	for i := range agents {
		d := w.definition(fmt.Sprintf("a%02d", i))
		d.Chat.Channel = w.AddChannel(d.Name, localslack.Members(w.ann.ID, w.BotUserID())).ID
		agents[i] = w.startDefined(d)
		agents[i].waitAnnounced()
		agents[i].waitReady()
		agents[i].waitBotMessage("You are the standing session")
	}
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		for range 15 {
			for _, a := range agents {
				n++
				a.reply(fmt.Sprintf("say: answer %05d", n))
				m := a.waitBotMessage(fmt.Sprintf("answer %05d", n))
				w.waitUntil("its event", func() bool { return w.isSent(m.TS) })
				said := a.entries(smallagent.TypeAgent)
				took = append(took, w.sentAt(m.TS).Sub(said[len(said)-1].At))
			}
		}
	}
	for _, percent := range []int{50, 99} {
		b.ReportMetric(percentile(took, percent)/1e6, fmt.Sprintf("p%d-ms", percent))
	}
	b.ReportMetric(0, "ns/op")
}

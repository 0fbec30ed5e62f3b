package socket

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// postBurst posts 1,000 replies as fast as it can and returns how long each envelope was under way until its ack came back.
func postBurst(b *testing.B) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w := localslack.New(localslack.Options{RateLimits: localslack.RateLimitsOff, FrameLog: 10_000, Log: slog.New(slog.DiscardHandler)})
	if err := w.Start(ctx); err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	ann := w.AddUser("ann")
	ch := w.AddChannel("agents", localslack.Members(ann.ID, w.BotUserID())).ID
	client, err := newClient(slack.ClientOptions{BotToken: w.BotToken(), AppToken: w.AppToken(), APIURL: w.APIURL()})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	heard := newRecorder()
	s := New(Options{API: client, CatchUps: heard, Recorder: connections{heard},
		Router: slack.NewEventRouter(slack.EventRouterOptions{Client: client, Threads: heard, CatchUpAll: heard.CatchUpAll})})
	ran := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { ran <- s.Run(running) }()
	defer func() { stop(); <-ran }()
	if err := w.WaitFor(ctx, func() bool { return w.Connections() == 1 }); err != nil {
		b.Fatal(err)
	}
	root, err := client.Post(ctx, chat.Post{Channel: ch, Text: "root", Nonce: "n"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if _, err := ann.Reply(ch, root, strconv.Itoa(i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.WaitFor(ctx, func() bool { return w.Pending() == 0 }); err != nil {
		b.Fatal(err)
	}
	return ackTimes(w.Frames())
}

// ackTimes pairs envelopes with their acks.
func ackTimes(frames []localslack.Frame) []time.Duration {
	sent := map[string]time.Time{}
	var took []time.Duration
	for _, f := range frames {
		id := lenientjson.Parse(json.RawMessage(f.Data)).Str("envelope_id")
		switch at, known := sent[id]; {
		case f.Kind != "text" || id == "":
		case f.Dir == "out":
			sent[id] = f.Time
		case known:
			took = append(took, f.Time.Sub(at))
		}
	}
	return took
}

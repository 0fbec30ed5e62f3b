package slack

import (
	"encoding/json"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// Every answer and every event tells what time it is at Slack, before anything is judged by it.
func TestSlacksClockIsReadFromEveryResponseAndEvent(t *testing.T) {
	t.Parallel()
	slack := localslack.NewFakeClock(time.Now().Add(-20 * time.Minute).Truncate(time.Second))
	w := localslack.New(localslack.Options{Clock: slack})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	client := newTestClient(t, ClientOptions{BotToken: w.BotToken(), AppToken: w.AppToken(), APIURL: w.APIURL()})
	near := func(after string) {
		t.Helper()
		now, known := client.Clock().Now()
		if off := now.Sub(slack.Now()); !known || off < 0 || off > 15*time.Second {
			t.Errorf("after %s Slack's clock is taken for %s, %v; it is %s", after, now, known, slack.Now())
		}
	}
	if _, err := client.Identify(t.Context()); err != nil { // by the Slack library
		t.Fatal(err)
	}
	near("auth.test")
	slack.Advance(time.Hour)
	if _, err := client.Replies(t.Context(), "C404", "1.0", "", ""); err == nil { // an answer that is an error
		t.Error("no error")
	}
	near("an error")
	slack.Advance(time.Hour)
	in := NewEventRouter(EventRouterOptions{Client: client, Threads: ignoring{}})
	in.Route(t.Context(), Envelope{Type: EnvelopeEvent, Payload: json.RawMessage(`{"event_time":` + chat.TimeTS(slack.Now())[:10] + `,"event":{"type":"x"}}`)})
	near("event_time")
	slack.Advance(time.Hour)
	in.Route(t.Context(), Envelope{Type: EnvelopeEvent, Payload: json.RawMessage(`{"event":{"type":"x","event_ts":"` + chat.TimeTS(slack.Now()) + `"}}`)})
	near("event_ts")
	in.Route(t.Context(), Envelope{Type: EnvelopeEvent, Payload: json.RawMessage(`{"event_time":1,"event":{"type":"x","event_ts":"?"}}`)})
	near("an event of long ago")
}

// ignoring ignores what happens in threads.
type ignoring struct{ ThreadHandler }

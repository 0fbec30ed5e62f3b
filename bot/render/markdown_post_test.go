package render_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
)

// Every page is taken as a new message and as a change of one, word for word.
func TestSlackAcceptsEveryPage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clock := localslack.NewFakeClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	ws := localslack.New(localslack.Options{Clock: clock})
	general := ws.AddChannel("general", localslack.Members(ws.BotUserID()))
	if err := ws.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	api := slack.New(ws.BotToken(), slack.OptionAPIURL(ws.APIURL()))
	sources, err := filepath.Glob("testdata/markdown/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for i, page := range render.Markdown(string(text)) {
			m, err := render.Post{Text: page.Text}.Render()
			if err != nil {
				t.Fatal(err)
			}
			said := []slack.MsgOption{slack.MsgOptionText(m.Fallback, false), slack.MsgOptionBlocks(m.Blocks...)}
			clock.Advance(2 * time.Second) // one message a second and channel
			_, ts, err := api.PostMessageContext(ctx, general.ID, said...)
			if err != nil {
				t.Fatalf("%s, page %d: %v", source, i+1, err)
			}
			if _, _, _, err := api.UpdateMessageContext(ctx, general.ID, ts, said...); err != nil {
				t.Fatalf("%s, page %d, as a change: %v", source, i+1, err)
			}
			if thread := ws.Thread(general.ID, ts); len(thread) != 1 || thread[0].Text != page.Text {
				t.Fatalf("%s, page %d arrived as %+v", source, i+1, thread)
			}
		}
	}
}

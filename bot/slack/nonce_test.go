package slack

import (
	"encoding/json"
	"testing"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/slack/lenientjson"
)

func TestAPostIsFoundWithoutItsMetadata(t *testing.T) {
	t.Parallel()
	marked := []slackgo.Block{slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.MarkdownType, "hello", false, true), nil, nil)}
	markNonce(marked, "n-1")
	blocks, err := json.Marshal(marked)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"by its metadata": `{"metadata":{"event_type":"the_loop","event_payload":{"nonce":"n-1"}}}`,
		"by its block":    `{"blocks":` + string(blocks) + `}`,
	} {
		if got := (message{Object: lenientjson.Parse(json.RawMessage(raw))}).nonce(); got != "n-1" {
			t.Errorf("%s: nonce %q", name, got)
		}
	}
}

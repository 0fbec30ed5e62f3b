package bot

import (
	"encoding/json"
	"testing"

	"the-loop/bot/render"
)

func TestAPostIsFoundAgainAlsoWhereSlackKeepsItsMetadataBack(t *testing.T) {
	t.Parallel()
	m, err := render.Post{Text: "hello", Nonce: "n-1", Session: "s"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := json.Marshal(m.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"by its metadata": `{"metadata":{"event_type":"the_loop","event_payload":{"nonce":"n-1"}}}`,
		"by its block":    `{"blocks":` + string(blocks) + `}`,
	} {
		if got := (message{rawObject: parseObject(json.RawMessage(raw))}).nonce(); got != "n-1" {
			t.Errorf("%s: nonce %q", name, got)
		}
	}
}

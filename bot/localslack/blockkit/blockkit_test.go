package blockkit

import (
	"encoding/json"
	"testing"

	"the-loop/bot/localslack/slackerr"
)

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestEveryKindOfInputHasItsState(t *testing.T) {
	t.Parallel()
	options := []any{
		Block{"value": "a", "text": Block{"type": "plain_text", "text": "A"}},
		Block{"value": "b", "text": Block{"type": "plain_text", "text": "B"}},
	}
	for kind, c := range map[string]struct{ value, want string }{
		"plain_text_input":     {"x", `{"value":"x"}`},
		"radio_buttons":        {"b", `{"selected_option":{"text":{"text":"B","type":"plain_text"},"value":"b"}}`},
		"checkboxes":           {"a,b", `{"selected_options":[{"text":{"text":"A","type":"plain_text"},"value":"a"},{"text":{"text":"B","type":"plain_text"},"value":"b"}]}`},
		"users_select":         {"U1", `{"selected_user":"U1"}`},
		"conversations_select": {"C1", `{"selected_conversation":"C1"}`},
		"channels_select":      {"C1", `{"selected_channel":"C1"}`},
		"datepicker":           {"2026-01-01", `{"selected_date":"2026-01-01"}`},
	} {
		got, err := SelectedState(Block{"type": kind, "options": options}, c.value)
		if raw := mustMarshal(t, got); err != nil || string(raw) != c.want {
			t.Errorf("%s: %s, %v", kind, raw, err)
		}
	}
	if _, err := SelectedState(Block{"type": "hologram"}, "x"); err == nil {
		t.Error("an unknown element was filled in")
	}
	grouped := Block{"type": "static_select", "option_groups": []any{Block{"options": options}}}
	if _, err := SelectedState(grouped, "b"); err != nil {
		t.Error(err)
	}
}

func TestConfirmDialogsAreChecked(t *testing.T) {
	t.Parallel()
	text := func(s string) Block { return Block{"type": "plain_text", "text": s} }
	with := func(confirm Block) string {
		el := Block{"type": "button", "text": text("x"), "confirm": confirm}
		return string(mustMarshal(t, []Block{{"type": "actions", "elements": []Block{el}}}))
	}
	good := Block{"title": text("Sure?"), "text": text("It goes away."), "confirm": text("Yes"), "deny": text("No")}
	if err := Check(with(good), false); err != nil {
		t.Error(err)
	}
	delete(good, "deny")
	if err := Check(with(good), false); slackerr.CodeOf(err) != "invalid_blocks" {
		t.Errorf("got %v", err)
	}
}

package eventlog

import (
	"bytes"
	"encoding/json"

	"the-loop/sessions"
)

// scrubFields is the fields with their texts as scrub leaves them.
func scrubFields(fields map[string]any, scrub func(string) string) map[string]any {
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		out[name] = value
		if isIdentifierField(name) {
			continue
		}
		data := encodeValue(value)
		if changed := sessions.ScrubJSON(data, scrub, isIdentifierField); !bytes.Equal(changed, data) {
			out[name] = json.RawMessage(changed)
		}
	}
	return out
}

// isIdentifierField reports the fields by which programs find what an event is about.
func isIdentifierField(name string) bool {
	switch name {
	case keyID, keyRef, "app", "channel", "conversation", "harness", "nonce", "pane", "root", "stale", "team", "thread", "ts", "user":
		return true
	}
	return false
}

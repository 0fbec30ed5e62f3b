package sessions

import (
	"bytes"
	"encoding/json"
)

// ScrubJSON has scrub change the texts of a JSON document, which stays one: its keys, its numbers and their order are as they
// were, and so are the texts under the keys that machine says are for programs.
func ScrubJSON(data []byte, scrub func(string) string, machine func(key string) bool) []byte {
	out := make([]byte, 0, len(data))
	key := ""
	for len(data) > 0 {
		start := bytes.IndexByte(data, '"')
		if start < 0 {
			break
		}
		out = append(out, data[:start]...)
		n := literalLength(data[start:])
		literal := data[start : start+n]
		data = data[start+n:]
		switch rest := bytes.TrimLeft(data, " \t\r\n"); {
		case len(rest) > 0 && rest[0] == ':':
			key = textOf(literal)
		case !machine(key):
			literal = scrubLiteral(literal, scrub)
		}
		out = append(out, literal...)
	}
	return append(out, data...)
}

// literalLength is how long the JSON string is that data begins with.
func literalLength(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func textOf(literal []byte) (text string) {
	_ = json.Unmarshal(literal, &text) // what is no string has no text
	return text
}

func scrubLiteral(literal []byte, scrub func(string) string) []byte {
	text := textOf(literal)
	scrubbed := scrub(text)
	if scrubbed == text {
		return literal
	}
	changed, _ := json.Marshal(scrubbed) // a string can be marshaled
	return changed
}

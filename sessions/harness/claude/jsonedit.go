package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// errNoObject is the error of a JSON text that is no object.
var errNoObject = errors.New("is not a JSON object")

// setMember returns the JSON text with one member, below the path of object names, set to a value. Objects that are missing
// are made; every other byte stays as it was. Where a name occurs twice the last one counts, as it does for JavaScript.
func setMember(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if !json.Valid(text) {
		var v any
		return nil, json.Unmarshal(text, &v) // says where
	}
	start, end := 0, len(text)
	for depth, name := range path {
		open, s, e, err := findMember(text, start, end, name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path[:depth], err)
		}
		if e == 0 {
			return insertMember(text, open, path[depth:], value)
		}
		start, end = s, e
	}
	return slices.Concat(text[:start], value, text[end:]), nil
}

// findMember looks in the object text[start:end] for a name. It returns the offset after the opening brace and where the
// member's value is; end 0: there is none.
func findMember(text []byte, start, end int, name string) (open, from, to int, err error) {
	dec := json.NewDecoder(bytes.NewReader(text[start:end]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return 0, 0, 0, errNoObject
	}
	open = start + int(dec.InputOffset())
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return 0, 0, 0, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return 0, 0, 0, err
		}
		if key == name {
			to = start + int(dec.InputOffset())
			from = to - len(value)
		}
	}
	return open, from, to, nil
}

// insertMember adds a first member to the object that opens at the offset, with objects around the value for the rest of
// the path.
func insertMember(text []byte, open int, path []string, value json.RawMessage) ([]byte, error) {
	for _, name := range slices.Backward(path) {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value = slices.Concat([]byte("{"), key, []byte(":"), value, []byte("}"))
	}
	member := value[1 : len(value)-1]
	rest := text[open:]
	if next := bytes.TrimLeft(rest, " \t\r\n"); len(next) > 0 && next[0] != '}' {
		member = append(slices.Clone(member), ',')
	}
	return slices.Concat(text[:open], member, rest), nil
}

package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const versionField = "version"

// marshal encodes v on one line, without escapes for HTML.
func marshal(v any) (json.RawMessage, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decodeObject decodes a JSON object without changing its numbers.
func decodeObject(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a state file: %w", err)
	}
	if doc == nil {
		return nil, errors.New("not a state file: it is null")
	}
	return doc, nil
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// members reads a JSON object. False: it is something else.
func members(text json.RawMessage) (object, bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	var all object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} // the decoder lets nothing else be a name
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	return all, true
}

// find returns the member of that name, else the one that differs from it in case only, as encoding/json does; else nil.
func (o object) find(name string) *member {
	var found *member
	for i := range o {
		switch {
		case o[i].name == name:
			return &o[i]
		case found == nil && strings.EqualFold(o[i].name, name):
			found = &o[i]
		}
	}
	return found
}

func (o object) marshal() json.RawMessage {
	text := []byte("{")
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := marshal(m.name)
		if err != nil {
			panic(err) // every string can be encoded
		}
		text = append(append(append(text, name...), ':'), m.value...)
	}
	return append(text, '}')
}

// elements reads a JSON array. False: it is something else.
func elements(text json.RawMessage) (all []json.RawMessage, ok bool) {
	return all, json.Unmarshal(text, &all) == nil && all != nil
}

// keepUnknown returns next with what is in doc and not in known. All three are the same kind of value: doc as it was read, known what
// was understood of doc, next what is to be written.
func keepUnknown(doc, known, next json.RawMessage) json.RawMessage {
	if was, ok := members(doc); ok {
		if will, ok := members(next); ok {
			understood, _ := members(known) // none: an empty value was left out
			return keepMembers(was, understood, will).marshal()
		}
	}
	if was, ok := elements(doc); ok {
		if will, ok := elements(next); ok {
			understood, _ := elements(known)
			return keepElements(was, understood, will)
		}
	}
	return next
}

func keepMembers(doc, known, next object) object {
	for _, m := range doc {
		of := known.find(m.name)
		if will := next.find(m.name); will != nil {
			var understood json.RawMessage
			if of != nil {
				understood = of.value
			}
			will.value = keepUnknown(m.value, understood, will.value)
		} else if of == nil {
			next = append(next, m)
		}
	}
	return next
}

// keepElements matches the elements of next with those of known that are the same.
func keepElements(doc, known, next []json.RawMessage) json.RawMessage {
	same := map[string][]int{}
	for i, e := range known[:min(len(known), len(doc))] {
		same[string(e)] = append(same[string(e)], i)
	}
	text := []byte("[")
	for i, e := range next {
		if i > 0 {
			text = append(text, ',')
		}
		if at := same[string(e)]; len(at) > 0 {
			same[string(e)] = at[1:]
			e = keepUnknown(doc[at[0]], known[at[0]], e)
		}
		text = append(text, e...)
	}
	return append(text, ']')
}

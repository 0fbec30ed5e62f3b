// Package lenientjson reads JSON objects whose fields may have any type: one malformed field spoils no other.
package lenientjson

import (
	"encoding/json"
	"strconv"
)

// Object is a JSON object read leniently: a field of an unexpected type is as good as absent and spoils no other.
type Object map[string]json.RawMessage

// Parse reads raw as an object; nil when it is none.
func Parse(raw json.RawMessage) Object {
	var o Object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// Obj is the object at key; nil when there is none.
func (o Object) Obj(key string) Object { return Parse(o[key]) }

// Str is the string at key. A number is given as it is written: some fields are either.
func (o Object) Str(key string) string {
	var s string
	if raw := o[key]; json.Unmarshal(raw, &s) == nil {
		return s
	} else if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return string(raw)
	}
	return ""
}

// Num is the number at key; 0 when there is none.
func (o Object) Num(key string) int {
	n, err := strconv.Atoi(o.Str(key))
	if err != nil {
		return 0
	}
	return n
}

// IsTrue reports a boolean true, also one written as a string, as Slack does in slash commands.
func (o Object) IsTrue(key string) bool {
	s := string(o[key])
	return s == "true" || s == `"true"`
}

// Has reports a field that is there and not null.
func (o Object) Has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

// List is the array at key, each element raw. ok is false when there is something at key that is no array.
func (o Object) List(key string) (items []json.RawMessage, ok bool) {
	if !o.Has(key) {
		return nil, true
	}
	return items, json.Unmarshal(o[key], &items) == nil
}

// Objects are the elements of the array at key that are objects.
func (o Object) Objects(key string) []Object {
	items, _ := o.List(key)
	out := make([]Object, 0, len(items))
	for _, item := range items {
		if x := Parse(item); x != nil {
			out = append(out, x)
		}
	}
	return out
}

package bot

import (
	"encoding/json"
	"strconv"
)

// object is a JSON object read leniently: a field of an unexpected type is as good as absent and spoils no other.
type object map[string]json.RawMessage

// loose reads raw as an object; nil when it is none.
func loose(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func (o object) obj(key string) object { return loose(o[key]) }

// str is the string at key. A number is given as it is written: some fields are either.
func (o object) str(key string) string {
	var s string
	if raw := o[key]; json.Unmarshal(raw, &s) == nil {
		return s
	} else if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return string(raw)
	}
	return ""
}

func (o object) num(key string) int {
	n, err := strconv.Atoi(o.str(key))
	if err != nil {
		return 0
	}
	return n
}

// is reports a boolean true, also one that is written as a string, as Slack does in slash commands.
func (o object) is(key string) bool {
	s := string(o[key])
	return s == "true" || s == `"true"`
}

// has reports a field that is there and not null.
func (o object) has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

// list is the array at key, each element raw. ok is false when there is something at key that is no array.
func (o object) list(key string) (items []json.RawMessage, ok bool) {
	if !o.has(key) {
		return nil, true
	}
	return items, json.Unmarshal(o[key], &items) == nil
}

// objects are the elements of the array at key that are objects.
func (o object) objects(key string) []object {
	items, _ := o.list(key)
	out := make([]object, 0, len(items))
	for _, item := range items {
		if x := loose(item); x != nil {
			out = append(out, x)
		}
	}
	return out
}

// first is the first of values that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

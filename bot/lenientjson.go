package bot

import (
	"encoding/json"
	"strconv"
)

// rawObject is a JSON object read leniently: a field of an unexpected type is as good as absent and spoils no other.
type rawObject map[string]json.RawMessage

// parseObject reads raw as an object; nil when it is none.
func parseObject(raw json.RawMessage) rawObject {
	var o rawObject
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func (o rawObject) obj(key string) rawObject { return parseObject(o[key]) }

// str is the string at key. A number is given as it is written: some fields are either.
func (o rawObject) str(key string) string {
	var s string
	if raw := o[key]; json.Unmarshal(raw, &s) == nil {
		return s
	} else if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return string(raw)
	}
	return ""
}

func (o rawObject) num(key string) int {
	n, err := strconv.Atoi(o.str(key))
	if err != nil {
		return 0
	}
	return n
}

// is reports a boolean true, also one that is written as a string, as Slack does in slash commands.
func (o rawObject) isTrue(key string) bool {
	s := string(o[key])
	return s == "true" || s == `"true"`
}

// has reports a field that is there and not null.
func (o rawObject) has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

// list is the array at key, each element raw. ok is false when there is something at key that is no array.
func (o rawObject) list(key string) (items []json.RawMessage, ok bool) {
	if !o.has(key) {
		return nil, true
	}
	return items, json.Unmarshal(o[key], &items) == nil
}

// objects are the elements of the array at key that are objects.
func (o rawObject) objects(key string) []rawObject {
	items, _ := o.list(key)
	out := make([]rawObject, 0, len(items))
	for _, item := range items {
		if x := parseObject(item); x != nil {
			out = append(out, x)
		}
	}
	return out
}

// firstNonEmpty is the first of values that is not empty.
func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// The names that every line may have.
const (
	keyTime  = "time"
	keyEvent = "event"
	keyLevel = "level"
	keyRef   = "ref"
	keyID    = "id"
)

var reservedKeys = []string{keyTime, keyEvent, keyLevel, keyRef, keyID}

// encode returns the event as one line.
func encode(at time.Time, e sessions.Event) []byte {
	var line bytes.Buffer
	line.WriteByte('{')
	appendField(&line, keyTime, at.UTC().Format(time.RFC3339Nano))
	appendField(&line, keyEvent, e.Name)
	appendField(&line, keyLevel, strings.ToLower(e.Level.String()))
	if e.Ref != "" {
		appendField(&line, keyRef, string(e.Ref))
	}
	if e.ID != "" {
		appendField(&line, keyID, e.ID)
	}
	fields := renameReserved(e.Fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		appendField(&line, name, fields[name])
	}
	line.WriteString("}\n")
	return line.Bytes()
}

// renameReserved gives the fields that are called like one of ours another name.
func renameReserved(fields map[string]any) map[string]any {
	for _, own := range reservedKeys {
		value, taken := fields[own]
		if !taken {
			continue
		}
		name := own + "_"
		for hasField(fields, name) {
			name += "_"
		}
		fields = maps.Clone(fields)
		delete(fields, own)
		fields[name] = value
	}
	return fields
}

func hasField(fields map[string]any, name string) bool {
	_, ok := fields[name]
	return ok
}

func appendField(line *bytes.Buffer, name string, value any) {
	if line.Len() > 1 {
		line.WriteByte(',')
	}
	line.Write(encodeValue(name))
	line.WriteByte(':')
	line.Write(encodeValue(value))
}

// encodeValue returns a value as JSON, or as a JSON string of its text when it has no other form.
func encodeValue(value any) []byte {
	switch v := value.(type) {
	case error:
		value = formatValue(v)
	case time.Duration:
		value = v.String()
	case slog.LogValuer:
		value = slog.AnyValue(v).Resolve().Any()
	}
	data, err := marshal(value)
	if err == nil {
		return data
	}
	instead := ""
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) { // NaN, or a cycle, in which package fmt would be lost
		instead = unsupported.Str
	} else {
		instead = formatValue(value)
	}
	data, _ = marshal(instead) // a string can be marshaled
	return data
}

// formatValue is what package fmt makes of a value; it catches the panics of the value's methods.
func formatValue(value any) string { return fmt.Sprint(value) }

// marshal is [json.Marshal] that leaves <, > and & as they are. A panic of the value's own method is an error.
func marshal(value any) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("its method panicked")
		}
	}()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Entry is an event as it was read back.
type Entry struct {
	sessions.Event
	Time time.Time
	Line string // as it stands in the log, without its end
}

// decode reads one line. It reports false for one that is not an event: torn by a crash, or not ours.
func decode(line []byte) (Entry, bool) {
	var raw map[string]json.RawMessage
	if json.Unmarshal(line, &raw) != nil {
		return Entry{}, false
	}
	entry := Entry{Line: string(bytes.TrimRight(line, "\r\n"))}
	for key, into := range map[string]any{
		keyTime: &entry.Time, keyEvent: &entry.Name, keyLevel: &entry.Level, keyRef: &entry.Ref, keyID: &entry.ID,
	} {
		data, there := raw[key]
		if there && json.Unmarshal(data, into) != nil {
			return Entry{}, false
		}
		delete(raw, key)
	}
	if entry.Time.IsZero() || entry.Name == "" {
		return Entry{}, false
	}
	for name, data := range raw {
		var value any
		if json.Unmarshal(data, &value) != nil {
			return Entry{}, false
		}
		if entry.Fields == nil {
			entry.Fields = map[string]any{}
		}
		entry.Fields[name] = value
	}
	return entry, true
}

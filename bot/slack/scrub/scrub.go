// Package scrub removes secrets from the arguments of requests to Slack.
package scrub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Request removes secrets from a request's arguments. Texts are scrubbed where they are made too, before they are cut; this
// is the one place that every text passes, whoever made it.
func Request(req *http.Request, s Scrubber) error {
	kind := req.Header.Get("Content-Type")
	form, isJSON := strings.HasPrefix(kind, "application/x-www-form-urlencoded"), strings.HasPrefix(kind, "application/json")
	if req.Body == nil || !form && !isJSON {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read a request before it is sent: %w", err)
	}
	_ = req.Body.Close() // it was read to its end
	if form {
		body = scrubForm(body, s)
	} else {
		body = s.ScrubJSON(body, IsMachineField)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// scrubForm scrubs the arguments that people may see. Some of them are JSON.
func scrubForm(body []byte, s Scrubber) []byte {
	args, err := url.ParseQuery(string(body))
	if err != nil {
		return body // it is ours, and cannot be wrong
	}
	changed := false
	for name, values := range args {
		if IsMachineField(name) {
			continue
		}
		for i, value := range values {
			values[i] = scrubArgument(value, s)
			changed = changed || values[i] != value
		}
	}
	if !changed {
		return body
	}
	return []byte(args.Encode())
}

func scrubArgument(value string, s Scrubber) string {
	if (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && json.Valid([]byte(value)) {
		return string(s.ScrubJSON([]byte(value), IsMachineField))
	}
	return s.Scrub(value)
}

// IsMachineField reports whether an argument or key of Slack's API is read by programs and not shown to people: ids, numbers,
// moments.
func IsMachineField(name string) bool {
	switch name {
	case "action_id", "block_id", "callback_id", "channel", "channel_id", "cursor", "envelope_id", "event_type", "external_id",
		"file", "hash", "id", "inclusive", "include_all_metadata", "language", "latest", "length", "limit", "metadata", "name", "nonce",
		"oldest", "private_metadata", "response_action", "response_type", "session", "style", "team_id", "thread_ts",
		"timestamp", "token", "trigger_id", "ts", "type", "user", "user_id", "users", "value", "view_id":
		return true
	}
	return false
}

// Scrubber removes secrets.
type Scrubber interface {
	Scrub(text string) string
	// ScrubJSON scrubs the strings of a JSON document, but for those under the keys that are for programs.
	ScrubJSON(data []byte, isMachineField func(key string) bool) []byte
}

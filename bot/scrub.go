package bot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"the-loop/sessions"
)

// scrubRequest takes out of a request's arguments what must not be posted. Texts are scrubbed where they are made, before they
// are cut; this is the one door that every text goes through, whoever made it.
func scrubRequest(req *http.Request, clean func(string) string) error {
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
		body = scrubForm(body, clean)
	} else {
		body = sessions.ScrubJSON(body, clean, isMachineField)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// scrubForm scrubs the arguments that people may see. Some of them are JSON.
func scrubForm(body []byte, clean func(string) string) []byte {
	args, err := url.ParseQuery(string(body))
	if err != nil {
		return body // it is ours, and cannot be wrong
	}
	changed := false
	for name, values := range args {
		if isMachineField(name) {
			continue
		}
		for i, value := range values {
			values[i] = scrubArgument(value, clean)
			changed = changed || values[i] != value
		}
	}
	if !changed {
		return body
	}
	return []byte(args.Encode())
}

func scrubArgument(value string, clean func(string) string) string {
	if (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && json.Valid([]byte(value)) {
		return string(sessions.ScrubJSON([]byte(value), clean, isMachineField))
	}
	return clean(value)
}

// isMachineField reports the arguments and keys of Slack's InjectAPI that programs read and people are not shown: names of things,
// numbers, moments.
func isMachineField(name string) bool {
	switch name {
	case "action_id", "block_id", "callback_id", "channel", "channel_id", "cursor", "envelope_id", "event_type", "external_id",
		"file", "hash", "id", "inclusive", "include_all_metadata", "language", "latest", "length", "limit", "metadata", "name", "nonce",
		"oldest", "private_metadata", "response_action", "response_type", "session", "style", "team_id", "thread_ts",
		"timestamp", "token", "trigger_id", "ts", "type", "user", "user_id", "users", "value", "view_id":
		return true
	}
	return false
}

package harness

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"the-loop/sessions"
)

const (
	// EventPermissionRequest is Claude Code's question whether a tool may be used.
	EventPermissionRequest = "PermissionRequest"
	// EventPermissionAnswered is our own report: a hook that waited gave the agent an answer.
	EventPermissionAnswered = "Answered"
)

// answeredPayload is the payload of [EventPermissionAnswered].
type answeredPayload struct {
	Allow bool `json:"allow"`
}

// permissionPayload is the payload of [EventPermissionRequest].
type permissionPayload struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	Cwd   string          `json:"cwd"`
}

// inputKeys are the members of a tool's input that are shown by name. Each goes by several names.
var inputKeys = struct{ command, file, why []string }{
	command: []string{"command"},
	file:    []string{"file_path", "notebook_path", "path"},
	why:     []string{"description"},
}

// terminalOnlyTools are the tools whose question is more than whether they may be used: it is answered by choosing, or by a plan
// that is read first.
var terminalOnlyTools = []string{"AskUserQuestion", "ExitPlanMode"}

// parsePermissionRequest reads a question from the report of it. One without a token cannot be answered, and is none.
func parsePermissionRequest(r Report) (sessions.PermissionRequest, bool) {
	var p permissionPayload
	if r.Token == "" || json.Unmarshal(r.Payload, &p) != nil || p.Tool == "" {
		return sessions.PermissionRequest{}, false
	}
	a := sessions.PermissionRequest{Token: r.Token, At: r.At, Tool: p.Tool, Cwd: p.Cwd, Decidable: !slices.Contains(terminalOnlyTools, p.Tool)}
	var input map[string]json.RawMessage
	if json.Unmarshal(p.Input, &input) != nil {
		a.Input = indentJSON(p.Input)
		return a, true
	}
	a.Command, a.File, a.Explanation = takeString(input, inputKeys.command), takeString(input, inputKeys.file), takeString(input, inputKeys.why)
	if len(input) > 0 {
		rest, _ := json.Marshal(input) // it was decoded from JSON
		a.Input = indentJSON(rest)
	}
	return a, true
}

// take takes the first of the members that is a string out of an input.
func takeString(input map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(input[name], &text) == nil && strings.TrimSpace(text) != "" {
			delete(input, name)
			return text
		}
	}
	return ""
}

func indentJSON(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil || b.String() == "null" {
		return ""
	}
	return b.String()
}

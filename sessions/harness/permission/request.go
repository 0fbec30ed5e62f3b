package permission

import (
	"bytes"
	"encoding/json"
	"strings"

	"the-loop/sessions"
)

// Event is the name of a permission request among the events that hooks are called for.
const Event = "PermissionRequest"

// payload is what a hook is told about a permission request.
type payload struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	Cwd   string          `json:"cwd"`
}

// inputKeys are the names of the members of a tool's input that are shown by themselves.
var inputKeys = struct{ command, file, why []string }{
	command: []string{"command"},
	file:    []string{"file_path", "notebook_path", "path"},
	why:     []string{"description"},
}

// The tools whose request asks for more than yes or no: for answers to questions, and for a plan to be read.
const (
	toolQuestions = "AskUserQuestion"
	toolPlan      = "ExitPlanMode"
)

// ParseRequest parses what a hook was told. The token and the time are left empty.
func ParseRequest(data json.RawMessage) (sessions.PermissionRequest, bool) {
	var p payload
	if json.Unmarshal(data, &p) != nil || p.Tool == "" {
		return sessions.PermissionRequest{}, false
	}
	r := sessions.PermissionRequest{Tool: p.Tool, Cwd: p.Cwd, Decidable: true}
	switch p.Tool {
	case toolQuestions:
		r.Questions, r.Decidable = parseQuestions(p.Input)
	case toolPlan:
		r.Plan = parsePlan(p.Input)
		r.Decidable = r.Plan != ""
	}
	if r.Questions != nil || r.Plan != "" {
		return r, true
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(p.Input, &input) != nil {
		r.Input = indentJSON(p.Input)
		return r, true
	}
	r.Command, r.File, r.Explanation = takeString(input, inputKeys.command), takeString(input, inputKeys.file), takeString(input, inputKeys.why)
	r.Diff = takeDiff(input, r.File)
	if len(input) > 0 {
		rest, _ := json.Marshal(input) // it was decoded from JSON
		r.Input = indentJSON(rest)
	}
	return r, true
}

// takeString removes the first member that is a string from an input and returns it.
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

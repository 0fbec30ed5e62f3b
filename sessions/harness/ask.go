package harness

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"the-loop/sessions"
)

const (
	// EventPermission is Claude Code's question whether a tool may be used.
	EventPermission = "PermissionRequest"
	// EventAnswered is our own report: a hook that waited gave the agent an answer.
	EventAnswered = "Answered"
)

// answeredNote is the payload of [EventAnswered].
type answeredNote struct {
	Allow bool `json:"allow"`
}

// permission is the payload of [EventPermission].
type permission struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	Cwd   string          `json:"cwd"`
}

// inputWords are the members of a tool's input that are shown by name. Each goes by several names.
var inputWords = struct{ command, file, why []string }{
	command: []string{"command"},
	file:    []string{"file_path", "notebook_path", "path"},
	why:     []string{"description"},
}

// inTerminal are the tools whose question is more than whether they may be used: it is answered by choosing, or by a plan
// that is read first.
var inTerminal = []string{"AskUserQuestion", "ExitPlanMode"}

// askOf reads a question from the report of it. One without a token cannot be answered, and is none.
func askOf(r Report) (sessions.Ask, bool) {
	var p permission
	if r.Token == "" || json.Unmarshal(r.Payload, &p) != nil || p.Tool == "" {
		return sessions.Ask{}, false
	}
	a := sessions.Ask{Token: r.Token, At: r.At, Tool: p.Tool, Cwd: p.Cwd, Permit: !slices.Contains(inTerminal, p.Tool)}
	var input map[string]json.RawMessage
	if json.Unmarshal(p.Input, &input) != nil {
		a.Input = indented(p.Input)
		return a, true
	}
	a.Command, a.File, a.Why = take(input, inputWords.command), take(input, inputWords.file), take(input, inputWords.why)
	if len(input) > 0 {
		rest, _ := json.Marshal(input) // it was decoded from JSON
		a.Input = indented(rest)
	}
	return a, true
}

// take takes the first of the members that is a string out of an input.
func take(input map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(input[name], &text) == nil && strings.TrimSpace(text) != "" {
			delete(input, name)
			return text
		}
	}
	return ""
}

func indented(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil || b.String() == "null" {
		return ""
	}
	return b.String()
}

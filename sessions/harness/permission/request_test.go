package permission

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestPermissionRequestIsParsedFromToolInput(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]sessions.PermissionRequest{
		`{"tool_name":"Write","cwd":"/c","tool_input":{"file_path":"/c/x","content":"a\nb"}}`: {Tool: "Write", File: "/c/x", Cwd: "/c", Diff: "--- /dev/null\n+++ /c/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", Decidable: true},
		`{"tool_name":"mcp__x__y","tool_input":[1]}`:                                          {Tool: "mcp__x__y", Input: "[\n  1\n]", Decidable: true},
		`{"tool_name":"WebFetch","tool_input":{"command":7,"path":""}}`:                       {Tool: "WebFetch", Input: "{\n  \"command\": 7,\n  \"path\": \"\"\n}", Decidable: true},
		`{"tool_name":"AskUserQuestion"}`:                                                     {Tool: "AskUserQuestion"},
		`{"tool_name":"ExitPlanMode","tool_input":null}`:                                      {Tool: "ExitPlanMode"},
	} {
		got, ok := ParseRequest(json.RawMessage(payload))
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %v %s", payload, ok, diff)
		}
	}
	for _, payload := range []string{`{}`, `{"tool_name":7}`, ``} {
		if _, ok := ParseRequest(json.RawMessage(payload)); ok {
			t.Errorf("%q is a request", payload)
		}
	}
}

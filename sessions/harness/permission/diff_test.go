package permission

import (
	"encoding/json"
	"testing"
)

func TestAChangeOfAFileIsShownAsADiff(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]struct{ diff, rest string }{
		`{"file_path":"/f","old_string":"a\nb\nc","new_string":"a\nB\nc","replace_all":false}`:                                            {"--- /f\n+++ /f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n", ""},
		`{"file_path":"/f","old_string":"x\n","new_string":"","replace_all":true}`:                                                        {"everywhere in the file:\n--- /f\n+++ /f\n@@ -1 +0,0 @@\n-x\n", ""},
		`{"file_path":"/f","edits":[{"old_string":"a\n","new_string":"b\n"},{"old_string":"c\n","new_string":"d\n","replace_all":true}]}`: {"--- /f\n+++ /f\n@@ -1 +1 @@\n-a\n+b\neverywhere in the file:\n@@ -1 +1 @@\n-c\n+d\n", ""},
		`{"file_path":"/f","content":"one\ntwo\n","mode":7}`:                                                                              {"--- /dev/null\n+++ /f\n@@ -0,0 +1,2 @@\n+one\n+two\n", "{\n  \"mode\": 7\n}"},
		`{"file_path":"/f","old_string":"a"}`:                                                                                             {"", "{\n  \"old_string\": \"a\"\n}"},
		`{"file_path":"/f","edits":[{"old_string":"a"}]}`:                                                                                 {"", "{\n  \"edits\": [\n    {\n      \"old_string\": \"a\"\n    }\n  ]\n}"},
		`{"content":"no file"}`: {"", "{\n  \"content\": \"no file\"\n}"},
	} {
		r, ok := ParseRequest(json.RawMessage(`{"tool_name":"Edit","tool_input":` + input + `}`))
		if !ok || r.Diff != want.diff || r.Input != want.rest {
			t.Errorf("%s:\n%q\nwant\n%q\nthe rest is %q, want %q", input, r.Diff, want.diff, r.Input, want.rest)
		}
	}
}

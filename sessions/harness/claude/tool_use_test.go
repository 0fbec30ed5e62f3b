package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestUseOfTheRequestedToolIsSeen(t *testing.T) {
	t.Parallel()
	const use = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"%s","name":"Bash","input":{"command":"touch X"}}]}}`
	const result = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"x"}]}}`
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	write := func(format, id string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, format+"\n", id)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(use, "before")
	write(result, "before")
	write(use, "now")
	isUsed := WatchTool([]byte(`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"touch X"},"transcript_path":"` + path + `"}`))
	if isUsed() {
		t.Error("a tool that has no result yet was used")
	}
	write(result, "another's")
	if isUsed() {
		t.Error("the result of another tool counts")
	}
	write(result, "now")
	if !isUsed() {
		t.Error("the result is not seen")
	}
	if WatchTool([]byte(`{}`))() {
		t.Error("without a transcript a tool was used")
	}
}

package claude

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"

	"the-loop/sessions/harness/transcript"
)

// toolUseWatcher watches the transcript for the use of the tool of a permission request. After a yes in the terminal Claude Code does
// not end the hook, and ignores its decision (2.1.197).
type toolUseWatcher struct {
	path    string // of the transcript; empty: there is none
	tool    string
	input   any
	offset  int64
	size    int64
	pending map[string]bool // uses of the tool with that input that have no result
	found   bool            // there was one
}

// WatchTool returns a function that reports whether the tool of a permission request was used.
func WatchTool(request json.RawMessage) func() bool { return newToolUseWatcher(request).isDone }

// maxToolUseTail is how much of the transcript's end is read at first: it has the use that permission is asked for.
const maxToolUseTail = 4 << 20

// newToolUseWatcher returns a watcher for the tool of a permission request.
func newToolUseWatcher(payload json.RawMessage) *toolUseWatcher {
	var p struct {
		Transcript string `json:"transcript_path"`
		Tool       string `json:"tool_name"`
		Input      any    `json:"tool_input"`
	}
	w := &toolUseWatcher{pending: map[string]bool{}}
	if json.Unmarshal(payload, &p) != nil || p.Transcript == "" {
		return w
	}
	w.path, w.tool, w.input = p.Transcript, p.Tool, p.Input
	if info, err := os.Stat(p.Transcript); err == nil {
		w.offset = max(0, info.Size()-maxToolUseTail)
	}
	w.isDone()
	w.found = len(w.pending) > 0
	return w
}

// isDone reports whether every use of the tool has its result.
func (w *toolUseWatcher) isDone() bool {
	if w.path == "" {
		return false
	}
	info, err := os.Stat(w.path)
	if err != nil || info.Size() == w.size {
		return false
	}
	w.size = info.Size()
	if at, err := transcript.ReadLines(w.path, w.offset, w.parseLine); err == nil {
		w.offset = at
	}
	return w.found && len(w.pending) == 0
}

func (w *toolUseWatcher) parseLine(line []byte) {
	if !bytes.Contains(line, []byte(`"tool_use`)) { // nor a result, which names the use
		return
	}
	var l struct {
		Message struct {
			Content []struct {
				Type  string `json:"type"`
				ID    string `json:"id"`
				Name  string `json:"name"`
				Input any    `json:"input"`
				Use   string `json:"tool_use_id"`
			} `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &l) != nil {
		return
	}
	for _, b := range l.Message.Content {
		switch {
		case b.Type == "tool_use" && b.Name == w.tool && reflect.DeepEqual(b.Input, w.input):
			w.pending[b.ID], w.found = true, true
		case b.Type == "tool_result":
			delete(w.pending, b.Use)
		}
	}
}

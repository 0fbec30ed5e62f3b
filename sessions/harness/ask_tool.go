package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
)

// toolWatch sees in Claude Code's transcript that the tool that is asked for was used after all: it does not end a hook whose
// question was answered with yes in the terminal, and does not listen to it any more (2.1.197).
type toolWatch struct {
	path  string // of the transcript; empty: there is none
	tool  string
	input any
	at    int64
	size  int64
	open  map[string]bool // uses of the tool with that input that have no result
	seen  bool            // there was one
}

// toolLook is how much of the transcript's end is read at first: the use that is asked for stands there.
const toolLook = 4 << 20

// watchTool begins to watch for the tool that the payload of a question names.
func watchTool(payload json.RawMessage) *toolWatch {
	var p struct {
		Transcript string `json:"transcript_path"`
		Tool       string `json:"tool_name"`
		Input      any    `json:"tool_input"`
	}
	w := &toolWatch{open: map[string]bool{}}
	if json.Unmarshal(payload, &p) != nil || p.Transcript == "" {
		return w
	}
	w.path, w.tool, w.input = p.Transcript, p.Tool, p.Input
	if info, err := os.Stat(p.Transcript); err == nil {
		w.at = max(0, info.Size()-toolLook)
	}
	w.done()
	w.seen = len(w.open) > 0
	return w
}

// done reports whether each such use has its result.
func (w *toolWatch) done() bool {
	if w.path == "" {
		return false
	}
	info, err := os.Stat(w.path)
	if err != nil || info.Size() == w.size {
		return false
	}
	w.size = info.Size()
	if at, err := readLines(w.path, w.at, w.see); err == nil {
		w.at = at
	}
	return w.seen && len(w.open) == 0
}

func (w *toolWatch) see(line []byte) {
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
			w.open[b.ID], w.seen = true, true
		case b.Type == "tool_result":
			delete(w.open, b.Use)
		}
	}
}

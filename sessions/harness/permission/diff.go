package permission

import (
	"encoding/json"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// The members of the inputs of tools that change files.
const (
	keyOld     = "old_string"
	keyNew     = "new_string"
	keyAll     = "replace_all"
	keyEdits   = "edits"
	keyContent = "content"
)

// edit is the replacement of a text in a file.
type edit struct {
	Old *string `json:"old_string"`
	New *string `json:"new_string"`
	All bool    `json:"replace_all"`
}

// takeDiff removes from a tool's input what it would change in the file, and returns that as a unified diff; empty: the input does not
// say. It shows what the agent says alone: the file is not read, since what is in it may be nobody's to see.
func takeDiff(input map[string]json.RawMessage, file string) string {
	if file == "" {
		return ""
	}
	var edits []edit
	var one edit
	var content string
	whole, _ := json.Marshal(input) // it was decoded from JSON
	switch {
	case json.Unmarshal(whole, &one) == nil && one.Old != nil && one.New != nil:
		edits = []edit{one}
		delete(input, keyOld)
		delete(input, keyNew)
		delete(input, keyAll)
	case json.Unmarshal(input[keyEdits], &edits) == nil && areComplete(edits):
		delete(input, keyEdits)
	case json.Unmarshal(input[keyContent], &content) == nil && input[keyContent] != nil:
		delete(input, keyContent)
		return udiff.Unified("/dev/null", file, "", content)
	default:
		return ""
	}
	var b strings.Builder
	for i, e := range edits {
		diff := udiff.Unified(file, file, *e.Old, *e.New)
		if i > 0 { // the names of the file stand there already
			_, diff, _ = strings.Cut(diff, "+++ "+file+"\n")
		}
		if e.All {
			b.WriteString("everywhere in the file:\n")
		}
		b.WriteString(diff)
	}
	return b.String()
}

func areComplete(edits []edit) bool {
	for _, e := range edits {
		if e.Old == nil || e.New == nil {
			return false
		}
	}
	return len(edits) > 0
}

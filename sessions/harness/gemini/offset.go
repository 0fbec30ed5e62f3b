package gemini

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// transcriptOffset is a position in the files of a conversation, and in the log where evidence counts from there.
type transcriptOffset struct {
	Since        time.Time        `json:"since"`            // what was said before does not count
	Conversation string           `json:"now"`              // the conversation
	Dir          string           `json:"dir,omitempty"`    // of the working folder's log and conversations; empty: not known yet
	LogSeen      int64            `json:"asked,omitzero"`   // when the log was changed last, as of that read, in Unix nanoseconds
	Files        map[string]int64 `json:"files,omitempty"`  // offsets in the files of conversations, by name
	LastKey      string           `json:"lastly,omitempty"` // the message that was read last: it may be written again with more in it
	Turn         sessions.Turn    `json:"turn,omitzero"`

	StartID string `json:"start,omitempty"` // the log's name for the session; empty: no evidence counts from here
	Logged  int    `json:"logged,omitzero"` // how many texts of the session the log had

	pending      *pendingText // not stored: it is read again
	projectsFile string       // not stored: it changes when there is a Dir
}

// startOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOffset(conv sessions.Conversation, since sessions.Offset) (s transcriptOffset, err error) {
	s = transcriptOffset{Since: conv.Started, Conversation: conv.ID}
	if since != "" {
		if s, err = parseOffset(since); err != nil || s.Since.IsZero() {
			return transcriptOffset{}, transcript.InvalidOffset(since)
		}
	}
	if !sessions.ValidConversation(s.Conversation) {
		return transcriptOffset{}, fmt.Errorf("%q is no id of a conversation", s.Conversation)
	}
	if s.Files == nil {
		s.Files = map[string]int64{}
	}
	return s, nil
}

func parseOffset(o sessions.Offset) (s transcriptOffset, err error) {
	if id, at, ok := strings.Cut(string(o), "@"); ok && sessions.ValidConversation(id) { // as the version before wrote where evidence begins
		s.StartID = id
		s.Logged, err = strconv.Atoi(at)
	} else {
		err = transcript.Decode(o, &s)
	}
	if err != nil || s.Logged < 0 {
		return transcriptOffset{}, transcript.InvalidOffset(o)
	}
	return s, nil
}

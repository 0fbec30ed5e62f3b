package smallagent

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// transcriptOffset is a position in the transcript of a conversation.
type transcriptOffset struct {
	transcript.Cursor
	Queued int `json:"queued,omitzero"` // texts that are still to be answered
}

// startOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOffset(c sessions.Conversation, since sessions.Offset) (transcriptOffset, error) {
	if since != "" {
		return parseOffset(since)
	}
	cursor, err := transcript.Start(c)
	return transcriptOffset{Cursor: cursor}, err
}

func parseOffset(o sessions.Offset) (p transcriptOffset, err error) {
	if id, at, ok := strings.Cut(string(o), "@"); ok && sessions.ValidConversation(id) { // as the version before wrote where evidence begins
		p.Recorded, p.Conversation = id, id
		p.Offset, err = strconv.ParseInt(at, 10, 64)
	} else {
		err = transcript.Decode(o, &p)
	}
	if err != nil || !p.IsValid() {
		return transcriptOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

package harness

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// smallAgentOffset is a position in the transcript of a conversation.
type smallAgentOffset struct {
	transcript.Cursor
	Queued int `json:"queued,omitzero"` // texts that are still to be answered
}

// startSmallAgentOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startSmallAgentOffset(c sessions.Conversation, since sessions.Offset) (smallAgentOffset, error) {
	if since != "" {
		return parseSmallAgentOffset(since)
	}
	cursor, err := transcript.Start(c)
	return smallAgentOffset{Cursor: cursor}, err
}

func parseSmallAgentOffset(o sessions.Offset) (p smallAgentOffset, err error) {
	if id, at, ok := strings.Cut(string(o), "@"); ok && sessions.ValidConversation(id) { // as the version before wrote where evidence begins
		p.Recorded, p.Conversation = id, id
		p.Offset, err = strconv.ParseInt(at, 10, 64)
	} else {
		err = transcript.Decode(o, &p)
	}
	if err != nil || !p.IsValid() {
		return smallAgentOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

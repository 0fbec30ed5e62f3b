package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"the-loop/sessions"
)

// EventAgentMessage is the report of a text that a program of the operator's said, with "the-loop report say".
const EventAgentMessage = "the-loop:said"

// AgentMessagePayload is its payload.
type AgentMessagePayload struct {
	Text  string `json:"text"`
	Final bool   `json:"final"` // it ends a turn
}

// ReportingTemplate is a [Template] whose program itself reports what its agent says.
type ReportingTemplate struct {
	Template
	ReportDir string // absolute; the folder of the report files
}

var _ sessions.TranscriptReader = ReportingTemplate{}

// ReadTranscript reads the reports of the session from a place on, an offset in their file.
func (t ReportingTemplate) ReadTranscript(_ context.Context, c sessions.Conversation, place string) (sessions.TranscriptBatch, error) {
	path, err := ReportPath(t.ReportDir, c.Session)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	from, since := int64(0), c.Started
	if place != "" {
		since = time.Time{}
		if from, err = strconv.ParseInt(place, 10, 64); err != nil || from < 0 {
			return sessions.TranscriptBatch{}, fmt.Errorf("%q is no place in a session's reports", place)
		}
	}
	reports, next, err := ReadReports(path, from)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	told := sessions.TranscriptBatch{Next: strconv.FormatInt(next, 10), WatchFiles: []string{path}}
	for _, r := range reports {
		if said, ok := parseAgentMessage(r); ok && !r.At.Before(since) {
			told.Messages = append(told.Messages, said)
		}
	}
	return told, nil
}

func parseAgentMessage(r Report) (sessions.AgentMessage, bool) {
	var note AgentMessagePayload
	if r.Event != EventAgentMessage || json.Unmarshal(r.Payload, &note) != nil || note.Text == "" {
		return sessions.AgentMessage{}, false
	}
	sum := sha256.Sum256([]byte(note.Text))
	return sessions.AgentMessage{Text: note.Text, Final: note.Final, At: r.At, Key: strconv.FormatInt(r.At.UnixNano(), 36) + "." + hex.EncodeToString(sum[:6])}, true
}

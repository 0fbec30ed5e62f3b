package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Capabilities are those of the [Template], and that its transcript is read.
func (t ReportingTemplate) Capabilities() sessions.Capabilities {
	c := t.Template.Capabilities()
	c.ReadTranscript = t.ReadTranscript
	return c
}

// ReadTranscript reads the reports of the session from a place on, an offset in their file.
func (t ReportingTemplate) ReadTranscript(_ context.Context, c sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	path, err := ReportPath(t.ReportDir, c.Session)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	started := c.Started
	if since != "" {
		started = time.Time{}
	}
	from, err := parseReportOffset(since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	reports, next, err := ReadReports(path, from)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	told := sessions.TranscriptBatch{Next: reportOffset(next), WatchFiles: []string{path}}
	for _, r := range reports {
		if said, ok := parseAgentMessage(r); ok && !r.At.Before(started) {
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

package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// ReportingTemplate is a [Template] whose program itself reports what its agent says.
type ReportingTemplate struct {
	Template
	ReportDir string // absolute; the folder of the report files
}

// Capabilities are those of the [Template], and a transcript.
func (t ReportingTemplate) Capabilities() sessions.Capabilities {
	c := t.Template.Capabilities()
	c.ReadTranscript = t.ReadTranscript
	return c
}

// ReadTranscript reads the messages in the session's reports.
func (t ReportingTemplate) ReadTranscript(_ context.Context, c sessions.Conversation, since sessions.Offset) (sessions.TranscriptBatch, error) {
	path, err := report.Path(t.ReportDir, c.Session)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	started := c.Started
	if since != "" {
		started = time.Time{}
	}
	from, err := report.ParseOffset(since)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	reports, next, err := report.Read(path, from)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	batch := sessions.TranscriptBatch{Next: report.EncodeOffset(next), WatchFiles: []string{path}}
	for _, r := range reports {
		if m, ok := parseAgentMessage(r); ok && !r.At.Before(started) {
			batch.Messages = append(batch.Messages, m)
		}
	}
	return batch, nil
}

func parseAgentMessage(r report.Report) (sessions.AgentMessage, bool) {
	var note report.AgentMessagePayload
	if r.Event != report.EventAgentMessage || json.Unmarshal(r.Payload, &note) != nil || note.Text == "" {
		return sessions.AgentMessage{}, false
	}
	sum := sha256.Sum256([]byte(note.Text))
	return sessions.AgentMessage{Text: note.Text, Final: note.Final, At: r.At, Key: strconv.FormatInt(r.At.UnixNano(), 36) + "." + hex.EncodeToString(sum[:6])}, true
}

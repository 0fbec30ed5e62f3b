package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/permission"
)

// Report is one thing that an agent reported, a line of its session's report file.
type Report struct {
	At           time.Time       `json:"at"`
	Event        string          `json:"event"`                  // in the agent's own word, e.g. UserPromptSubmit
	Conversation string          `json:"conversation,omitempty"` // the id at that moment
	Payload      json.RawMessage `json:"payload,omitempty"`      // all that the agent reported
	Token        string          `json:"token,omitempty"`        // of a permission request whose hook waits for the decision
}

// Events that the agents' hooks report.
const (
	EventPermissionRequest = permission.Event
	EventSessionStart      = "SessionStart"
	EventPromptSubmit      = "UserPromptSubmit"
	EventStop              = "Stop"         // a turn has ended; not after Escape
	EventStopFailure       = "StopFailure"  // a turn has ended with an error, which the transcript has too
	EventNotification      = "Notification" // it waits for its operator, since some seconds
	EventSessionEnd        = "SessionEnd"
)

// Events that we report ourselves.
const (
	EventLaunch             = "Launch"        // an agent is about to start; see [LaunchPayload]
	EventPermissionAnswered = "Answered"      // a hook gave the agent a decision
	EventFile               = "the-loop:file" // the agent would have a file posted in its thread; see [FilePayload]
	EventAgentMessage       = "the-loop:said" // a program said something, with "the-loop report say"; see [AgentMessagePayload]
)

// LaunchPayload is the payload of [EventLaunch].
type LaunchPayload struct {
	Prompt    bool `json:"prompt"`  // the agent is given a first message
	SubmitKey bool `json:"chatKey"` // the agent's submit key is the one that was added for the-loop
}

// FilePayload is the payload of [EventFile].
type FilePayload struct {
	Path    string `json:"path"` // below the session's folder
	Comment string `json:"comment,omitempty"`
}

// AgentMessagePayload is the payload of [EventAgentMessage].
type AgentMessagePayload struct {
	Text  string `json:"text"`
	Final bool   `json:"final"` // it ends a turn
}

// answeredPayload is the payload of [EventPermissionAnswered].
type answeredPayload struct {
	Allow bool `json:"allow"`
}

// Path returns the report file of a session below the folder of reports. It fails for what cannot be an id.
func Path(dir, session string) (string, error) {
	if !sessions.ValidConversation(session) {
		return "", fmt.Errorf("%q is no id of a session", session)
	}
	return filepath.Join(dir, session+".jsonl"), nil
}

// Append adds one line with one write, so that several processes may do it at once. A line that an earlier write
// left torn (a full disk) is ended first, and readers skip it. A full file is rotated.
func Append(path string, r Report) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report %s: %w", r.Event, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("report %s: %w", r.Event, err)
	}
	if err := appendLine(path, append(line, '\n')); err != nil {
		return fmt.Errorf("report %s: %w", r.Event, err)
	}
	return nil
}

// hasTornEnd reports whether the last line of the file has no end.
func hasTornEnd(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Read reads the whole lines from an offset on and returns where the next one will begin. A file that is not there
// yet has none. Lines that are no reports are skipped. Offsets count all that was ever reported: reading goes on with the oldest
// report that is still kept.
func Read(path string, from int64) ([]Report, int64, error) {
	var reports []Report
	next, err := readLog(path, from, func(line []byte) {
		var r Report
		if json.Unmarshal(line, &r) == nil {
			reports = append(reports, r)
		}
	})
	if err != nil {
		return nil, from, fmt.Errorf("read the agent's reports: %w", err)
	}
	return reports, next, nil
}

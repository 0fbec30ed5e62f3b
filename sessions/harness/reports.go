package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"the-loop/sessions"
)

// ReportFile is one thing that an agent told about itself, a line of its session's report file.
type Report struct {
	At           time.Time       `json:"at"`
	Event        string          `json:"event"`                  // in the agent's own words, e.g. UserPromptSubmit
	Conversation string          `json:"conversation,omitempty"` // the id at that moment
	Payload      json.RawMessage `json:"payload,omitempty"`      // all that the agent said
	Token        string          `json:"token,omitempty"`        // of a question that a hook waits for an answer to
}

// Events of Claude Code that are asked for; see [Claude].
const (
	EventSessionStart = "SessionStart"
	EventPromptSubmit = "UserPromptSubmit"
	EventStop         = "Stop"         // a turn has ended; not after Escape
	EventStopFailure  = "StopFailure"  // with an error, which the transcript has too
	EventNotification = "Notification" // it waits for its operator, since some seconds
	EventSessionEnd   = "SessionEnd"
)

// ReportPath is the report file of a session below the folder of reports. The id must have the shape of one.
func ReportPath(dir, session string) (string, error) {
	if !sessions.ValidConversation(session) {
		return "", fmt.Errorf("%q is no id of a session", session)
	}
	return filepath.Join(dir, session+".jsonl"), nil
}

// maxHookInput bounds what is read from an agent: a prompt is at most some 100 kB, a tool's input may be more.
const maxHookInput = 16 << 20

// Hook is what an agent's hook runs: it reports what the agent says. It needs no running bot.
type Hook struct {
	ReportFile    string     // the report file of the session
	PermissionDir string     // the folder of the sockets of hooks that wait; empty: none waits
	Out           *os.File   // where the agent reads the answer to a question
	ParentPID     func() int // the process that started the hook; another one means that the first has ended
}

// Run reads what the agent says from in and appends it to the report file, which takes milliseconds. For a question it then
// waits until that is answered, or nobody waits for an answer any more, or ctx ends. Whoever calls it exits with 0 and
// prints nothing whatever it returns: a hook must not get in the agent's way.
func (h Hook) Run(ctx context.Context, in io.Reader, now time.Time) error {
	data, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	switch {
	case err != nil:
		return fmt.Errorf("read what the agent reports: %w", err)
	case len(data) > maxHookInput:
		return fmt.Errorf("the agent's report is longer than %d bytes", maxHookInput)
	}
	var said struct {
		Event        string `json:"hook_event_name"`
		Conversation string `json:"session_id"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return fmt.Errorf("read what the agent reports: %w", err)
	}
	r := Report{At: now, Event: said.Event, Conversation: said.Conversation, Payload: data}
	if said.Event == EventPermissionRequest && h.PermissionDir != "" {
		return h.requestPermission(ctx, r)
	}
	return AppendReport(h.ReportFile, r)
}

// AppendReport adds one line with one write, so that several processes may do it at once. A line that an earlier write
// left torn (a full disk) is ended first, and readers pass over it. A file that is full is followed by another one.
func AppendReport(path string, r Report) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report %s: %w", r.Event, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("report %s: %w", r.Event, err)
	}
	if err := appendReportLine(path, append(line, '\n')); err != nil {
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

// ReadReports reads the whole lines from an offset on and returns where the next one will begin. A file that is not there
// yet holds none. Lines that are no reports are passed over. Offsets count all that was ever reported, also what is kept no
// more: reading goes on with the oldest report that is.
func ReadReports(path string, from int64) ([]Report, int64, error) {
	var reports []Report
	next, err := readReportLog(path, from, func(line []byte) {
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

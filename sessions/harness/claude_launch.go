package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
)

// EventLaunch is our own report: an agent is about to start.
const EventLaunch = "Launch"

const (
	// firstPromptTimeout is how long the first prompt is waited for after the agent said that it started. Some are never
	// reported: one that begins with "/".
	firstPromptTimeout = 5 * time.Second
	// firstReportTimeout is how long the agent's first report is waited for: a policy may forbid hooks.
	firstReportTimeout = 20 * time.Second
)

// reportLaunch appends that report.
func (c Claude) reportLaunch(l sessions.Launch) error {
	if len(c.Hook) == 0 {
		return nil
	}
	path, err := ReportPath(c.ReportDir, l.Session)
	if err != nil {
		return err
	}
	chatKey, err := c.hasChatKey(l.Env)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(launchPayload{Prompt: l.Prompt != "", ChatKey: chatKey})
	if err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	return AppendReport(path, Report{At: time.Now(), Event: EventLaunch, Conversation: l.Conversation, Payload: payload})
}

type launchPayload struct {
	Prompt  bool `json:"prompt"`
	ChatKey bool `json:"chatKey"`
}

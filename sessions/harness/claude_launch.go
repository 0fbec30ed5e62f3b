package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// reportLaunch reports that an agent is about to start.
func (c Claude) reportLaunch(l sessions.Launch) error {
	if len(c.Hook) == 0 {
		return nil
	}
	path, err := report.Path(c.ReportDir, l.Session)
	if err != nil {
		return err
	}
	chatKey, err := c.hasChatKey(l.Env)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(report.LaunchPayload{Prompt: l.Prompt != "", SubmitKey: chatKey})
	if err != nil {
		return fmt.Errorf("report the start: %w", err)
	}
	return report.Append(path, report.Report{At: time.Now(), Event: report.EventLaunch, Conversation: l.Conversation, Payload: payload})
}

const (
	// firstPromptTimeout is how long the first prompt is waited for after the agent said that it started. Some are never
	// reported: one that begins with "/".
	firstPromptTimeout = 5 * time.Second
	// firstReportTimeout is how long the agent's first report is waited for: a policy may forbid hooks.
	firstReportTimeout = 20 * time.Second
)

// isStarting reports whether the agent that was launched last may still lose what is typed. Its box is on the screen for some
// 300 ms before it takes the prompt that it was started with, and what is pasted until then goes away with that (2.1.197);
// nothing on the screen tells.
func isStarting(l *report.LaunchFact, now time.Time) bool {
	switch {
	case l == nil, l.Prompted:
		return false
	case l.StartedAt.IsZero():
		return now.Sub(l.At) < firstReportTimeout
	default:
		return l.Payload.Prompt && now.Sub(l.StartedAt) < firstPromptTimeout
	}
}

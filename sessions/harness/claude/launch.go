package claude

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// reportLaunch reports that an agent is about to start.
func (c Harness) reportLaunch(l sessions.Launch) error {
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
	// firstPromptTimeout is how long to wait for the report of the first prompt after that of the start. A prompt that begins
	// with "/" is never reported.
	firstPromptTimeout = 5 * time.Second
	// firstReportTimeout is how long to wait for the agent's first report: a policy may forbid hooks.
	firstReportTimeout = 20 * time.Second
)

// isStarting reports whether the agent that was launched last may still lose what is typed. Its box is on the screen for some
// 300 ms before it accepts the prompt that it was started with, and what is pasted until then is lost (2.1.197). The screen does
// not show that.
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

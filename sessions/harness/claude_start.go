package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"the-loop/sessions"
)

// EventLaunch is our own report: an agent is about to start.
const EventLaunch = "Launch"

const (
	// bootPatience is how long the first prompt is waited for after the agent said that it started. Some are never
	// reported: one that begins with "/".
	bootPatience = 5 * time.Second
	// startPatience is how long the agent's first report is waited for: a policy may forbid hooks.
	startPatience = 20 * time.Second
)

// noteLaunch appends that report.
func (c Claude) noteLaunch(l sessions.Launch) error {
	if len(c.Hook) == 0 {
		return nil
	}
	path, err := ReportPath(c.Reports, l.Session)
	if err != nil {
		return err
	}
	chatKey, err := c.hasChatKey(l.Env)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(launchNote{Prompt: l.Prompt != "", ChatKey: chatKey})
	if err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	return AppendReport(path, Report{At: time.Now(), Event: EventLaunch, Conversation: l.Conversation, Payload: payload})
}

type launchNote struct {
	Prompt  bool `json:"prompt"`
	ChatKey bool `json:"chatKey"`
}

// lastLaunch finds that report; -1: there is none.
func lastLaunch(reports []Report) (launchNote, int) {
	for i, r := range slices.Backward(reports) {
		var note launchNote
		if r.Event == EventLaunch && json.Unmarshal(r.Payload, &note) == nil {
			return note, i
		}
	}
	return launchNote{}, -1
}

// claudeStarts reports whether the agent that was launched last may still lose what is typed. Its box is on the screen for
// some 300 ms before it takes the prompt that it was started with, and what was pasted until then goes away with that
// (2.1.197); nothing on the screen tells.
func claudeStarts(reports []Report, now time.Time) bool {
	note, last := lastLaunch(reports)
	if last < 0 {
		return false
	}
	var began time.Time
	for _, r := range reports[last+1:] {
		switch {
		case r.Event == EventSessionStart && began.IsZero():
			began = r.At
		case r.Event == EventPromptSubmit:
			return false
		}
	}
	switch {
	case began.IsZero():
		return now.Sub(reports[last].At) < startPatience
	case note.Prompt:
		return now.Sub(began) < bootPatience
	}
	return false
}

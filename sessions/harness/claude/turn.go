package claude

import (
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// isIdle reports that the program has just begun, or has ended: no turn of before runs any more. It also says that it
// began when it has compacted a conversation, in the middle of a turn.
func isIdle(r report.Report) bool {
	switch r.Event {
	case report.EventLaunch, report.EventSessionEnd:
		return true
	case report.EventSessionStart:
		source := startSource(r)
		return source == "startup" || source == "resume"
	}
	return false
}

// nextTurn is the turn after a line of the transcript.
func (a transcriptEntry) nextTurn(t sessions.Turn) sessions.Turn {
	switch {
	case a.Type == "system" && a.Subtype == "turn_duration":
		return t.End(a.Timestamp)
	case a.Type == "assistant" && a.continuesTurn():
		return t.Continue(a.Timestamp)
	case a.Type == "assistant":
		return t.End(a.Timestamp)
	case a.Type != "user" || a.Meta || a.Compact || a.isToolResult():
		return t
	}
	switch text := textOf(a.Message.Content); {
	case strings.HasPrefix(text, interruptedText):
		return t.End(a.Timestamp)
	case text == "", strings.HasPrefix(text, "<command-"), strings.HasPrefix(text, "<local-command-"), strings.HasPrefix(text, "<bash-"):
		return t // a command of its own, or what came of one
	}
	return t.Begin(a.Timestamp)
}

// interruptedText begins what is written when Escape has ended a turn; no hook tells of it.
const interruptedText = "[Request interrupted by user"

// continuesTurn reports whether the turn goes on after this message. Older versions do not say so.
func (a transcriptEntry) continuesTurn() bool {
	if a.Message.Model == syntheticModel {
		return false
	}
	return a.Message.Stop == nil || *a.Message.Stop == "tool_use" || *a.Message.Stop == "pause_turn"
}

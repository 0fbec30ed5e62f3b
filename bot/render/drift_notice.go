package render

import (
	"fmt"
	"strings"

	"the-loop/sessions"
)

// ActionRestartAll restarts the sessions that run on a stale environment.
const ActionRestartAll = "sessions_roll"

// DriftNotice is what there is to say in a channel of sessions that run on a stale environment.
type DriftNotice struct {
	Drift       sessions.Drift
	Rows        []sessions.RestartRow // of the restart that runs, or of the last one
	RequestedBy string                // member id of who asked for the restart that runs; empty: none runs
	Total       int                   // sessions that it is to restart
	Superseded  bool                  // the env file has changed once more, and another message tells of that
	Token       string                // value of the button
}

// What a message about a rotation holds at most of each kind.
const (
	maxDriftRows  = 40
	maxDriftNames = 12
)

// Text is the message.
func (r DriftNotice) Text() string {
	var lines []string
	switch line := r.Drift.StatusLine(); {
	case r.Superseded:
		return "The env file has changed again since this was said. A newer message tells how the sessions are."
	case line != "":
		lines = append(lines, line)
	case r.Drift.Problem != "":
		lines = append(lines, ":warning: Whether the sessions run on a stale environment cannot be told: "+Escape(oneLine(r.Drift.Problem)))
	case r.RequestedBy != "": // what is found in between is no result
	case r.Drift.Configured:
		lines = append(lines, fmt.Sprintf(":white_check_mark: No session runs on a stale environment any more (%d running).", r.Drift.Running))
	default:
		lines = append(lines, ":white_circle: No env file is configured any more, so nothing is compared.")
	}
	if r.RequestedBy != "" {
		lines = append(lines, fmt.Sprintf(":hourglass_flowing_sand: <@%s> has the stale ones restarted: %d of %d done.", r.RequestedBy, len(r.Rows), max(r.Total, len(r.Rows))))
	}
	lines = append(lines, limitLines(driftLines(r.Drift))...)
	if r.Drift.Unknown > 0 && r.RequestedBy == "" {
		lines = append(lines, fmt.Sprintf("The environment of %d of them cannot be read.", r.Drift.Unknown))
	}
	if len(r.Rows) > 0 {
		lines = append(lines, "Restarted:")
		lines = append(lines, limitLines(RestartLines(r.Rows))...)
	}
	if r.Drift.Stale > 0 && r.RequestedBy == "" {
		lines = append(lines, "These are names of variables that the sessions do not hold as the env file declares them. The button restarts these sessions in their terminals; their conversations go on.")
	}
	return strings.Join(lines, "\n")
}

// Buttons are under the message while there is something to restart and nobody does.
func (r DriftNotice) Buttons() []Button {
	if r.Drift.Stale == 0 || r.RequestedBy != "" || r.Superseded {
		return nil
	}
	return []Button{{Label: "Restart all", Action: ActionRestartAll, Value: r.Token, Style: "primary"}}
}

func driftLines(d sessions.Drift) []string {
	var lines []string
	for _, row := range d.Rows {
		if row.State == sessions.DriftStale {
			lines = append(lines, fmt.Sprintf("• *%s*: %s", EscapeName(row.Ref.Name()), codeList(row.Stale)))
		}
	}
	return lines
}

// RestartLines are a line for each row of a roll.
func RestartLines(rows []sessions.RestartRow) []string {
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		line := fmt.Sprintf("%s *%s* %s", restartEmoji(r.Outcome), EscapeName(r.Ref.Name()), restartOutcomeText(r.Outcome))
		if len(r.Stale) > 0 {
			line += ": " + codeList(r.Stale)
		}
		if r.Detail != "" {
			line += " · " + Escape(Truncate(oneLine(r.Detail), 300))
		}
		lines = append(lines, line)
	}
	return lines
}

func restartEmoji(o sessions.Outcome) string {
	switch o {
	case sessions.OutcomeVerified:
		return ":large_green_circle:"
	case sessions.OutcomeFailed, sessions.OutcomeStale:
		return ":red_circle:"
	case sessions.OutcomeUnverified:
		return ":large_yellow_circle:"
	}
	return ":white_circle:"
}

func restartOutcomeText(o sessions.Outcome) string {
	switch o {
	case sessions.OutcomeVerified:
		return "was restarted and holds what the env file declares"
	case sessions.OutcomeStale:
		return "was restarted and still does not hold"
	case sessions.OutcomeUnverified:
		return "was restarted; what it holds cannot be read"
	case sessions.OutcomeWouldRestart:
		return "would be restarted"
	case sessions.OutcomeFailed:
		return "could not be restarted"
	}
	return string(o)
}

// codeList are names as code, the first of them when there are many.
func codeList(names []string) string {
	var out []string
	for _, n := range names[:min(len(names), maxDriftNames)] {
		out = append(out, InlineCode(Truncate(n, 80)))
	}
	text := strings.Join(out, ", ")
	if more := len(names) - maxDriftNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func limitLines(lines []string) []string {
	if more := len(lines) - maxDriftRows; more > 0 {
		return append(lines[:maxDriftRows:maxDriftRows], fmt.Sprintf("… and %d more", more))
	}
	return lines
}

// RestartSummary answers who had sessions restarted.
func RestartSummary(r sessions.RestartResult) string {
	lines := limitLines(RestartLines(r.Rows))
	if len(lines) == 0 {
		lines = []string{"There is no session."}
	}
	for _, note := range r.Notes() {
		lines = append(lines, ":warning: "+Escape(capitalize(note))+".")
	}
	return strings.Join(lines, "\n")
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// WithDrift adds to a status the line on stale sessions, after the names that the session with that id does not hold as
// declared. An empty id is none.
func WithDrift(status string, d sessions.Drift, id string) string {
	for _, row := range d.Rows {
		if row.ID == id && id != "" && row.State == sessions.DriftStale {
			status += "\nIt does not hold as the env file declares them: " + codeList(row.Stale)
		}
	}
	if line := d.StatusLine(); line != "" {
		status += "\n" + line
	}
	return status
}

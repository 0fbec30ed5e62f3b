package render

import (
	"fmt"
	"strings"

	"the-loop/sessions"
)

// Announcement is the root of a session's thread: its name, its state, its harness, its folder, and how to attach.
func Announcement(r sessions.Row) string {
	lines := []string{fmt.Sprintf("%s *%s* is %s", stateMark(r.State), Name(r.Name), stateWords(r.State))}
	if r.Description != "" {
		lines = append(lines, Escape(oneLine(r.Description)))
	}
	lines = append(lines, fmt.Sprintf("%s in %s", Code(r.Harness), Code(r.Cwd)))
	if r.Running {
		lines = append(lines, "Reply in this thread to talk to it. On its machine: "+Code("the-loop attach "+r.Name))
	} else {
		lines = append(lines, "To start it: "+Code("the-loop standing start "+r.Name)+", or mention me here with "+Code("start"))
	}
	return strings.Join(lines, "\n")
}

// List is a line for each session.
func List(rows []sessions.Row) string {
	if len(rows) == 0 {
		return "There is no session. Declare one in the config under " + Code("standingSessions") + "."
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, Line(r))
	}
	return strings.Join(lines, "\n")
}

// Line is one session on one line.
func Line(r sessions.Row) string {
	line := fmt.Sprintf("%s *%s* %s", stateMark(r.State), Name(r.Name), stateWords(r.State))
	if r.Harness != "" {
		line += " · " + Code(r.Harness)
	}
	if r.Outcome != "" {
		line += " · " + strings.ReplaceAll(string(r.Outcome), "-", " ")
	}
	if r.Detail != "" {
		line += " · " + Escape(oneLine(r.Detail))
	}
	return line
}

func stateMark(s sessions.State) string {
	switch s {
	case sessions.StateRunning:
		return ":large_green_circle:"
	case sessions.StateEnded, sessions.StateBroken:
		return ":red_circle:"
	case sessions.StateUnknown:
		return ":large_yellow_circle:"
	}
	return ":white_circle:"
}

func stateWords(s sessions.State) string {
	switch s {
	case sessions.StateEnded:
		return "not running: its agent has ended"
	case sessions.StateNew:
		return "not started yet"
	case sessions.StateUnknown:
		return "in an unknown state: tmux does not answer"
	case sessions.StateBroken:
		return "unusable: its record cannot be read"
	}
	return string(s)
}

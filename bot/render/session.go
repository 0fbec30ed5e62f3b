package render

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"the-loop/sessions"
)

// Announcement is the root of a session's thread: its name, its state, its harness, its folder, and how to attach.
func Announcement(r sessions.Row) string {
	lines := []string{fmt.Sprintf("%s *%s* is %s", stateEmoji(r.State), EscapeName(r.Name), stateText(r.State))}
	if r.Description != "" {
		lines = append(lines, Escape(oneLine(r.Description)))
	}
	lines = append(lines, fmt.Sprintf("%s in %s", InlineCode(r.Harness), InlineCode(r.Cwd)))
	if r.Running {
		lines = append(lines, "Reply in this thread to talk to it. On its machine: "+InlineCode(r.Ref.AttachCommand()))
	} else {
		lines = append(lines, "To start it: the button, "+InlineCode(r.Ref.StartCommand())+" on its machine, or a mention of me here with "+InlineCode("start"))
	}
	if len(r.Limitations) > 0 {
		lines = append(lines, "With "+InlineCode(r.Harness)+": "+Escape(strings.Join(r.Limitations, "; ")))
	}
	return strings.Join(lines, "\n")
}

// DeletedAnnouncement is what is left of the announcement of a session that is gone.
func DeletedAnnouncement(ref sessions.Ref) string {
	return fmt.Sprintf(":white_circle: *%s* was %s", EscapeName(ref.Name()), deletedWord(ref.Kind()))
}

// deletedWord is what became of a session that is gone.
func deletedWord(kind string) string {
	if kind == sessions.KindWorkItem {
		return "closed"
	}
	return "deleted"
}

// The actions of a session's buttons. Their value is a handle, see [SessionHandle], so that they work as long as their message
// is there.
const (
	ActionPeek    = "session_peek"
	ActionRestart = "session_restart"
	ActionStop    = "session_stop"
	ActionStart   = "session_start"
	ActionDelete  = "session_delete"
	// ActionDeleteNow deletes without asking: it stands under the question.
	ActionDeleteNow = "session_delete_now"
)

// SessionHandle names a session in a button: by its id, and by its ref as long as it has none.
func SessionHandle(r sessions.Row) string {
	if r.ID == "" {
		return string(r.Ref)
	}
	return r.ID
}

// SessionButtons are what can be done to a session as it is.
func SessionButtons(r sessions.Row) []Button {
	value := SessionHandle(r)
	peek := Button{Label: "Peek", Action: ActionPeek, Value: value}
	start := Button{Label: "Start", Action: ActionStart, Value: value, Style: "primary"}
	var all []Button
	switch r.State {
	case sessions.StateRunning:
		return []Button{peek, {Label: "Restart", Action: ActionRestart, Value: value}, {Label: "Stop", Action: ActionStop, Value: value, Style: "danger"}}
	case sessions.StateEnded:
		all = []Button{start, peek}
	case sessions.StateStopped, sessions.StateNew:
		all = []Button{start}
	default:
		return nil
	}
	switch r.Source {
	case sessions.SourceRegistered:
		all = append(all, Button{Label: "Close", Action: ActionDelete, Value: value, Style: "danger"})
	case sessions.SourceCreated:
		all = append(all, Button{Label: "Delete", Action: ActionDelete, Value: value, Style: "danger"})
	}
	return all
}

// endedScreenLines is how many lines of a screen a thread is shown of an agent that ended.
const endedScreenLines = 15

// EndedText tells a thread that its agent ended on its own. screen is the last that it showed; it may be empty.
func EndedText(r sessions.Row, screen string) string {
	text := fmt.Sprintf(":red_circle: *%s* is down: %s.", EscapeName(r.Name), Escape(oneLine(orElse(r.Detail, "the agent ended, and nobody knows how"))))
	if tail := lastScreenLines(screen); tail != "" {
		text += " The last lines of its screen:\n" + Preformatted(tail)
	}
	return text + "\nStart it again with the button above, or mention me with " + InlineCode("start") + ". Its conversation goes on."
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// lastScreenLines is the end of a screen, without empty lines and without what tmux writes below a program that ended.
func lastScreenLines(screen string) string {
	var lines []string
	for line := range strings.SplitSeq(screen, "\n") {
		if line = strings.TrimRight(line, " "); line != "" && !strings.HasPrefix(line, "Pane is dead") {
			lines = append(lines, line)
		}
	}
	tail, _ := fitScreenEnd(strings.Join(lines[max(0, len(lines)-endedScreenLines):], "\n"), maxScreen)
	return tail
}

// maxScreen is how much of a screen a message shows, in characters. The rest of MaxMessage is for what is said around it.
const maxScreen = MaxMessage - 2000

// fitScreenEnd is the end of a screen, where the prompt and the dialog are: as many whole lines as fit into a message, and of a last
// one that does not, its end. cut is how many lines above are not there.
func fitScreenEnd(screen string, limit int) (tail string, cut int) {
	lines := strings.Split(sessions.Clean(screen), "\n")
	room, from := limit, len(lines)
	for from > 0 && utf16Len(Escape(lines[from-1]))+1 <= room {
		from--
		room -= utf16Len(Escape(lines[from])) + 1
	}
	if from == len(lines) {
		from--
		lines[from] = "…" + fitLineEnd(lines[from], limit-1)
	}
	return strings.Join(lines[from:], "\n"), from
}

// fitLineEnd is the end of a line that has at most so many characters when it is escaped.
func fitLineEnd(line string, limit int) string {
	at := len(line)
	for at > 0 {
		_, n := utf8.DecodeLastRuneInString(line[:at])
		if limit -= utf16Len(Escape(line[at-n : at])); limit < 0 {
			break
		}
		at -= n
	}
	return line[at:]
}

// cutLinesText says how many lines of a screen are cut off at its top.
func cutLinesText(n int) string {
	if n == 1 {
		return "1 line above is cut"
	}
	return strconv.Itoa(n) + " lines above are cut"
}

// PeekText is what a session's terminal shows.
func PeekText(r sessions.Row, screen string) string {
	if strings.TrimSpace(screen) == "" {
		return SessionLine(r) + "\nIts screen is empty."
	}
	tail, cut := fitScreenEnd(screen, maxScreen)
	if cut == 0 {
		return SessionLine(r) + "\n" + Preformatted(tail)
	}
	return SessionLine(r) + "\n_This is the end of its screen: " + cutLinesText(cut) + "._\n" + Preformatted(tail)
}

// SessionList is a line for each session.
func SessionList(rows []sessions.Row) string {
	if len(rows) == 0 {
		return "There is no session. Create one, or declare it in the config under " + InlineCode("standingSessions") + "."
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, SessionLine(r))
	}
	return strings.Join(lines, "\n")
}

// SessionLine is one session on one line.
func SessionLine(r sessions.Row) string {
	line := fmt.Sprintf("%s *%s* %s", stateEmoji(r.State), EscapeName(r.Name), stateText(r.State))
	if r.Harness != "" {
		line += " · " + InlineCode(r.Harness)
	}
	if r.Outcome != "" {
		line += " · " + strings.ReplaceAll(string(r.Outcome), "-", " ")
	}
	if r.Detail != "" {
		line += " · " + Escape(oneLine(r.Detail))
	}
	return line
}

func stateEmoji(s sessions.State) string {
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

func stateText(s sessions.State) string {
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

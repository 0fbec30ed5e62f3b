package smallagent

import (
	"strings"

	"github.com/rivo/uniseg"
)

// printable makes a line safe to draw: what a terminal would obey is shown as a picture of itself.
func printable(line string) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20:
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case r > 0x7f && r < 0xa0, r == '\u2028', r == '\u2029':
			return '\ufffd'
		}
		return r
	}, line)
}

// wrap cuts a line into rows of at most width columns, between words where it can. There is always one row.
func wrap(line string, width int) []string {
	var rows []string
	for {
		n := rowEnd(line, width)
		rows = append(rows, line[:n])
		line = line[n:]
		if line == "" {
			return rows
		}
	}
}

// rowEnd is how many bytes of line go into one row; at least one character does.
func rowEnd(line string, width int) int {
	used, end, lastBreak, state, rest := 0, 0, 0, -1, line
	for rest != "" {
		cluster, next, boundaries, newState := uniseg.StepString(rest, state)
		w := boundaries >> uniseg.ShiftWidth
		if used+w > width && end > 0 {
			if lastBreak > 0 {
				return lastBreak
			}
			return end
		}
		used, end, state, rest = used+w, end+len(cluster), newState, next
		if boundaries&uniseg.MaskLine != uniseg.LineDontBreak {
			lastBreak = end
		}
	}
	return end
}

// truncateToWidth cuts a line to at most width columns.
func truncateToWidth(line string, width int) string {
	used, end, state, rest := 0, 0, -1, line
	for rest != "" {
		cluster, next, w, newState := uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width {
			break
		}
		used, end, state, rest = used+w, end+len(cluster), newState, next
	}
	return line[:end]
}

// shorten is the first line of text, with an ellipsis when that is not all of it.
func shorten(text string, characters int) string {
	line, _, more := strings.Cut(text, "\n")
	if r := []rune(line[:min(len(line), 4*characters+4)]); len(r) > characters {
		line, more = string(r[:characters]), true
	}
	if more {
		line += "…"
	}
	return line
}

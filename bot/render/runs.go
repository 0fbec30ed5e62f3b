package render

import (
	"fmt"
	"image/color"
	"strings"
)

// Run is a piece of a screen's line in one style. Colours are #rrggbb; empty: the terminal's own.
type Run struct {
	Text                         string
	FG, BG                       string
	Bold, Dim, Underline, Strike bool
}

// Runs are the lines of the screen for whoever shows them as text, without the blanks at the end of lines and without
// the empty lines at the end.
func (s Screen) Runs() [][]Run {
	lines := make([][]Run, 0, len(s.rows))
	for _, row := range s.rows {
		lines = append(lines, trimBlanks(runsOf(row)))
	}
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func runsOf(row []cell) (line []Run) {
	for _, c := range row {
		r := c.run()
		if n := len(line) - 1; n >= 0 && line[n].sameStyle(r) {
			line[n].Text += r.Text
			continue
		}
		line = append(line, r)
	}
	return line
}

func (c cell) run() Run {
	r := Run{Text: c.text, FG: hex(c.style.fg), BG: hex(c.style.bg), Bold: c.style.bold, Dim: c.style.dim, Underline: c.style.underline, Strike: c.style.strike}
	if c.style.hidden {
		r.Text = strings.Repeat(" ", c.width)
	}
	if c.style.inverse {
		r.FG, r.BG = orElse(r.BG, hex(&defaultBackground)), orElse(r.FG, hex(&defaultForeground))
	}
	return r
}

func (r Run) sameStyle(o Run) bool {
	r.Text, o.Text = "", ""
	return r == o
}

func hex(c *color.RGBA) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

// trimBlanks is a line without the blanks at its end that show nothing.
func trimBlanks(line []Run) []Run {
	for len(line) > 0 {
		last := &line[len(line)-1]
		if last.BG != "" || last.Underline || last.Strike {
			return line
		}
		if last.Text = strings.TrimRight(last.Text, " "); last.Text != "" {
			return line
		}
		line = line[:len(line)-1]
	}
	return line
}

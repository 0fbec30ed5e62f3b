package render

import (
	"image/color"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"the-loop/sessions"
)

// Bounds of a screen that is parsed: what lies beyond them is left out.
const (
	maxRows = 1000
	maxCols = 400
)

// Screen is what a terminal shows, cell by cell, with its colours.
type Screen struct {
	rows [][]cell
	cut  int // lines above them that were left out
}

// cell is one character as a person sees it, one or two columns wide.
type cell struct {
	text  string
	width int
	style style
}

// style is how a cell is shown. A nil colour is the terminal's own.
type style struct {
	fg, bg                                        *color.RGBA
	bold, dim, underline, strike, inverse, hidden bool
}

// ParseScreen reads the lines of a terminal with the escape sequences of their colours, as tmux's capture-pane -e gives
// them. Sequences that are no colours are left out.
func ParseScreen(ansi string) Screen {
	p, lines := &screenParser{}, 0
	for line := range strings.SplitSeq(strings.TrimRight(ansi, "\n"), "\n") {
		if lines++; len(p.rows) == maxRows {
			p.rows = p.rows[1:] // its style goes on, and the end is what matters: the prompt and the dialog are there
		}
		p.parseLine(line)
	}
	return Screen{rows: p.rows, cut: lines - len(p.rows)}
}

// Text is the screen without colours, without the blanks at the end of lines and without the empty lines at the end.
func (s Screen) Text() string {
	lines := make([]string, 0, len(s.rows))
	for _, row := range s.rows {
		lines = append(lines, rowText(row))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func rowText(row []cell) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteString(c.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Scrubbed is the screen with its text as scrub leaves it. Lines that scrub changes lose their colours: nobody can tell
// any more which cell a colour belonged to. When lines are joined, all of them do.
func (s Screen) Scrubbed(scrub func(string) string) Screen {
	was := s.Text()
	now := scrub(was)
	if now == was {
		return s
	}
	before, after := strings.Split(was, "\n"), strings.Split(now, "\n")
	plain := ParseScreen(sessions.Clean(now))
	plain.cut += s.cut
	if len(before) != len(after) || len(plain.rows) != len(after) {
		return plain
	}
	for i := range after {
		if before[i] == after[i] {
			plain.rows[i] = s.rows[i]
		}
	}
	return plain
}

// screenParser reads line by line; the style goes on from line to line.
type screenParser struct {
	rows          [][]cell
	style         style
	isLineDrawing bool // the character set of line drawing is on
}

func (p *screenParser) parseLine(text string) {
	row, cols := []cell{}, 0
	for text != "" {
		if n := p.parseControl(text); n > 0 {
			text = text[n:]
			continue
		}
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(text, -1)
		text = rest
		if p.isLineDrawing {
			cluster = drawLines(cluster)
		}
		width = max(1, min(width, 2))
		if cols += width; cols > maxCols {
			break
		}
		row = append(row, cell{text: cluster, width: width, style: p.style})
	}
	p.applyEscapes(text)
	p.rows = append(p.rows, row)
}

// applyEscapes takes the escape sequences in what was cut off a line: the next line is in their style.
func (p *screenParser) applyEscapes(text string) {
	for text != "" {
		n := p.parseControl(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
		}
		text = text[n:]
	}
}

// The control characters that matter here.
const (
	escapeByte = 0x1b
	bell       = 0x07
	shiftOut   = 0x0e // line drawing
	shiftIn    = 0x0f
)

// parseControl takes the control character or escape sequence that text begins with and returns its length; 0: it is none.
func (p *screenParser) parseControl(text string) int {
	switch c := text[0]; {
	case c == shiftOut || c == shiftIn:
		p.isLineDrawing = c == shiftOut
		return 1
	case c == escapeByte:
		return p.parseEscape(text)
	case c < ' ' || c == 0x7f:
		return 1
	}
	return 0
}

func (p *screenParser) parseEscape(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if c := text[i]; c >= 0x40 && c <= 0x7e {
				if c == 'm' {
					p.style.apply(text[2:i])
				}
				return i + 1
			}
		}
		return len(text)
	case ']', 'P': // up to BEL or ESC \
		for i := 2; i < len(text); i++ {
			if text[i] == bell {
				return i + 1
			}
			if text[i] == escapeByte {
				return min(i+2, len(text))
			}
		}
		return len(text)
	case '(', ')':
		return min(3, len(text))
	}
	return 2
}

// apply changes the style as the parameters of an SGR sequence say.
func (s *style) apply(params string) {
	fields := strings.FieldsFunc(params+";", func(r rune) bool { return r == ';' })
	if len(fields) == 0 {
		fields = []string{"0"}
	}
	for i := 0; i < len(fields); i++ {
		sub := strings.Split(fields[i], ":")
		n, err := strconv.Atoi(sub[0])
		if err != nil {
			continue
		}
		if n == 38 || n == 48 || n == 58 {
			if len(sub) == 1 {
				used := 0
				sub, used = extendedColour(fields[i:])
				i += used
			}
			s.setColour(n, sub)
			continue
		}
		s.setAttribute(n, sub)
	}
}

// extendedColour is a colour whose parts are parameters of their own, as one parameter, and how many more those are.
func extendedColour(fields []string) (sub []string, more int) {
	n := 2
	if len(fields) > 1 && fields[1] == "5" {
		n = 3
	} else if len(fields) > 1 && fields[1] == "2" {
		n = 5
	}
	n = min(n, len(fields))
	return fields[:n], n - 1
}

// setColour sets a colour of 256, "38:5:n", or of all, "38:2:r:g:b" or "38:2::r:g:b".
func (s *style) setColour(n int, sub []string) {
	var c *color.RGBA
	switch {
	case len(sub) >= 3 && sub[1] == "5":
		c = paletteColour(parseNumber(sub[2]))
	case len(sub) >= 5 && sub[1] == "2":
		rgb := sub[len(sub)-3:]
		c = &color.RGBA{R: colourChannel(rgb[0]), G: colourChannel(rgb[1]), B: colourChannel(rgb[2]), A: 0xff}
	default:
		return
	}
	switch n {
	case 38:
		s.fg = c
	case 48:
		s.bg = c
	}
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func colourChannel(s string) uint8 { return uint8(max(0, min(parseNumber(s), 255))) }

func (s *style) setAttribute(n int, sub []string) {
	switch {
	case n == 0:
		*s = style{}
	case n == 1:
		s.bold = true
	case n == 2:
		s.dim = true
	case n == 4:
		s.underline = len(sub) < 2 || sub[1] != "0"
	case n == 7:
		s.inverse = true
	case n == 8:
		s.hidden = true
	case n == 9:
		s.strike = true
	case n >= 22 && n <= 29:
		s.resetAttribute(n)
	case n >= 30 && n <= 37:
		s.fg = paletteColour(n - 30)
	case n == 39:
		s.fg = nil
	case n >= 40 && n <= 47:
		s.bg = paletteColour(n - 40)
	case n == 49:
		s.bg = nil
	case n >= 90 && n <= 97:
		s.fg = paletteColour(n - 90 + 8)
	case n >= 100 && n <= 107:
		s.bg = paletteColour(n - 100 + 8)
	}
}

func (s *style) resetAttribute(n int) {
	switch n {
	case 22:
		s.bold, s.dim = false, false
	case 24:
		s.underline = false
	case 27:
		s.inverse = false
	case 28:
		s.hidden = false
	case 29:
		s.strike = false
	}
}

// lineDrawingChars is the character set of line drawing: what each letter from 'j' on stands for, as terminfo's acsc has it.
var lineDrawingChars = map[string]string{"j": "┘", "k": "┐", "l": "┌", "m": "└", "n": "┼", "q": "─", "t": "├", "u": "┤", "v": "┴",
	"w": "┬", "x": "│", "a": "▒", "`": "◆", "f": "°", "g": "±", "o": "¯", "s": "_", "~": "·", "0": "█"}

func drawLines(s string) string {
	if d, ok := lineDrawingChars[s]; ok {
		return d
	}
	return s
}

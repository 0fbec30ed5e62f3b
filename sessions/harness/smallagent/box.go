package smallagent

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// MaxBoxRows is how many rows of the screen the box takes at most.
const MaxBoxRows = 5

// MaxInlinePaste is how many characters a paste without a line feed may have to be shown as it is.
const MaxInlinePaste = 200

// cell is one character, or a paste that is shown, moved over and deleted as one.
type cell struct {
	text      string
	pasted    bool
	collapsed bool
}

// box is the input box: what is in it, and where the cursor stands.
type box struct {
	cells  []cell
	cursor int
	stash  []cell
}

func (b *box) empty() bool { return len(b.cells) == 0 }

// text is what a submit sends.
func (b *box) text() string {
	var s strings.Builder
	for _, c := range b.cells {
		s.WriteString(c.text)
	}
	return s.String()
}

// inputMethod says HowPaste when any of the text was pasted.
func (b *box) inputMethod() string {
	if slices.ContainsFunc(b.cells, func(c cell) bool { return c.pasted }) {
		return HowPaste
	}
	return HowTyped
}

func (b *box) insert(cells ...cell) {
	b.cells = slices.Insert(b.cells, b.cursor, cells...)
	b.cursor += len(cells)
}

func (b *box) paste(text string) {
	b.insert(pasteCells(text)...)
}

func pasteCells(text string) []cell {
	if text == "" {
		return nil
	}
	if strings.Contains(text, "\n") || utf8.RuneCountInString(text) > MaxInlinePaste {
		return []cell{{text, true, true}}
	}
	var cells []cell
	for _, r := range text {
		cells = append(cells, cell{string(r), true, false})
	}
	return cells
}

// clear empties the box; a draft that was put aside comes back.
func (b *box) clear() {
	b.cells, b.stash = b.stash, nil
	b.cursor = len(b.cells)
}

// edit applies an editing key; false: it is none.
func (b *box) edit(e event) bool {
	switch e.key {
	case keyText, keyNewline:
		b.insert(cell{text: typedText(e)})
	case keyPaste:
		b.paste(e.text)
	case keyBackspace:
		b.deleteFrom(b.prevBoundary())
	case keyDelete:
		at := b.cursor
		b.cursor = b.nextBoundary()
		b.deleteFrom(at)
	case keyWordBack:
		b.deleteFrom(b.wordStart())
	case keyLineBack:
		b.deleteFrom(b.lineStart())
	case keyStash:
		b.stashDraft()
	default:
		return b.move(e.key)
	}
	return true
}

func typedText(e event) string {
	if e.key == keyNewline {
		return "\n"
	}
	return e.text
}

func (b *box) move(k key) bool {
	switch k {
	case keyLeft:
		b.cursor = b.prevBoundary()
	case keyRight:
		b.cursor = b.nextBoundary()
	case keyHome:
		b.cursor = b.lineStart()
	case keyEnd:
		for b.cursor < len(b.cells) && b.cells[b.cursor].text != "\n" {
			b.cursor++
		}
	default:
		return false
	}
	return true
}

func (b *box) stashDraft() {
	b.stash = append(b.stash, b.cells...)
	b.cells, b.cursor = nil, 0
}

// deleteFrom deletes from the cell at start up to the cursor.
func (b *box) deleteFrom(start int) {
	b.cells = slices.Delete(b.cells, start, b.cursor)
	b.cursor = start
}

// clusterWindow is how many code points are looked at to find where a character begins; emoji families have 7 to 11.
const clusterWindow = 32

// prevBoundary is where the character in front of the cursor begins: one to the eye may be several code points.
func (b *box) prevBoundary() int {
	start := max(0, b.cursor-clusterWindow)
	for at := start; at < b.cursor; {
		next := b.clusterEnd(at, b.cursor)
		if next >= b.cursor {
			return at
		}
		at = next
	}
	return b.cursor
}

func (b *box) nextBoundary() int {
	if b.cursor == len(b.cells) {
		return b.cursor
	}
	return b.clusterEnd(b.cursor, len(b.cells))
}

func (b *box) clusterEnd(at, limit int) int {
	if b.cells[at].collapsed {
		return at + 1
	}
	var s strings.Builder
	for i := at; i < min(limit, at+clusterWindow) && !b.cells[i].collapsed; i++ {
		s.WriteString(b.cells[i].text)
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(s.String(), -1)
	return at + utf8.RuneCountInString(cluster)
}

func (b *box) wordStart() int {
	i := b.cursor
	for i > 0 && isBlank(b.cells[i-1]) {
		i--
	}
	if i > 0 && b.cells[i-1].collapsed {
		return i - 1
	}
	for i > 0 && !isBlank(b.cells[i-1]) && !b.cells[i-1].collapsed {
		i--
	}
	return i
}

func isBlank(c cell) bool { return c.text == " " || c.text == "\t" || c.text == "\n" }

func (b *box) lineStart() int {
	i := b.cursor
	for i > 0 && b.cells[i-1].text != "\n" {
		i--
	}
	return i
}

// render returns the rows of the box at a width, and the row and column of the cursor.
func (b *box) render(width int) (rows []string, y, x int) {
	rows = b.rows(len(b.cells), width)
	before := b.rows(b.cursor, width)
	if len(rows) > MaxBoxRows {
		rows = rows[:MaxBoxRows]
		rows[MaxBoxRows-1] = truncateToWidth(rows[MaxBoxRows-1], width-1) + "…"
	}
	y = min(len(before), len(rows)) - 1
	return rows, y, min(uniseg.StringWidth(before[y]), width)
}

// rows wraps the first n cells; of a long text only as much as can matter.
func (b *box) rows(n, width int) []string {
	var s strings.Builder
	pastes := 0
	for i, c := range b.cells[:n] {
		if c.collapsed {
			pastes++
			s.WriteString(placeholder(pastes, c.text))
		} else {
			s.WriteString(c.text)
		}
		if i > 4*MaxBoxRows*width {
			break
		}
	}
	var rows []string
	for _, line := range strings.Split(s.String(), "\n") {
		rows = append(rows, wrap(printable(line), width)...)
		if len(rows) > MaxBoxRows {
			break
		}
	}
	return rows
}

func placeholder(n int, text string) string {
	if lines := strings.Count(text, "\n"); lines > 0 {
		return fmt.Sprintf("[Pasted text #%d +%d lines]", n, lines)
	}
	return fmt.Sprintf("[Pasted text #%d +%d characters]", n, utf8.RuneCountInString(text))
}

// RenderPaste is Screen.Box after text was pasted into an empty box on a screen of so many columns.
func RenderPaste(text string, columns int) string {
	var b box
	b.paste(normalizePaste([]byte(text)))
	rows, _, _ := b.render(boxWidth(columns))
	return joinRows(rows)
}

func joinRows(rows []string) string {
	trimmed := make([]string, len(rows))
	for i, r := range rows {
		trimmed[i] = strings.TrimRight(r, " ")
	}
	return strings.TrimRight(strings.Join(trimmed, "\n"), "\n")
}

package render

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// maxTableWidth is how many columns of characters a table may take. A wider one would be wrapped in a thread, and its rows
// become list items instead.
const maxTableWidth = 72

// grid is a table: its rows of cells, the header first.
type grid struct {
	rows  [][]tableCell
	align []east.Alignment
}

type tableCell struct {
	spans []span
	text  string // what it reads as
}

func (l *layout) table(n *east.Table, m *linePrefix) {
	g := grid{align: n.Alignments}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		g.rows = append(g.rows, l.row(row))
	}
	if len(g.rows) == 0 {
		return
	}
	widths, total := g.widths()
	if total > maxTableWidth {
		l.tableAsList(g, m)
		return
	}
	l.code(g.lines(widths), 2, m)
	l.prose(g.links(), m)
}

func (l *layout) row(n ast.Node) []tableCell {
	var cells []tableCell
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		var spans []span
		for i, line := range gather(l.source, c, l.limit) {
			if i > 0 {
				spans = append(spans, span{text: " "})
			}
			spans = append(spans, line...)
		}
		if c.NextSibling() == nil {
			if rest := l.extraCells(c); rest != "" {
				spans = append(spans, span{text: " | " + rest})
			}
		}
		cells = append(cells, tableCell{spans: spans, text: plainText(spans)})
	}
	return cells
}

// extraCells is what a row has after its last column. Markdown drops it.
func (l *layout) extraCells(last ast.Node) string {
	if last.Lines().Len() == 0 {
		return ""
	}
	rest := l.source[last.Lines().At(0).Stop:]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, " \t|"))
}

func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (g grid) widths() (widths []int, total int) {
	widths = make([]int, len(g.align))
	for _, row := range g.rows {
		for i, c := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(c.text))
		}
	}
	for _, w := range widths {
		total += w + len(" | ")
	}
	return widths, total - len(" | ")
}

// lines are the rows of the table, aligned, with a rule under the header.
func (g grid) lines(widths []int) []string {
	var lines []string
	for i, row := range g.rows {
		parts := make([]string, len(row))
		for j, c := range row {
			parts[j] = pad(c.text, widths[j], g.align[j])
		}
		lines = append(lines, strings.TrimRight(strings.Join(parts, " | "), " "))
		if i == 0 {
			rules := make([]string, len(widths))
			for j, w := range widths {
				rules[j] = strings.Repeat("-", w)
			}
			lines = append(lines, strings.Join(rules, "-+-"))
		}
	}
	return lines
}

func pad(text string, width int, align east.Alignment) string {
	room := max(0, width-uniseg.StringWidth(text))
	left := 0
	switch align {
	case east.AlignRight:
		left = room
	case east.AlignCenter:
		left = room / 2
	}
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", room-left)
}

// links are the links of the table, which cannot be followed within a block of code.
func (g grid) links() [][]span {
	var links []span
	for _, row := range g.rows {
		for _, c := range row {
			for _, s := range c.spans {
				if s.style = 0; s.url != "" && !slices.Contains(links, s) {
					links = append(links, s)
				}
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	line := []span{{text: "Links: "}}
	for i, s := range links {
		if i > 0 {
			line = append(line, span{text: ", "})
		}
		line = append(line, s)
	}
	return [][]span{line}
}

// tableAsList shows each row as a list item, with each column's name before what the row says in it.
func (l *layout) tableAsList(g grid, m *linePrefix) {
	names := g.rows[0]
	if len(g.rows) == 1 {
		g.rows = append(g.rows, make([]tableCell, len(names)))
	}
	for _, row := range g.rows[1:] {
		inner := linePrefix{first: m.next() + "• ", following: m.following + indent}
		var lines [][]span
		for i, c := range row {
			if line := listRow(names[i], c); len(line) > 0 {
				lines = append(lines, line)
			}
		}
		l.prose(lines, &inner)
		l.blankBefore = false
	}
}

func listRow(name, value tableCell) []span {
	var line []span
	for _, s := range name.spans {
		s.style |= bold
		line = append(line, s)
	}
	if name.text != "" {
		line = append(line, span{text: ":", style: bold}, span{text: " "})
	}
	return append(line, value.spans...)
}

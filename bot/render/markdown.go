package render

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"the-loop/sessions"
)

// PageSize is the most characters (UTF-16 units) that a page holds: one section, so that the text field of the message
// can be the whole page and nothing is split a second time.
const PageSize = MaxSection

// Page is one message's worth of rendered Markdown: Slack's mrkdwn, escaped, ready to be the text of a [Post]. It is never
// blank, and every block of code in it is closed.
type Page struct{ Text string }

// Markdown renders what an agent wrote (CommonMark with GitHub's tables, task lists, strikethrough and bare links) as
// pages. Nothing in it addresses anybody, links show where they lead, and what Slack has no marks for is shown as text;
// only the language of a block of code and the titles of links are left out. Blank text has no pages.
//
// It is mrkdwn rather than Slack's markdown block because that block is read by a parser of Slack's own, which makes
// links and mentions of what it finds; here each mark is one that was put there.
func Markdown(text string) []Page {
	return paginate(parseChunks(text, PageSize), PageSize)
}

// FirstPages is the first maxPages pages of Markdown(text), and whether there are more.
func FirstPages(text string, maxPages int) (pages []Page, cut bool) {
	pages = Markdown(text)
	if len(pages) <= max(0, maxPages) {
		return pages, false
	}
	return pages[:max(0, maxPages)], true
}

// maxPrefixWidth is the width of a prefix (quote marks and indents) that stops growing, however deep the nesting.
const maxPrefixWidth = 32

const indent = "    "

// linePrefix is what stands before the lines of a block: first before its first line, rest before the others.
type linePrefix struct{ first, following string }

func (m *linePrefix) next() string {
	prefix := m.first
	m.first = m.following
	return prefix
}

// layout collects the chunks of a document, in order.
type layout struct {
	source      []byte
	limit       int             // of a page
	usedLinks   map[string]bool // the definitions of links that some link uses
	listDepth   int             // of lists
	chunks      []chunk
	blankBefore bool   // a blank line is due
	blankText   string // and what stands in it
}

func parseChunks(text string, limit int) []chunk {
	source := []byte(sessions.Clean(text))
	root := newParser().Parse(gmtext.NewReader(source))
	l := &layout{source: source, limit: limit, usedLinks: usedDefinitions(root)}
	l.blocks(root, &linePrefix{})
	return l.chunks
}

func usedDefinitions(root ast.Node) map[string]bool {
	used := map[string]bool{}
	// The visitor returns no error, so neither does Walk.
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if n.Reference != nil {
				used[util.ToLinkReference(n.Reference.Value)] = true
			}
		case *ast.Image:
			if n.Reference != nil {
				used[util.ToLinkReference(n.Reference.Value)] = true
			}
		}
		return ast.WalkContinue, nil
	})
	return used
}

// blocks lays out the children of n with a blank line between them, except after headings.
func (l *layout) blocks(n ast.Node, m *linePrefix) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		before := len(l.chunks)
		l.block(c, m)
		if len(l.chunks) > before {
			l.blankBefore, l.blankText = c.Kind() != ast.KindHeading && !isContinued(c), strings.TrimRight(m.following, " ")
		}
	}
}

func (l *layout) block(n ast.Node, m *linePrefix) {
	switch n := n.(type) {
	case *ast.Heading:
		l.heading(n, m)
	case *ast.Paragraph, *ast.TextBlock:
		l.prose(gather(l.source, n, l.limit), m)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		l.code(l.rawLines(n), 0, m)
	case *ast.List:
		l.list(n, m)
	case *ast.Blockquote:
		l.quote(n, m)
	case *ast.ThematicBreak:
		l.prose([][]span{{{text: strings.Repeat("─", 12)}}}, m)
	case *ast.HTMLBlock:
		lines := l.rawLines(n)
		if n.HasClosure() {
			lines = append(lines, string(n.ClosureLine.Value(l.source)))
		}
		l.prose(literalLines(lines), m)
	case *ast.LinkReferenceDefinition:
		// Markdown hides definitions. "[ERROR]: failed" is one too, and is meant to be read.
		if !l.usedLinks[util.ToLinkReference(n.Label)] {
			l.prose(literalLines(l.rawLines(n)), m)
		}
	case *east.Table:
		l.table(n, m)
	default:
		l.blocks(n, m)
	}
}

// rawLines is the source of a block's lines.
func (l *layout) rawLines(n ast.Node) []string {
	segments := n.Lines()
	lines := make([]string, 0, segments.Len())
	for i := range segments.Len() {
		segment := segments.At(i)
		lines = append(lines, string(segment.Value(l.source)))
	}
	return lines
}

func literalLines(lines []string) [][]span {
	out := make([][]span, 0, len(lines))
	for _, line := range lines {
		out = append(out, []span{{text: strings.TrimRight(line, "\n")}})
	}
	return out
}

func (l *layout) add(c chunk) {
	if c.isCode || len(l.chunks) > 0 && l.chunks[len(l.chunks)-1].isCode {
		l.blankBefore = false // a block of code has space around it
	}
	c.blankBefore, c.blankText, l.blankBefore = l.blankBefore, l.blankText, false
	l.chunks = append(l.chunks, c)
}

func (l *layout) prose(lines [][]span, m *linePrefix) {
	if c := (chunk{lines: l.prefixLines(lines, m)}); len(c.lines) > 0 {
		l.add(c)
	}
}

func (l *layout) prefixLines(lines [][]span, m *linePrefix) []string {
	var out []string
	for _, line := range lines {
		for _, piece := range cutLine(line, l.limit-max(utf16Len(m.first), utf16Len(m.following))) {
			out = append(out, strings.TrimRight(m.next()+piece, " "))
		}
	}
	return out
}

func (l *layout) heading(n *ast.Heading, m *linePrefix) {
	lines := gather(l.source, n, l.limit)
	for _, line := range lines {
		for i := range line {
			line[i].style |= bold
		}
	}
	if c := (chunk{lines: l.prefixLines(lines, m), keepWithNext: true}); len(c.lines) > 0 {
		l.add(c)
	}
}

// code lays out a block of code. It has no lead: Slack would show it as a part of the code.
func (l *layout) code(lines []string, head int, m *linePrefix) {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return
	}
	l.addBareMarker(m)
	if c := codeChunk(lines, head, l.limit); len(c.lines) > 0 {
		l.add(c)
	}
}

// addBareMarker shows a list item's marker when no text of the item will stand beside it.
func (l *layout) addBareMarker(m *linePrefix) {
	if m.first != m.following {
		l.add(chunk{lines: []string{strings.TrimRight(m.next(), " ")}, keepWithNext: true})
	}
}

func (l *layout) quote(n *ast.Blockquote, m *linePrefix) {
	mark := "> "
	if m.first != "" || m.following != "" {
		mark = "&gt; " // Slack has quotes at the start of a line only, and none within another
	}
	inner := linePrefix{first: m.next() + mark, following: m.following + mark}
	if utf16Len(inner.following) > maxPrefixWidth {
		inner.following = m.following
	}
	if utf16Len(inner.first) > maxPrefixWidth {
		inner.first = inner.following
	}
	l.blocks(n, &inner)
}

func (l *layout) list(n *ast.List, m *linePrefix) {
	l.listDepth++
	defer func() { l.listDepth-- }()
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		number = max(number, l.writtenNumber(c))
		l.item(c, m, l.marker(n, c, number))
		l.blankBefore = false
		number++
	}
}

// marker is what stands before a list's item.
func (l *layout) marker(n *ast.List, item ast.Node, number int) string {
	mark := []string{"•", "◦", "▪"}[(l.listDepth-1)%3]
	if n.IsOrdered() {
		mark = fmt.Sprintf("%d.", number)
	}
	box := taskBox(item)
	switch {
	case box == nil:
		return mark + " "
	case n.IsOrdered():
		mark += " "
	default:
		mark = ""
	}
	if box.IsChecked {
		return mark + "☑ "
	}
	return mark + "☐ "
}

// writtenNumber is the number of an item as it was written. Markdown counts on from the first one whatever the others say.
func (l *layout) writtenNumber(item ast.Node) int {
	number := 0
	for at := max(0, item.Pos()); at < len(l.source) && number < 1e9 && '0' <= l.source[at] && l.source[at] <= '9'; at++ {
		number = 10*number + int(l.source[at]-'0')
	}
	return number
}

func taskBox(item ast.Node) *east.TaskCheckBox {
	if item.FirstChild() == nil {
		return nil
	}
	box, _ := item.FirstChild().FirstChild().(*east.TaskCheckBox)
	return box
}

func (l *layout) item(n ast.Node, m *linePrefix, marker string) {
	inner := linePrefix{first: m.next() + marker, following: m.following + indent}
	if utf16Len(inner.following) > maxPrefixWidth {
		inner.following = m.following
	}
	if utf16Len(inner.first) > 2*maxPrefixWidth {
		inner.first = m.following + marker
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		l.block(c, &inner)
		next := c.NextSibling()
		l.blankBefore, l.blankText = next != nil && ast.IsParagraph(next) && ast.IsParagraph(c), strings.TrimRight(m.following, " ")
	}
	l.addBareMarker(&inner)
}

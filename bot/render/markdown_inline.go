package render

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer/html"

	"the-loop/sessions"
)

type emphasis uint8

const (
	bold emphasis = 1 << iota
	strike
	italic
	code
)

// span is a piece of one line: text as it is read, not yet escaped, and a safe address when it is a link.
type span struct {
	text  string
	style emphasis
	url   string
}

// gatherer turns the inline nodes of a block into lines of spans.
type gatherer struct {
	source []byte
	limit  int
	lines  [][]span
}

// gather is the inline content of n. A line break in the source stays one: agents write lines, not columns.
func gather(source []byte, n ast.Node, limit int) [][]span {
	g := &gatherer{source: source, limit: limit, lines: make([][]span, 1)}
	g.children(n, 0)
	return g.lines
}

func (g *gatherer) add(s span) {
	last := len(g.lines) - 1
	g.lines[last] = append(g.lines[last], s)
}

func (g *gatherer) newLine() { g.lines = append(g.lines, nil) }

func (g *gatherer) children(n ast.Node, st emphasis) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		g.node(c, st)
	}
}

func (g *gatherer) node(n ast.Node, st emphasis) {
	switch n := n.(type) {
	case *ast.Text:
		g.add(span{text: textOf(n, g.source), style: st})
		if n.SoftLineBreak() || n.HardLineBreak() {
			g.newLine()
		}
	case *ast.String:
		g.add(span{text: sessions.Clean(string(n.Value)), style: st})
	case *ast.CodeSpan:
		g.code(rawOf(n, g.source), st)
	case *ast.Emphasis:
		g.children(n, st|map[bool]emphasis{true: italic, false: bold}[n.Level == 1])
	case *east.Strikethrough:
		g.children(n, st|strike)
	case *ast.Link:
		g.link(unescapeMarkdown(n.Destination), labelOf(n, g.source), st)
	case *ast.Image:
		g.link(unescapeMarkdown(n.Destination), labelOf(n, g.source), st)
	case *ast.AutoLink:
		g.autoLink(n, st)
	case *ast.RawHTML:
		g.html(n, st)
	case *east.TaskCheckBox: // it is the item's marker
	default:
		g.children(n, st)
	}
}

// code is text as inline code. Backticks, which would end it, are replaced when the line is written.
func (g *gatherer) code(text string, st emphasis) {
	if strings.TrimSpace(text) == "" {
		g.add(span{text: text, style: st})
		return
	}
	g.add(span{text: text, style: st | code})
}

func (g *gatherer) autoLink(n *ast.AutoLink, st emphasis) {
	address, label := string(n.URL(g.source)), string(n.Label(g.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
		address = "mailto:" + address
	}
	g.link(address, label, st)
}

var lineBreak = regexp.MustCompile(`(?i)^<br\s*/?>$`)

// html shows a tag as it was written. A line break is one.
func (g *gatherer) html(n *ast.RawHTML, st emphasis) {
	text := string(n.Segments.Value(g.source))
	if lineBreak.MatchString(text) {
		g.newLine()
		return
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			g.newLine()
		}
		g.add(span{text: line, style: st})
	}
}

// textOf is what a text node reads as.
func textOf(n *ast.Text, source []byte) string {
	value := n.Segment.Value(source)
	if n.IsRaw() {
		return string(value)
	}
	return unescapeMarkdown(value)
}

var htmlUnescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&")

// unescapeMarkdown undoes backslashes and named characters. What they stand for may be invisible, so it is cleaned once more.
func unescapeMarkdown(raw []byte) string {
	if !bytes.ContainsAny(raw, `\&`) {
		return string(raw)
	}
	var b bytes.Buffer
	w := bufio.NewWriterSize(&b, 64)
	html.DefaultWriter.Write(w, raw)
	_ = w.Flush() // a bytes.Buffer takes everything
	return strings.ReplaceAll(sessions.Clean(htmlUnescaper.Replace(b.String())), "\n", " ")
}

// rawOf is the text under n as it was written, on one line.
func rawOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// labelOf is the text under n, on one line and without marks: Slack shows the label of a link as it is.
func labelOf(n ast.Node, source []byte) string {
	var b strings.Builder
	writeLabel(&b, n, source)
	return strings.Join(strings.Fields(b.String()), " ")
}

func writeLabel(b *strings.Builder, n ast.Node, source []byte) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.WriteString(textOf(c, source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.CodeSpan:
			b.WriteString(rawOf(c, source))
		case *ast.RawHTML:
			b.Write(c.Segments.Value(source))
		case *ast.AutoLink:
			b.Write(c.Label(source))
		default:
			writeLabel(b, c, source)
		}
	}
}

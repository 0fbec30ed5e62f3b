package render

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The parser takes time that grows with the square of how deeply blocks are nested and of how many marks one block has:
// minutes for 400 kB made to that end. What nobody writes is kept from it.
const (
	maxBlockDepth = 40  // blocks within blocks
	maxMarks      = 400 // marks that are looked at together
)

// newParser reads CommonMark with GitHub's extensions, but for headings that are underlined: a rule under a paragraph is
// more often meant as a rule.
func newParser() parser.Parser {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(depthLimited{parser.NewListParser()}, 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(marksLimited{parser.NewATXHeadingParser()}, 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(depthLimited{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(parser.NewHTMLBlockParser(), 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	}
	inlines := append(withUnspacedEmphasis(parser.DefaultInlineParsers()),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(unspacedEmphasis{extension.NewStrikethroughParser()}, 500),
		util.Prioritized(extension.NewLinkifyParser(), 999))
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(
			util.Prioritized(rawIfDense{}, 50),
			util.Prioritized(linkDefinitions{parser.LinkReferenceParagraphTransformer}, 100),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
			util.Prioritized(paragraphSplitter{}, 300)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
}

// depthLimited opens no block that is nested too deeply: its marker is text.
type depthLimited struct{ parser.BlockParser }

func (s depthLimited) Open(parent ast.Node, reader gmtext.Reader, pc parser.Context) (ast.Node, parser.State) {
	n := 0
	for p := parent; p != nil; p = p.Parent() {
		if n++; n > maxBlockDepth {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// marksLimited opens no block whose line has too many marks.
type marksLimited struct{ parser.BlockParser }

func (s marksLimited) Open(parent ast.Node, reader gmtext.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); countMarks(line) > maxMarks {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

func countMarks(line []byte) int {
	n := 0
	for _, b := range line {
		if bytes.IndexByte([]byte("*_~[]!<`"), b) >= 0 {
			n++
		}
	}
	return n
}

// rawIfDense makes a block that is shown as it was written of a paragraph that has too many marks on one line, or that
// seems to define too many links.
type rawIfDense struct{}

func (rawIfDense) Transform(node *ast.Paragraph, reader gmtext.Reader, _ parser.Context) {
	lines := node.Lines()
	for i := range lines.Len() {
		segment := lines.At(i)
		line := segment.Value(reader.Source())
		if countMarks(line) > maxMarks || i == maxMarks && bytes.HasPrefix(line, []byte("[")) {
			raw := ast.NewHTMLBlock(ast.HTMLBlockType7)
			raw.SetLines(lines)
			node.Parent().ReplaceChild(node.Parent(), node, raw)
			return
		}
	}
}

// linkDefinitions leaves footnotes, which look like definitions of links, to be read as they are.
type linkDefinitions struct{ parser.ParagraphTransformer }

func (d linkDefinitions) Transform(node *ast.Paragraph, reader gmtext.Reader, pc parser.Context) {
	first := node.Lines().At(0)
	if !bytes.HasPrefix(bytes.TrimSpace(first.Value(reader.Source())), []byte("[^")) {
		d.ParagraphTransformer.Transform(node, reader, pc)
	}
}

// paragraphSplitter makes several blocks of a paragraph that has too many marks, which then cannot reach across them.
type paragraphSplitter struct{}

func (paragraphSplitter) Transform(node *ast.Paragraph, reader gmtext.Reader, _ parser.Context) {
	lines := node.Lines()
	start, marks := 0, 0
	for i := range lines.Len() {
		segment := lines.At(i)
		n := countMarks(segment.Value(reader.Source()))
		if marks += n; marks > maxMarks && i > start {
			node.Parent().InsertBefore(node.Parent(), node, textBlock(lines, start, i))
			start, marks = i, n
		}
	}
	if start > 0 {
		node.SetLines(textBlock(lines, start, lines.Len()).Lines())
	}
}

func textBlock(lines *gmtext.Segments, start, end int) *ast.TextBlock {
	block, some := ast.NewTextBlock(), gmtext.NewSegments()
	some.AppendAll(lines.Sliced(start, end))
	block.SetLines(some)
	return block
}

// isContinued reports a block that [paragraphSplitter] made, but for the last: what follows is the same paragraph.
func isContinued(n ast.Node) bool { return n.Kind() == ast.KindTextBlock }

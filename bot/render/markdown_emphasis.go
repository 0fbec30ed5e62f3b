package render

import (
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/text/width"
)

// unspacedEmphasis reads marks of emphasis also where no spaces stand between words: CommonMark takes a mark between punctuation
// and a letter for one that only opens or only closes, so that "**注意：**正文" would be no emphasis. Beside a letter of a
// script without case, and beside punctuation that is as wide as such a letter, the punctuation does not count.
// (CommonMark's discussion of it: commonmark/commonmark-spec#650.)
type unspacedEmphasis struct{ parser.InlineParser }

func (p unspacedEmphasis) Parse(parent ast.Node, block gmtext.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, _ := block.PeekLine()
	node := p.InlineParser.Parse(parent, block, pc)
	d, ok := node.(*parser.Delimiter)
	if !ok {
		return node
	}
	after := ' '
	if d.OriginalLength < len(line) {
		after = util.ToRune(line, d.OriginalLength)
	}
	opens, closes := isFlanking(after, before), isFlanking(before, after)
	if d.Char == '_' {
		opens, closes = opens && (!closes || util.IsPunctRune(before)), closes && (!opens || util.IsPunctRune(after))
	}
	d.CanOpen, d.CanClose = opens, closes
	return node
}

// isFlanking reports whether a mark belongs to what stands on its inner side.
func isFlanking(inner, outer rune) bool {
	return !util.IsSpaceRune(inner) && (!isNarrowPunctuation(inner) || util.IsSpaceRune(outer) || isNarrowPunctuation(outer) || isUnspacedScript(outer))
}

func isNarrowPunctuation(r rune) bool { return util.IsPunctRune(r) && !isUnspacedScript(r) }

// isUnspacedScript reports a letter of a script without case, most of which are written without spaces or join their words, and
// punctuation of such a script.
func isUnspacedScript(r rune) bool {
	if unicode.In(r, unicode.Lo, unicode.Lm) {
		return true
	}
	kind := width.LookupRune(r).Kind()
	return unicode.IsPunct(r) && (kind == width.EastAsianWide || kind == width.EastAsianFullwidth || kind == width.EastAsianHalfwidth)
}

// withUnspacedEmphasis are inline parsers with those of marks made [unspacedEmphasis].
func withUnspacedEmphasis(inlines []util.PrioritizedValue) []util.PrioritizedValue {
	for i, v := range inlines {
		if v.Value == parser.NewEmphasisParser() {
			inlines[i].Value = unspacedEmphasis{parser.NewEmphasisParser()}
		}
	}
	return inlines
}

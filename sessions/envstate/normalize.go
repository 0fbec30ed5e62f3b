package envstate

import (
	"bytes"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A text is compared in a normal form, which is the same for a value and for every way of writing it that [Scrubber]
// knows: white space, borders, quotes and backslashes are left out, and with decode, escapes are replaced by what they
// stand for, also escapes of escapes.
//
// The form is made in one pass, by a stack: each byte is put on it, and when the bytes on top are an escape, they are
// replaced. So an escape may be wrapped, or be spelled in other escapes.
type normalizer struct {
	source string
	decode bool

	form    []byte
	origins []origin // one for each byte of form

	before   slashes // what stands before the next byte
	slashEnd int     // where they end
	decoded  bool    // what is pushed comes out of an escape
}

// origin says where a byte of a normal form comes from.
type origin struct {
	start, end int32 // in the source
	before     slashes
	decoded    bool // it came out of an escape
}

// slashes are the backslashes before a byte.
type slashes struct {
	start   int32 // where they begin in the source
	count   int32
	decoded int32 // how many of them came out of escapes
}

// hasLiteral reports whether one is left of the backslashes before an escape, besides those that make it one: there may be 1, or
// 2 in a text that was escaped twice, or 4.
func (s slashes) hasLiteral() bool {
	if s.decoded > 0 && s.decoded < s.count {
		return true
	}
	return s.count&(s.count-1) != 0
}

// normalize makes the normal form of text, and says for each byte of it where it comes from.
func normalize(text string, decode bool) ([]byte, []origin) {
	n := normalizer{source: text, decode: decode, form: make([]byte, 0, len(text)), origins: make([]origin, 0, len(text))}
	for i := range len(text) {
		n.push(text[i], i, i+1)
	}
	return n.form, n.origins
}

// normalForm is the normal form alone.
func normalForm(text string, decode bool) string {
	form, _ := normalize(text, decode)
	return string(form)
}

// byteKind says what a byte is to a normal form.
type byteKind int

const (
	significant byteKind = iota
	blank                // a space or a tab
	newline              // the end of a line
	quote                // which a backslash may stand before
	ignored              // a border, a control character
)

// kindOf tells which bytes are in a normal form. The plus is a blank in URLs, and the mark of a line in a diff.
func kindOf(b byte) byteKind {
	switch b {
	case ' ', '\t':
		return blank
	case '\n', '\r':
		return newline
	case '\'', '"', '`':
		return quote
	case 0x7f, '|', '>', '+':
		return ignored
	}
	if b < ' ' {
		return ignored
	}
	return significant
}

// push takes one byte, which stands at source[start:end].
func (n *normalizer) push(b byte, start, end int) {
	if b == '\\' {
		n.pushSlash(start, end)
		return
	}
	if k := kindOf(b); k != significant {
		if n.before.count > 0 && n.endsSlashes(k, start, end) {
			n.before = slashes{}
		}
		return
	}
	n.form = append(n.form, b)
	n.origins = append(n.origins, origin{int32(start), int32(end), n.before, n.decoded})
	n.before = slashes{}
	if b >= utf8.RuneSelf {
		n.dropInvisible()
	} else if n.decode {
		n.reduce(b)
	}
}

// endsSlashes reports whether the backslashes so far are done with after a byte that is in no normal form, as they are before
// a quote or a blank. Those at the end of a line may belong to what the next one begins with.
func (n *normalizer) endsSlashes(k byteKind, start, end int) bool {
	return k == quote || k != newline && start == n.slashEnd && !isPadding(n.source[end:])
}

func (n *normalizer) pushSlash(start, end int) {
	if n.before.count == 0 {
		n.before.start = int32(start)
	}
	n.before.count++
	if n.decoded {
		n.before.decoded++
	}
	n.slashEnd = end
}

// isPadding reports whether nothing but blanks and borders stands before the end of the line.
func isPadding(rest string) bool {
	for _, r := range rest {
		switch {
		case r == '\n' || r == '\r':
			return true
		case r != ' ' && r != '|' && !isInvisible(r):
			return false
		}
	}
	return false
}

// dropInvisible takes a character off that is in no normal form, when its last byte has come.
func (n *normalizer) dropInvisible() {
	if r, size := utf8.DecodeLastRune(n.form); size > 1 && isInvisible(r) {
		first := n.origins[len(n.origins)-size]
		n.before, n.slashEnd = first.before, int(first.start)
		n.pop(size)
	}
}

// isInvisible are the characters beyond ASCII that are in no normal form: blanks, what shows as nothing, borders, and the marks
// that terminals and agents put where a line was broken.
func isInvisible(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return false
	case r >= 0x2500 && r <= 0x259f: // box drawing and block elements
		return true
	}
	switch r {
	case 'ˋ', '↩', '↪', '↵', '⏎', '⎿', '⤷', '\u034f', '\u2800':
		return true
	}
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector)
}

func (n *normalizer) pop(count int) {
	n.form, n.origins = n.form[:len(n.form)-count], n.origins[:len(n.origins)-count]
}

// reduce replaces the escape that b, which is on top, ends, if it does.
func (n *normalizer) reduce(b byte) {
	if b == ';' {
		n.reduceEntity()
		return
	}
	if !isHex(b) {
		return
	}
	switch top := len(n.form); {
	case n.isEscaped(5, 'u') && allHex(n.form[top-4:]):
		n.replaceRune(5, rune(hexNumber(n.form[top-4:])), true)
	case n.isEscaped(9, 'U') && allHex(n.form[top-8:]):
		n.replaceRune(9, rune(hexNumber(n.form[top-8:])), true)
	case n.isEscaped(3, 'x') && allHex(n.form[top-2:]):
		n.replace(3, []byte{byte(hexNumber(n.form[top-2:]))}, true)
	case top >= 3 && n.isPercent(top-3) && allHex(n.form[top-2:]):
		n.replace(3, []byte{byte(hexNumber(n.form[top-2:]))}, false)
	case top >= 3 && n.isEscaped(3, n.form[top-3]) && isOctal(n.form[top-3:]):
		f := n.form[top-3:]
		n.replace(3, []byte{(f[0]-'0')<<6 | (f[1]-'0')<<3 | (f[2] - '0')}, true)
	}
}

// isEscaped reports whether the byte that is depth deep is a b after a backslash.
func (n *normalizer) isEscaped(depth int, b byte) bool {
	i := len(n.form) - depth
	return i >= 0 && n.form[i] == b && n.origins[i].before.count > 0 && n.isOneEscape(depth, n.origins[i].before.decoded > 0)
}

// isPercent reports whether the byte at i, below two others, begins a percent escape.
func (n *normalizer) isPercent(i int) bool {
	return n.form[i] == '%' && n.origins[i+1].before.count == 0 && n.isOneEscape(2, n.origins[i].decoded)
}

// isOneEscape reports whether the count bytes on top can be of one escape, which began with a byte that came out of an escape, or
// did not. No program writes the end of an escape in escapes and its beginning without: there, the beginning is something
// else. And a backslash before one of the bytes begins an escape of its own.
func (n *normalizer) isOneEscape(count int, decoded bool) bool {
	top := n.origins[len(n.origins)-count:]
	for i, m := range top {
		if m.decoded && !decoded || m.before.count > 0 && i > 0 {
			return false
		}
	}
	return true
}

// replace puts with for the count bytes on top. A backslash before them is one of theirs, or not.
func (n *normalizer) replace(count int, with []byte, slash bool) {
	first, last := n.origins[len(n.origins)-count], n.origins[len(n.origins)-1]
	n.pop(count)
	start := first.start
	n.before, n.slashEnd = first.before, int(start)
	if slash {
		start = first.before.start
		n.before = slashes{}
		if first.before.hasLiteral() {
			n.before = slashes{start: start, count: 1, decoded: 1}
		}
	}
	n.decoded = true
	for _, b := range with {
		n.push(b, int(start), int(last.end))
	}
	n.decoded = false
}

// replaceRune is replace for a character. Two halves of one that stands in UTF-16 become that one.
func (n *normalizer) replaceRune(count int, r rune, slash bool) {
	top := len(n.form) - count
	if utf16.IsSurrogate(r) && top >= 3 {
		if whole := utf16.DecodeRune(decodeSurrogate(n.form[top-3:top]), r); whole != utf8.RuneError {
			n.replace(count+3, utf8.AppendRune(nil, whole), false)
			return
		}
	}
	n.replace(count, appendSurrogate(nil, r), slash)
}

// appendSurrogate is [utf8.AppendRune] that takes halves of characters too.
func appendSurrogate(p []byte, r rune) []byte {
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(p, r)
	}
	return append(p, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// decodeSurrogate is the half of a character that appendSurrogate wrote.
func decodeSurrogate(p []byte) rune {
	return rune(p[0]&0x0f)<<12 | rune(p[1]&0x3f)<<6 | rune(p[2]&0x3f)
}

// maxEntity is how many bytes a character reference of HTML may have between & and ;.
const maxEntity = 8

// entities are the names that escaping functions use.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "nbsp": '\u00a0'}

// reduceEntity replaces the character reference on top, which ends in a semicolon.
func (n *normalizer) reduceEntity() {
	top := len(n.form)
	from := max(0, top-maxEntity-2)
	i := bytes.LastIndexByte(n.form[from:], '&')
	if i < 0 {
		return
	}
	name := n.form[from+i+1 : top-1]
	r, known := entities[string(name)]
	if !known {
		r, known = parseNumericEntity(name)
	}
	if known && n.isOneEscape(len(name)+1, n.origins[from+i].decoded) {
		n.replace(top-from-i, utf8.AppendRune(nil, r), false)
	}
}

// parseNumericEntity reads a character reference by number: #38 or #x26.
func parseNumericEntity(name []byte) (rune, bool) {
	digits, found := bytes.CutPrefix(name, []byte("#"))
	if !found || len(digits) == 0 {
		return 0, false
	}
	if digits[0] == 'x' || digits[0] == 'X' {
		return rune(hexNumber(digits[1:])), len(digits) > 1 && allHex(digits[1:])
	}
	number := rune(0)
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		number = number*10 + rune(d-'0')
	}
	return number, true
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

func allHex(digits []byte) bool {
	for _, b := range digits {
		if !isHex(b) {
			return false
		}
	}
	return true
}

func hexNumber(digits []byte) (n uint32) {
	for _, b := range digits {
		switch {
		case b <= '9':
			n = n<<4 | uint32(b-'0')
		default:
			n = n<<4 | uint32(b|0x20-'a'+10)
		}
	}
	return n
}

// isOctal reports three octal digits of one byte.
func isOctal(digits []byte) bool {
	for _, b := range digits {
		if b < '0' || b > '7' {
			return false
		}
	}
	return digits[0] <= '3'
}

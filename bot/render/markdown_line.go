package render

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// wordBreak is a zero-width space. Slack takes a mark for one only at the border of a word; this makes one where there is
// none, as within a word or beside Chinese and Japanese.
const wordBreak = "\u200b"

// styleMarks are the styles with their marks, the outermost first.
var styleMarks = []struct {
	style emphasis
	mark  rune
}{{bold, '*'}, {strike, '~'}, {italic, '_'}}

// lineWriter writes spans with Slack's marks, each of which is closed again on the same line.
type lineWriter struct {
	b            strings.Builder
	open         []int  // of styleMarks, the innermost last
	pendingSpace string // due before whatever comes next; marks do not count beside white space
	lastRune     rune
	justClosed   bool // the last thing written was a closing mark
}

// writeLine is a line in Slack's mrkdwn.
func writeLine(line []span) string {
	w := &lineWriter{}
	for _, s := range neutralizeLine(line) {
		switch {
		case s.url != "":
			w.writeStyled(s.style, linkToken(s), '<', '>')
		case s.style&code != 0:
			w.writeStyled(s.style, "`"+Escape(s.text)+"`", '`', '`')
			w.justClosed = true
		default:
			w.text(s)
		}
	}
	w.close(0)
	return w.b.String()
}

func linkToken(s span) string {
	if s.text == s.url {
		return "<" + Escape(s.url) + ">"
	}
	return "<" + Escape(s.url) + "|" + Escape(s.text) + ">"
}

func (w *lineWriter) text(s span) {
	core := strings.TrimLeftFunc(s.text, unicode.IsSpace)
	text := strings.TrimRightFunc(core, unicode.IsSpace)
	if text == "" {
		w.close(s.style)
	}
	w.pendingSpace += s.text[:len(s.text)-len(core)]
	if text == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	if w.b.Len() == 0 && w.pendingSpace == "" && first == '>' {
		w.b.WriteString(wordBreak) // not a quote
	}
	w.writeStyled(s.style, Escape(text), first, last)
	w.pendingSpace += core[len(text):]
}

// writeStyled writes text that begins and ends with first and last, in the style.
func (w *lineWriter) writeStyled(st emphasis, text string, first, last rune) {
	w.close(st)
	opens := w.missing(st)
	if len(opens) > 0 {
		first = styleMarks[opens[0]].mark
	}
	if w.pendingSpace == "" && (w.justClosed && !isWordEnd(first) || (len(opens) > 0 || first == '`') && !w.atWordStart()) {
		w.b.WriteString(wordBreak)
	}
	w.b.WriteString(w.pendingSpace)
	for _, i := range opens {
		w.b.WriteRune(styleMarks[i].mark)
		w.open = append(w.open, i)
	}
	w.b.WriteString(text)
	w.pendingSpace, w.lastRune, w.justClosed = "", last, false
}

// close writes the closing marks of what is open and not in st.
func (w *lineWriter) close(st emphasis) {
	keep := 0
	for keep < len(w.open) && styleMarks[w.open[keep]].style&st != 0 {
		keep++
	}
	for i := len(w.open) - 1; i >= keep; i-- {
		w.b.WriteRune(styleMarks[w.open[i]].mark)
		w.justClosed = true
	}
	w.open = w.open[:keep]
}

func (w *lineWriter) missing(st emphasis) []int {
	var missing []int
	for i, m := range styleMarks {
		isOpen := false
		for _, o := range w.open {
			isOpen = isOpen || o == i
		}
		if st&m.style != 0 && !isOpen {
			missing = append(missing, i)
		}
	}
	return missing
}

func (w *lineWriter) atWordStart() bool {
	return !w.justClosed && (w.lastRune == 0 || strings.ContainsRune("([{\"'-–—:,.;/", w.lastRune))
}

func isWordEnd(next rune) bool { return strings.ContainsRune(".,;:!?)]}\"'-–—/…", next) }

var broadcastMention = regexp.MustCompile(`(?i)@(channel|here|everyone)`)

// neutralizeLine is line with nothing in its text that Slack could take for a mark or a mention. Characters are replaced by ones
// that look alike, and only where they would act.
func neutralizeLine(line []span) []span {
	line = mergeSpans(line)
	for i := range line {
		s := &line[i]
		if strings.Contains(s.text, "`") {
			s.text = strings.ReplaceAll(s.text, "`", "ˋ")
		}
		if s.style&code == 0 && strings.Contains(s.text, "@") {
			s.text = broadcastMention.ReplaceAllString(s.text, "@"+wordBreak+"$1")
		}
	}
	for _, m := range styleMarks {
		neutralizeMark(line, m.mark, m.style)
	}
	return line
}

// mergeSpans joins neighbours of the same style. It is a new slice.
func mergeSpans(line []span) []span {
	var out []span
	for i := 0; i < len(line); {
		j := i + 1
		for j < len(line) && line[i].url == "" && line[j].url == "" && line[j].style == line[i].style {
			j++
		}
		s := line[i]
		if j > i+1 {
			var b strings.Builder
			for _, part := range line[i:j] {
				b.WriteString(part.text)
			}
			s.text = b.String()
		}
		if s.text != "" {
			out = append(out, s)
		}
		i = j
	}
	return out
}

// neutralizeMark replaces mark in the text of line where one could make a pair with another: an opening one stands before a word,
// and a closing one after it. Then all of them are replaced: some of each kind would be harder to read than either.
func neutralizeMark(line []span, mark rune, st emphasis) {
	firstOpening, lastClosing, n := -1, -1, 0
	found := eachMark(line, mark, st, func(opens, closes, _ bool) bool {
		if n++; opens && firstOpening < 0 {
			firstOpening = n
		}
		if closes {
			lastClosing = n
		}
		return false
	})
	if !found || firstOpening < 0 {
		return
	}
	acts := false
	n = 0
	eachMark(line, mark, st, func(opens, closes, ours bool) bool {
		n++
		acts = acts || !ours && (opens && n < lastClosing || closes && n > firstOpening)
		return false
	})
	if acts {
		eachMark(line, mark, st, func(_, _, _ bool) bool { return true })
	}
}

// eachMark calls visit for each mark in line, also for those that the style st will put there (ours), and replaces the ones in
// text for which it says so. It reports whether there are any in text.
func eachMark(line []span, mark rune, st emphasis, visit func(opens, closes, ours bool) (replace bool)) bool {
	found, styled := false, false
	for i, s := range line {
		if now := s.style&st != 0; now != styled {
			visit(now, !now, true)
			styled = now
		}
		if s.style&code == 0 && strings.ContainsRune(s.text, mark) {
			found = true
			line[i].text = replaceMarks(s.text, mark, i > 0, i < len(line)-1, func(opens, closes bool) bool { return visit(opens, closes, false) })
		}
	}
	if styled {
		visit(false, true, true)
	}
	return found
}

// replaceMarks calls visit for each mark in text and returns the text with those replaced for which it says so. before and
// after tell that something else stands beside the text, which may be anything.
func replaceMarks(text string, mark rune, before, after bool, visit func(opens, closes bool) bool) string {
	var b strings.Builder
	prev := rune(0)
	for i, r := range text {
		if r != mark {
			b.WriteRune(r)
			prev = r
			continue
		}
		end := i + utf8.RuneLen(r)
		next, _ := utf8.DecodeRuneInString(text[end:])
		opens := end == len(text) && after || end < len(text) && !unicode.IsSpace(next)
		closes := i == 0 && before || i > 0 && !unicode.IsSpace(prev)
		if visit(opens && !isWordRune(prev), closes && !isWordRune(next)) {
			b.WriteString(markNeutralizer.Replace(string(r)))
		} else {
			b.WriteRune(r)
		}
		prev = r
	}
	return b.String()
}

func isWordRune(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// spanOverhead is the most that a span's marks and borders take.
const spanOverhead = 16

// cutLine writes a line in pieces of at most room characters each. A style that is cut is closed and opened again.
func cutLine(line []span, room int) []string {
	text := writeLine(line)
	if utf16Len(text) <= room {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return []string{text}
	}
	var pieces []string
	for _, part := range cutSpans(line, room) {
		if piece := writeLine(part); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

func cutSpans(line []span, room int) [][]span {
	var parts [][]span
	var part []span
	n := 0
	next := func() { parts, part, n = append(parts, part), nil, 0 }
	for _, s := range mergeSpans(line) {
		if s.url != "" {
			size := utf16Len(Escape(s.url)) + escapedLen(s.text) + spanOverhead
			if n+size > room && n > 0 {
				next()
			}
			part, n = append(part, s), n+size
			continue
		}
		if n+2*spanOverhead > room {
			next()
		}
		for n+spanOverhead+escapedLen(s.text) > room {
			at := cutPoint(s.text, room-n-spanOverhead)
			part = append(part, span{text: s.text[:at], style: s.style})
			s.text = s.text[at:]
			next()
		}
		part, n = append(part, s), n+spanOverhead+escapedLen(s.text)
	}
	if len(part) > 0 {
		next()
	}
	return parts
}

// cutText cuts text into pieces that have at most room characters each when they are escaped.
func cutText(text string, room int) []string {
	var pieces []string
	for escapedLen(text) > room {
		at := cutPoint(text, room)
		pieces = append(pieces, text[:at])
		text = text[at:]
	}
	return append(pieces, text)
}

// escapedLen is how many characters text has at most when it is escaped and tamed.
func escapedLen(text string) int {
	n := 0
	for _, r := range text {
		n += escapedRuneLen(r)
	}
	return n
}

func escapedRuneLen(r rune) int {
	switch r {
	case '&':
		return len("&amp;")
	case '<', '>':
		return len("&lt;")
	case '@':
		return 2
	}
	return utf16RuneLen(r)
}

// cutPoint is where to cut text so that the first part takes at most room characters: after a space, else between what
// is seen as characters, else anywhere. It is never 0.
func cutPoint(text string, room int) int {
	end, n := 0, 0
	for i, r := range text {
		if n += escapedRuneLen(r); n > room {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	if end == 0 {
		_, end = utf8.DecodeRuneInString(text)
		return end
	}
	if i := strings.LastIndexByte(text[:end], ' '); i > end/2 {
		return i + 1
	}
	whole, rest, state := 0, text, -1
	for whole < end {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if whole+len(cluster) > end {
			break
		}
		whole += len(cluster)
	}
	if whole > 0 {
		return whole
	}
	return end
}

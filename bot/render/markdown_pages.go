package render

import "strings"

// chunk is a block of lines that are rendered already. No line is too long for a page of its own.
type chunk struct {
	lines        []string
	isCode       bool
	headerLines  int    // of a block of code: how many first lines are repeated where it is cut, a table's header
	keepWithNext bool   // it stays with what follows
	blankBefore  bool   // a blank line stands before it
	blankText    string // what stands in that line
}

const (
	codeOpening = fence + "\n"
	codeClosing = "\n" + fence
)

// codeChunk makes a chunk of the lines of a block of code, for pages of limit characters. The first head lines are
// repeated on each page that the block reaches.
func codeChunk(lines []string, head, limit int) chunk {
	c := chunk{isCode: true}
	room := limit - len(codeOpening) - len(codeClosing)
	for i, line := range lines {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), fence, "ˋˋˋ")
		for _, piece := range cutText(line, room) {
			c.lines = append(c.lines, Escape(piece))
		}
		if i+1 == head {
			c.headerLines, room = len(c.lines), room-c.sizeOf(c.lines)-1
		}
		if i+1 == head && room < limit/2 {
			c.headerLines, room = 0, limit-len(codeOpening)-len(codeClosing)
		}
	}
	for len(c.lines) > 0 && strings.TrimSpace(c.lines[len(c.lines)-1]) == "" {
		c.lines = c.lines[:len(c.lines)-1]
	}
	c.headerLines = min(c.headerLines, max(0, len(c.lines)-1))
	return c
}

func (c chunk) sizeOf(lines []string) int {
	n := max(0, len(lines)-1)
	for _, line := range lines {
		n += utf16Len(line)
	}
	return n
}

func (c chunk) size() int {
	n := c.sizeOf(c.lines)
	if c.isCode {
		n += len(codeOpening) + len(codeClosing)
	}
	return n
}

// pager fills pages, one after the other.
type pager struct {
	limit int
	pages []Page
	text  strings.Builder
	used  int // characters in text
}

// paginate lays chunks on pages of at most limit characters. It cuts between lines, and rather between chunks than in one
// when the page is half full already.
func paginate(chunks []chunk, limit int) []Page {
	p := &pager{limit: limit}
	for i, c := range chunks {
		size := c.size()
		if c.keepWithNext && i+1 < len(chunks) {
			size += 1 + min(chunks[i+1].size(), limit/4)
		}
		if size++; c.blankBefore {
			size += utf16Len(c.blankText) + 1
		}
		if !p.fits(size) && size <= limit && (c.keepWithNext || p.used > limit/2) {
			p.endPage()
		}
		if c.blankBefore && p.used > 0 && p.fits(utf16Len(c.blankText)+1) {
			p.addLine(c.blankText)
		}
		if c.isCode {
			p.addCode(c)
		} else {
			p.addProse(c.lines)
		}
	}
	p.endPage()
	return p.pages
}

func (p *pager) fits(n int) bool { return p.used+n <= p.limit }

// endPage ends the page, unless it is blank.
func (p *pager) endPage() {
	if text := strings.TrimRight(p.text.String(), " \n"); strings.TrimSpace(text) != "" {
		p.pages = append(p.pages, Page{Text: text})
	}
	p.text.Reset()
	p.used = 0
}

func (p *pager) addLine(text string) {
	if p.used > 0 {
		p.text.WriteByte('\n')
		p.used++
	}
	p.text.WriteString(text)
	p.used += utf16Len(text)
}

func (p *pager) addProse(lines []string) {
	for _, line := range lines {
		if !p.fits(utf16Len(line) + 1) {
			p.endPage()
		}
		if p.used > 0 || strings.TrimSpace(line) != "" {
			p.addLine(line)
		}
	}
}

func (p *pager) addCode(c chunk) {
	head, body := c.lines[:c.headerLines], c.lines[c.headerLines:]
	start := 1 + len(codeOpening) + c.sizeOf(head) + 1
	open := false
	for _, line := range body {
		n := utf16Len(line) + 1 + len(codeClosing)
		if !open {
			n += start
		}
		if p.used > 0 && !p.fits(n) {
			p.closeCode(open)
			p.endPage()
			open = false
		}
		if !open {
			p.addLine(fence)
			for _, line := range head {
				p.addLine(line)
			}
			open = true
		}
		p.addLine(line)
	}
	p.closeCode(open)
}

func (p *pager) closeCode(open bool) {
	if open {
		p.addLine(fence)
	}
}

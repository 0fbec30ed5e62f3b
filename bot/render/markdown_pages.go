package render

import "strings"

// chunk is a block of lines that are rendered already. No line is too long for a page of its own.
type chunk struct {
	lines []string
	code  bool
	head  int    // of a block of code: how many first lines are repeated where it is cut, a table's header
	keep  bool   // it stays with what follows
	gap   bool   // a blank line stands before it
	blank string // what stands in that line
}

const (
	opening = fence + "\n"
	closing = "\n" + fence
)

// codeChunk makes a chunk of the lines of a block of code, for pages of limit characters. The first head lines are
// repeated on each page that the block reaches.
func codeChunk(lines []string, head, limit int) chunk {
	c := chunk{code: true}
	room := limit - len(opening) - len(closing)
	for i, line := range lines {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), fence, "ˋˋˋ")
		for _, piece := range cutText(line, room) {
			c.lines = append(c.lines, Escape(piece))
		}
		if i+1 == head {
			c.head, room = len(c.lines), room-c.sizeOf(c.lines)-1
		}
		if i+1 == head && room < limit/2 {
			c.head, room = 0, limit-len(opening)-len(closing)
		}
	}
	for len(c.lines) > 0 && strings.TrimSpace(c.lines[len(c.lines)-1]) == "" {
		c.lines = c.lines[:len(c.lines)-1]
	}
	c.head = min(c.head, max(0, len(c.lines)-1))
	return c
}

func (c chunk) sizeOf(lines []string) int {
	n := max(0, len(lines)-1)
	for _, line := range lines {
		n += units(line)
	}
	return n
}

func (c chunk) size() int {
	n := c.sizeOf(c.lines)
	if c.code {
		n += len(opening) + len(closing)
	}
	return n
}

// pager fills pages, one after the other.
type pager struct {
	limit int
	pages []Page
	text  strings.Builder
	n     int // characters in text
}

// paginate lays chunks on pages of at most limit characters. It cuts between lines, and rather between chunks than in one
// when the page is half full already.
func paginate(chunks []chunk, limit int) []Page {
	p := &pager{limit: limit}
	for i, c := range chunks {
		size := c.size()
		if c.keep && i+1 < len(chunks) {
			size += 1 + min(chunks[i+1].size(), limit/4)
		}
		if size++; c.gap {
			size += units(c.blank) + 1
		}
		if !p.fits(size) && size <= limit && (c.keep || p.n > limit/2) {
			p.turn()
		}
		if c.gap && p.n > 0 && p.fits(units(c.blank)+1) {
			p.line(c.blank)
		}
		if c.code {
			p.code(c)
		} else {
			p.prose(c.lines)
		}
	}
	p.turn()
	return p.pages
}

func (p *pager) fits(n int) bool { return p.n+n <= p.limit }

// turn ends the page, unless it is blank.
func (p *pager) turn() {
	if text := strings.TrimRight(p.text.String(), " \n"); strings.TrimSpace(text) != "" {
		p.pages = append(p.pages, Page{Text: text})
	}
	p.text.Reset()
	p.n = 0
}

func (p *pager) line(text string) {
	if p.n > 0 {
		p.text.WriteByte('\n')
		p.n++
	}
	p.text.WriteString(text)
	p.n += units(text)
}

func (p *pager) prose(lines []string) {
	for _, line := range lines {
		if !p.fits(units(line) + 1) {
			p.turn()
		}
		if p.n > 0 || strings.TrimSpace(line) != "" {
			p.line(line)
		}
	}
}

func (p *pager) code(c chunk) {
	head, body := c.lines[:c.head], c.lines[c.head:]
	start := 1 + len(opening) + c.sizeOf(head) + 1
	open := false
	for _, line := range body {
		n := units(line) + 1 + len(closing)
		if !open {
			n += start
		}
		if p.n > 0 && !p.fits(n) {
			p.close(open)
			p.turn()
			open = false
		}
		if !open {
			p.line(fence)
			for _, line := range head {
				p.line(line)
			}
			open = true
		}
		p.line(line)
	}
	p.close(open)
}

func (p *pager) close(open bool) {
	if open {
		p.line(fence)
	}
}

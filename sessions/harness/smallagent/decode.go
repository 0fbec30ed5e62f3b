package smallagent

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

type key int

const (
	keyText  key = iota // one typed character, in event.text
	keyPaste            // a whole bracketed paste, in event.text
	keyEnter
	keyNewline
	keyEscape
	keyBackspace
	keyDelete
	keyWordBack
	keyLineBack
	keyLeft
	keyRight
	keyUp
	keyDown
	keyHome
	keyEnd
	keyStash
	keyChord // C-x, which waits for C-y
	keySubmit
	keyRedraw
	keyBreak // C-c
	keyEOF   // C-d
)

type event struct {
	key  key
	text string
}

const (
	escape      = 0x1b
	maxSequence = 32 // longer is no key that a terminal sends
)

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// decoder turns the bytes of a terminal into events. How the bytes are cut into reads makes no difference.
type decoder struct {
	buf     []byte
	inPaste bool
	scanned int // in a paste: buf[:scanned] does not hold the beginning of its end
}

func (d *decoder) feed(p []byte) []event {
	d.buf = append(d.buf, p...)
	return d.drain(d.decodeNext)
}

// flush is called when nothing has followed for a while: an ESC that waits for the rest was the Escape key.
func (d *decoder) flush() []event {
	if !d.isEscapePending() {
		return nil
	}
	d.buf = d.buf[1:]
	return append([]event{{key: keyEscape}}, d.drain(d.decodeNext)...)
}

// isEscapePending says that an escape sequence has begun that may be the Escape key. Half a character waits for ever.
func (d *decoder) isEscapePending() bool {
	return !d.inPaste && len(d.buf) > 0 && d.buf[0] == escape
}

func (d *decoder) drain(next func() (event, int, bool)) []event {
	var events []event
	for len(d.buf) > 0 {
		e, n, ok := next()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		if ok {
			events = append(events, e)
		}
	}
	return events
}

// decodeNext returns an event, how many bytes it took (0: more are needed), and whether there is one.
func (d *decoder) decodeNext() (event, int, bool) {
	switch b := d.buf[0]; {
	case d.inPaste:
		return d.decodePaste()
	case b == escape:
		return d.decodeEscape()
	case b < 0x20 || b == 0x7f:
		e, ok := decodeControl(b)
		return e, 1, ok
	case !utf8.FullRune(d.buf):
		return event{}, 0, false
	}
	r, n := utf8.DecodeRune(d.buf)
	return event{keyText, string(r)}, n, true
}

func (d *decoder) decodePaste() (event, int, bool) {
	i := bytes.Index(d.buf[d.scanned:], pasteEnd)
	if i < 0 {
		d.scanned = max(0, len(d.buf)-len(pasteEnd)+1)
		return event{}, 0, false
	}
	end := d.scanned + i
	d.inPaste, d.scanned = false, 0
	return event{keyPaste, normalizePaste(d.buf[:end])}, end + len(pasteEnd), true
}

// normalizePaste is a paste as an editor takes it: a terminal sends CR for a line feed, unless it was told not to.
func normalizePaste(p []byte) string {
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(p))
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func (d *decoder) decodeEscape() (event, int, bool) {
	switch {
	case len(d.buf) == 1:
		return event{}, 0, false
	case d.buf[1] == '[':
		return d.decodeCSI()
	case d.buf[1] != 'O':
		return event{key: keyEscape}, 1, true
	case len(d.buf) == 2:
		return event{}, 0, false
	case d.buf[2] < 0x40 || d.buf[2] > 0x7e:
		return event{key: keyEscape}, 1, true
	}
	e, ok := decodeCursorKey(string(d.buf[2:3]))
	return e, 3, ok
}

func (d *decoder) decodeCSI() (event, int, bool) {
	for i := 2; i < maxSequence; i++ {
		if i == len(d.buf) {
			return event{}, 0, false
		}
		switch b := d.buf[i]; {
		case b >= 0x20 && b <= 0x3f:
		case b >= 0x40 && b <= 0x7e:
			d.inPaste = bytes.Equal(d.buf[:i+1], pasteBegin)
			e, ok := decodeCursorKey(string(d.buf[2 : i+1]))
			return e, i + 1, ok
		default: // a control character cancels the sequence
			return event{}, i, false
		}
	}
	return event{key: keyEscape}, 1, true
}

func decodeCursorKey(s string) (event, bool) {
	k, ok := map[string]key{
		"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd,
		"1~": keyHome, "3~": keyDelete, "4~": keyEnd, "7~": keyHome, "8~": keyEnd,
	}[s]
	return event{key: k}, ok
}

func decodeControl(b byte) (event, bool) {
	if b == '\t' {
		return event{keyText, "\t"}, true
	}
	k, ok := map[byte]key{
		'\r': keyEnter, '\n': keyNewline, 0x08: keyBackspace, 0x7f: keyBackspace, 0x15: keyLineBack, 0x17: keyWordBack,
		0x01: keyHome, 0x05: keyEnd, 0x13: keyStash, 0x18: keyChord, 0x19: keySubmit, 0x0c: keyRedraw,
		0x03: keyBreak, 0x04: keyEOF,
	}[b]
	return event{key: k}, ok
}

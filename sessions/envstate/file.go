package envstate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ErrNotConfigured says that the configuration names no env file, which is not the same as a file that declares nothing.
var ErrNotConfigured = errors.New("no env file is configured")

// maxFile is the size in bytes above which a file is not taken for an env file.
const maxFile = 1 << 20

// File is what an env file declares. Its zero value declares nothing. Printing, logging or marshaling it shows no value.
type File struct {
	Names     []string // the names, each where it first stands in the file
	Malformed []int    // numbers of the lines that could not be used, from 1, in order
	Warning   string   // a sentence when other users may read or write the file; else empty

	// In a closure, because package fmt prints unexported fields without asking their methods and follows pointers.
	values func() Values
}

// Values is a copy of what the file declares.
func (f File) Values() Values {
	if f.values == nil {
		return Values{}
	}
	return maps.Clone(f.values())
}

// ReadFile reads the file at path now; the environment of this process plays no part. [ErrNotConfigured] when path is
// empty; every other error names the path, and none holds any of the file's text.
func ReadFile(path string) (File, error) {
	if path == "" {
		return File{}, ErrNotConfigured
	}
	// O_NONBLOCK: opening a pipe that nobody writes would wait for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, fmt.Errorf("read the env file: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return File{}, fmt.Errorf("read the env file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("read the env file: %s is not a regular file", path)
	}
	parsed, err := Parse(f)
	if err != nil {
		return File{}, fmt.Errorf("read the env file %s: %w", path, err)
	}
	parsed.Warning = permissionWarning(path, info.Mode().Perm())
	return parsed, nil
}

func permissionWarning(path string, perm fs.FileMode) string {
	if perm&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("%s is open to other users (mode %04o): chmod 600 %s", path, perm, path)
}

// Parse reads the text of an env file; the package comment says how. The only errors are those of r and a file of
// more than 1 MiB.
func Parse(r io.Reader) (File, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, err
	}
	if len(data) > maxFile {
		return File{}, fmt.Errorf("larger than %d bytes", maxFile)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	p := parser{rest: strings.TrimSuffix(text, "\r"), line: 1, values: Values{}}
	for p.rest != "" {
		p.parseAssignment()
	}
	return File{Names: p.order, Malformed: p.malformed, values: func() Values { return p.values }}, nil
}

// parser reads an env file from its beginning to its end.
type parser struct {
	rest string
	line int // number of the line that rest begins with

	values    Values
	order     []string
	malformed []int
}

// parseAssignment reads what begins in the next line: all lines of it, or a line that declares nothing.
func (p *parser) parseAssignment() {
	first := p.line
	line, _, _ := strings.Cut(p.rest, "\n")
	if trimmed := strings.Trim(line, blanks); trimmed == "" || trimmed[0] == '#' {
		p.skip(len(line))
		return
	}
	left, _, found := strings.Cut(line, "=")
	if !found {
		p.skip(len(line))
		p.markMalformed(first)
		return
	}
	// The value is read also after a name that is none: otherwise its lines would be taken for assignments.
	name, named := parseName(left)
	lit := parseValue(p.rest[len(left)+1:])
	if lit.isUnterminated {
		p.skip(len(p.rest))
		p.markMalformed(first)
		return
	}
	p.skip(len(left) + 1 + lit.length)
	if !named || !lit.isValid {
		p.markMalformed(first)
		return
	}
	p.declare(name, lit.value)
}

// skip goes on after n bytes, at the end of a line or of the text.
func (p *parser) skip(n int) {
	skipped := p.rest[:n]
	p.line += strings.Count(skipped, "\n")
	if !strings.HasSuffix(skipped, "\n") {
		p.line++
	}
	p.rest = strings.TrimPrefix(p.rest[n:], "\n")
}

// markMalformed notes the lines from first up to the one that was read last.
func (p *parser) markMalformed(first int) {
	for n := first; n < p.line; n++ {
		p.malformed = append(p.malformed, n)
	}
}

func (p *parser) declare(name, value string) {
	if _, again := p.values[name]; !again {
		p.order = append(p.order, name)
	}
	p.values[name] = value
}

// blanks are what may stand around a name or a value.
const blanks = " \t"

// maxName is how long a name may be, in bytes.
const maxName = 256

// parseName reads what stands before an equals sign.
func parseName(left string) (name string, ok bool) {
	name = strings.Trim(left, blanks)
	if rest, exported := strings.CutPrefix(name, "export"); exported && rest != "" && strings.Contains(blanks, rest[:1]) {
		name = strings.TrimLeft(rest, blanks)
	}
	return name, validName(name)
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// literal is a value as it is written.
type literal struct {
	value          string
	length         int  // bytes up to the end of the line that it ends in
	isValid        bool // value is what it says
	isUnterminated bool // where it ends cannot be told, so nothing after it can be either
}

// parseValue reads the value that s, which goes on after the equals sign, begins with.
func parseValue(s string) literal {
	line, _, _ := strings.Cut(s, "\n")
	trimmed := strings.TrimLeft(line, blanks)
	switch {
	case strings.HasPrefix(trimmed, `"`), strings.HasPrefix(trimmed, `'`):
		return parseQuoted(s, len(line)-len(trimmed))
	case strings.HasPrefix(trimmed, "`") && strings.Count(trimmed, "`") == 1:
		return literal{isUnterminated: true} // a quote of some programs, over several lines
	}
	return literal{value: strings.Trim(cutComment(line), blanks), length: len(line), isValid: !strings.Contains(line, "\x00")}
}

// parseQuoted reads a value whose quote is s[at].
func parseQuoted(s string, at int) literal {
	value, n, closed := unquote(s[at+1:], s[at])
	if !closed {
		return literal{isUnterminated: true}
	}
	end := at + 1 + n
	tail, _, _ := strings.Cut(s[end:], "\n")
	if isValidTail(tail) {
		return literal{value: value, length: end + len(tail), isValid: !strings.Contains(value, "\x00")}
	}
	// What follows the quote says that it may have been another one that was closed here.
	severalLines := strings.Contains(s[at:end], "\n")
	return literal{length: end + len(tail), isUnterminated: severalLines || opensQuote(tail)}
}

// unquote reads s up to the closing quote; n are the bytes up to and with it.
func unquote(s string, quote byte) (value string, n int, closed bool) {
	if quote == '\'' {
		n = strings.IndexByte(s, quote)
		if n < 0 {
			return "", 0, false
		}
		return s[:n], n + 1, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == quote {
			return b.String(), i + 1, true
		}
		if s[i] == '\\' && i+1 < len(s) {
			if c, known := escapes[s[i+1]]; known {
				b.WriteByte(c)
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return "", 0, false
}

// escapes maps what may follow a backslash in double quotes.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '$': '$', '`': '`', 'n': '\n', 'r': '\r', 't': '\t'}

// opensQuote reports whether s, read as a shell reads it, ends within quotes.
func opensQuote(s string) bool {
	open := rune(0)
	for _, c := range s {
		switch {
		case c != '"' && c != '\'':
		case open == 0:
			open = c
		case open == c:
			open = 0
		}
	}
	return open != 0
}

// isValidTail reports whether s may follow a closing quote: nothing, or a comment after a blank.
func isValidTail(s string) bool {
	trimmed := strings.Trim(s, blanks)
	return trimmed == "" || trimmed != strings.TrimRight(s, blanks) && trimmed[0] == '#'
}

// cutComment cuts s before the first # that follows a blank.
func cutComment(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && strings.Contains(blanks, s[i-1:i]) {
			return s[:i]
		}
	}
	return s
}

// Split parts what the file declares into what a pane is started with and the names, in name order, that it must not
// be: those that tmux owns in every pane, and the reserved ones.
func Split(values map[string]string, reserved ...string) (pass Values, refused []string) {
	pass = Values{}
	for name, value := range values {
		if slices.Contains(tmuxOwned, name) || slices.Contains(reserved, name) {
			refused = append(refused, name)
			continue
		}
		pass[name] = value
	}
	slices.Sort(refused)
	return pass, refused
}

// tmuxOwned are the variables that tmux sets in a pane whatever new-session -e says (seen with 3.3a).
var tmuxOwned = []string{"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD", "TMUX", "TMUX_PANE"}

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
	Order     []string // the names, each where it first stands in the file
	Malformed []int    // numbers of the lines that could not be used, from 1
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

// Declared reads the file at path now; the environment of this process plays no part. [ErrNotConfigured] when path is
// empty; every other error names the path, and none holds any of the file's text.
func Declared(path string) (File, error) {
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

// Parse reads the lines of an env file; the package comment says which. The only errors are those of r and a file of
// more than 1 MiB.
func Parse(r io.Reader) (File, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, err
	}
	if len(data) > maxFile {
		return File{}, fmt.Errorf("larger than %d bytes", maxFile)
	}
	values := Values{}
	file := File{values: func() Values { return values }}
	text := strings.TrimPrefix(string(data), "\ufeff")
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.Trim(strings.TrimSuffix(line, "\r"), blanks)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := parseLine(line)
		if !ok {
			file.Malformed = append(file.Malformed, number)
			continue
		}
		if _, again := values[name]; !again {
			file.Order = append(file.Order, name)
		}
		values[name] = value
	}
	return file, nil
}

// blanks are what may stand around a name or a value.
const blanks = " \t"

func parseLine(line string) (name, value string, ok bool) {
	left, right, found := strings.Cut(line, "=")
	if !found || strings.ContainsRune(line, 0) {
		return "", "", false
	}
	name = strings.Trim(left, blanks)
	if rest, exported := strings.CutPrefix(name, "export"); exported && rest != "" && strings.Contains(blanks, rest[:1]) {
		name = strings.TrimLeft(rest, blanks)
	}
	if !validName(name) {
		return "", "", false
	}
	value, ok = parseValue(right)
	return name, value, ok
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// parseValue reads s, which begins after the equals sign.
func parseValue(s string) (string, bool) {
	switch trimmed := strings.TrimLeft(s, blanks); {
	case strings.HasPrefix(trimmed, `"`):
		return parseDouble(trimmed[1:])
	case strings.HasPrefix(trimmed, `'`):
		value, rest, closed := strings.Cut(trimmed[1:], `'`)
		return value, closed && isTail(rest)
	}
	return strings.Trim(cutComment(s), blanks), true
}

// escapes maps what may follow a backslash in double quotes.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '$': '$', '`': '`', 'n': '\n', 'r': '\r', 't': '\t'}

// parseDouble reads s, which begins after the opening quote.
func parseDouble(s string) (string, bool) {
	var value strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return value.String(), isTail(s[i+1:])
		case '\\':
			if i+1 < len(s) {
				if c, known := escapes[s[i+1]]; known {
					value.WriteByte(c)
					i++
					continue
				}
			}
		}
		value.WriteByte(s[i])
	}
	return "", false
}

// isTail reports whether s may follow a closing quote: nothing, or a comment after a blank.
func isTail(s string) bool {
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

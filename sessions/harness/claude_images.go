package harness

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

var (
	claudePieceStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n| (?:/|[A-Za-z]:\\)`) })
	claudeImageName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\.(png|jpe?g|gif|webp)["']?$`) })
	claudeEscape     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(.)`) })
)

// Quote puts a full stop after what looks like an image's name and is none that can be read, where the text has one that can
// be: Claude Code attaches that one, and leaves out whatever else ends like an image, with the words in front of it
// (2.1.197). Without one it keeps all of the text.
func (c Claude) Quote(text string) string {
	pieces, images := splitClaudePieces(text), false
	for i, piece := range pieces {
		bare := strings.TrimSpace(piece)
		switch {
		case !claudeImageName().MatchString(bare):
		case isImage(bare):
			images = true
		default:
			end := len(strings.TrimRight(piece, " \t\n"))
			pieces[i] = piece[:end] + "." + piece[end:]
		}
	}
	if !images {
		return text
	}
	return strings.Join(pieces, "")
}

// splitClaudePieces are the parts of a text that Claude Code takes for dropped files one by one: lines, and what follows a blank as
// an absolute path does.
func splitClaudePieces(text string) []string {
	var pieces []string
	from := 0
	for _, at := range claudePieceStart().FindAllStringIndex(text, -1) {
		pieces = append(pieces, text[from:at[0]+1])
		from = at[0] + 1
	}
	return append(pieces, text[from:])
}

// isImage reports whether a path, quoted or escaped as a terminal does with a file that is dropped, is that of an image.
func isImage(path string) bool {
	if n := len(path); n > 1 && path[0] == path[n-1] && (path[0] == '"' || path[0] == '\'') {
		path = path[1 : n-1]
	}
	path = claudeEscape().ReplaceAllString(path, "$1")
	if info, err := os.Stat(path); !filepath.IsAbs(path) || err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, 512))
	return err == nil && strings.HasPrefix(http.DetectContentType(head), "image/")
}

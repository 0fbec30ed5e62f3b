package claude

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
	pieceStartPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n| (?:/|[A-Za-z]:\\)`) })
	imageNamePattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\.(png|jpe?g|gif|webp)["']?$`) })
	escapePattern     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(.)`) })
)

// Quote puts a full stop after each name of an image that cannot be read, where the text also names one that can. Claude Code
// would attach that one and drop the others with the words in front of them (2.1.197). In other texts it drops nothing.
func (c Harness) Quote(text string) string {
	pieces, images := splitPieces(text), false
	for i, piece := range pieces {
		bare := strings.TrimSpace(piece)
		switch {
		case !imageNamePattern().MatchString(bare):
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

// splitPieces splits a text where Claude Code does to find dropped files: at line feeds, and at blanks before absolute paths.
func splitPieces(text string) []string {
	var pieces []string
	from := 0
	for _, at := range pieceStartPattern().FindAllStringIndex(text, -1) {
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
	path = escapePattern().ReplaceAllString(path, "$1")
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

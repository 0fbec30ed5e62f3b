package harnesstest

import (
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WriteTrickyFiles makes the images and other files that tricky texts name, and returns their folder.
func WriteTrickyFiles(t *testing.T, dir string) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	encode := func(name string, to func(io.Writer) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(to(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shot.png", "my shot.png"} {
		encode(name, func(w io.Writer) error { return png.Encode(w, img) })
	}
	for _, name := range []string{"other.jpg", "BILD.JPEG"} {
		encode(name, func(w io.Writer) error { return jpeg.Encode(w, img, nil) })
	}
	for _, name := range []string{"hard.txt", "doc.pdf"} {
		encode(name, func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader("some text\n")); return err })
	}
	return dir
}

package render

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawScreen(t *testing.T, s Screen) image.Image {
	t.Helper()
	data, err := s.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// hasColour reports whether the cell at a column and a row has a pixel of the colour.
func hasColour(img image.Image, col, row int, c color.RGBA) bool {
	for y := range cellHeight {
		for x := range cellWidth {
			if colourAt(img, margin+col*cellWidth+x, margin+row*cellHeight+y) == c {
				return true
			}
		}
	}
	return false
}

func colourAt(img image.Image, x, y int) color.RGBA {
	c, _ := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
	return c
}

// backgroundAt is the colour of a cell's paper.
func backgroundAt(img image.Image, col, row int) color.RGBA {
	return colourAt(img, margin+col*cellWidth, margin+row*cellHeight)
}

const sampleScreen = "plain \x1b[31mred\x1b[0m \x1b[1;32mbold\x1b[0m \x1b[7minverse\x1b[27m \x1b[4munder\x1b[24m\n" +
	"\x1b[38;5;208m256\x1b[39m \x1b[48;5;17mpaper\x1b[49m \x1b[38;2;1;2;250mtrue\x1b[0m \x1b[38:2::9:8:7mcolon\x1b[m\n" +
	"\x0elqk\x0f 日本 \x1b]8;;https://x.io\x1b\\link\x1b]8;;\x1b\\ ╭─╮ \x1b[8msecret\x1b[28m👍\x1b[2mdim\x1b[0m\n\n\n"

func TestAScreenIsParsedAndShownAsText(t *testing.T) {
	t.Parallel()
	got := ParseScreen(sampleScreen).Text()
	want := "plain red bold inverse under\n256 paper true colon\n┌─┐ 日本 link ╭─╮ secret👍dim"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAScreenIsDrawnInItsColours(t *testing.T) {
	t.Parallel()
	img := drawScreen(t, ParseScreen(sampleScreen))
	if got, want := img.Bounds().Size(), (image.Point{X: 2*margin + 40*cellWidth, Y: 2*margin + 3*cellHeight}); got != want {
		t.Fatalf("the picture is %v, want %v", got, want)
	}
	for _, c := range []struct {
		what     string
		col, row int
		want     color.RGBA
	}{
		{"plain text", 0, 0, defaultForeground}, {"red", 6, 0, namedColours[1]}, {"bold green", 10, 0, namedColours[2]}, {"inverse", 15, 0, defaultBackground},
		{"one of 256", 0, 1, color.RGBA{0xff, 0x87, 0x00, 0xff}}, {"true colour", 10, 1, color.RGBA{1, 2, 250, 0xff}},
		{"a colour with colons", 15, 1, color.RGBA{9, 8, 7, 0xff}}, {"line drawing", 0, 2, defaultForeground}, {"a round corner", 14, 2, defaultForeground},
	} {
		if !hasColour(img, c.col, c.row, c.want) {
			t.Errorf("%s: no pixel of %v in column %d of row %d", c.what, c.want, c.col, c.row)
		}
	}
	if got := backgroundAt(img, 15, 0); got != defaultForeground {
		t.Errorf("the paper of inverse text is %v", got)
	}
	if got, want := backgroundAt(img, 4, 1), (color.RGBA{0, 0, 0x5f, 0xff}); got != want {
		t.Errorf("the paper of 256 colours is %v, want %v", got, want)
	}
	for col := 18; col < 24; col++ {
		if hasColour(img, col, 2, defaultForeground) {
			t.Errorf("hidden text shows in column %d", col)
		}
	}
}

func TestACharacterWithoutAGlyphIsABoxOfItsWidth(t *testing.T) {
	t.Parallel()
	img := drawScreen(t, ParseScreen("日x👍"))
	y := margin + 4
	for col, width := range map[int]int{0: 2, 3: 2} {
		left, right := margin+col*cellWidth+1, margin+(col+width)*cellWidth-2
		for x := left; x <= right; x++ {
			if colourAt(img, x, y) != defaultForeground {
				t.Fatalf("the box in column %d has a gap at %d", col, x)
			}
		}
		if colourAt(img, left-1, y) == defaultForeground || colourAt(img, right+1, y) == defaultForeground {
			t.Errorf("the box in column %d is too wide", col)
		}
	}
}

// The picture as a whole is held by a file that a person can look at.
func TestThePictureMatchesTheGoldenFile(t *testing.T) {
	t.Parallel()
	got, err := ParseScreen(sampleScreen).PNG()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "screen.png")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	img := drawScreen(t, ParseScreen(sampleScreen))
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			if colourAt(img, x, y) != colourAt(want, x, y) {
				t.Fatalf("%s differs at %d,%d", path, x, y)
			}
		}
	}
}

func TestScrubbedTextIsInNoPicture(t *testing.T) {
	t.Parallel()
	scrub := func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[KEY]") }
	s := ParseScreen("\x1b[32mgreen\x1b[0m\nkey \x1b[31mhunter2\x1b[34mhunter2\x1b[0m").Scrubbed(scrub)
	if got := s.Text(); got != "green\nkey [KEY]" {
		t.Errorf("scrubbed to %q", got)
	}
	if img := drawScreen(t, s); !hasColour(img, 0, 0, namedColours[2]) || hasColour(img, 4, 1, namedColours[1]) {
		t.Error("a line without it lost its colours, or one with it kept them")
	}
	joined := func(s string) string { return strings.ReplaceAll(s, "sec\nret", "[KEY]") }
	if got := ParseScreen("a\n\x1b[31msec\nret\x1b[0m").Scrubbed(joined).Text(); got != "a\n[KEY]" {
		t.Errorf("scrubbed to %q", got)
	}
}

func TestAnyBytesMakeAPicture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"x", "日", "\n", "\x1b", "[", "38;5;", "48:2:", "999", "m", ";", "\x1b]", "\x0e", "\xff", "é", "\x07", "\x1b[m"})
		s := ParseScreen(strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), ""))
		if _, err := s.PNG(); err != nil {
			t.Fatal(err)
		}
		_ = s.Scrubbed(func(s string) string { return s + "x" }).Text()
	})
}

func TestAScreenHasBounds(t *testing.T) {
	t.Parallel()
	cols, rows := ParseScreen(strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000)).size()
	if cols != maxCols || rows != maxRows {
		t.Errorf("%d columns, %d rows", cols, rows)
	}
}

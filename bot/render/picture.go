package render

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// Sizes of a picture in pixels. Go Mono at 15 pixels is 9 wide.
const (
	cellWidth  = 9
	cellHeight = 18
	fontSize   = 15
	baseline   = 14
	margin     = 9
	minCols    = 40
)

// The colours that a cell without one has.
var (
	defaultBackground = color.RGBA{R: 0x1e, G: 0x1e, B: 0x1e, A: 0xff}
	defaultForeground = color.RGBA{R: 0xd4, G: 0xd4, B: 0xd4, A: 0xff}
)

// namedColours are the 16 colours that have names.
var namedColours = [16]color.RGBA{
	{0x00, 0x00, 0x00, 0xff}, {0xcd, 0x31, 0x31, 0xff}, {0x0d, 0xbc, 0x79, 0xff}, {0xe5, 0xe5, 0x10, 0xff},
	{0x24, 0x72, 0xc8, 0xff}, {0xbc, 0x3f, 0xbc, 0xff}, {0x11, 0xa8, 0xcd, 0xff}, {0xe5, 0xe5, 0xe5, 0xff},
	{0x66, 0x66, 0x66, 0xff}, {0xf1, 0x4c, 0x4c, 0xff}, {0x23, 0xd1, 0x8b, 0xff}, {0xf5, 0xf5, 0x43, 0xff},
	{0x3b, 0x8e, 0xea, 0xff}, {0xd6, 0x70, 0xd6, 0xff}, {0x29, 0xb8, 0xdb, 0xff}, {0xff, 0xff, 0xff, 0xff},
}

// paletteColour is a colour of the 256: 16 with names, a cube of 6×6×6, and 24 greys. Nil: there is no such colour.
func paletteColour(n int) *color.RGBA {
	switch {
	case n < 0 || n > 255:
		return nil
	case n < 16:
		return &namedColours[n]
	case n < 232:
		n -= 16
		return &color.RGBA{R: cubeLevel(n / 36), G: cubeLevel(n / 6 % 6), B: cubeLevel(n % 6), A: 0xff}
	}
	grey := uint8(8 + 10*(n-232))
	return &color.RGBA{R: grey, G: grey, B: grey, A: 0xff}
}

func cubeLevel(n int) uint8 {
	if n == 0 {
		return 0
	}
	return uint8(55 + 40*n)
}

// maxPictureLines is how many lines a picture has, beside the one that says how many are cut.
const maxPictureLines = 200

// cropped is the end of the screen, below a line that says how much of its top is cut.
func (s Screen) cropped() Screen {
	_, rows := s.size()
	rows = min(rows, len(s.rows))
	cut := max(0, rows-maxPictureLines)
	if s.cut+cut == 0 {
		return s
	}
	note := ParseScreen("\x1b[2m… " + cutLinesText(s.cut+cut) + "\x1b[0m")
	return Screen{rows: append(note.rows, s.rows[cut:rows]...)}
}

// PNG draws the screen; of one that is long, its end. A character that the font does not have is a box of its width.
func (s Screen) PNG() ([]byte, error) {
	s = s.cropped()
	d, err := newDrawer(s.size())
	if err != nil {
		return nil, err
	}
	for y, row := range s.rows {
		x := 0
		for _, c := range row {
			d.cell(x, y, c)
			x += c.width
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, d.img); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return b.Bytes(), nil
}

// size is how many columns and rows the screen has; empty lines at the end do not count.
func (s Screen) size() (cols, rows int) {
	cols = minCols
	for i, row := range s.rows {
		width := 0
		for _, c := range row {
			width += c.width
		}
		if width > 0 {
			rows = i + 1
		}
		cols = max(cols, width)
	}
	return cols, max(1, rows)
}

// fonts are Go Mono, regular and bold. They are read once, and never change.
var fonts = sync.OnceValues(func() ([2]*opentype.Font, error) {
	var both [2]*opentype.Font
	for i, data := range [][]byte{gomono.TTF, gomonobold.TTF} {
		f, err := opentype.Parse(data)
		if err != nil {
			return both, fmt.Errorf("read the font: %w", err)
		}
		both[i] = f
	}
	return both, nil
})

// drawer draws cells into a picture.
type drawer struct {
	img   *image.RGBA
	fonts [2]*opentype.Font
	faces [2]font.Face
	buf   sfnt.Buffer
}

func newDrawer(cols, rows int) (*drawer, error) {
	both, err := fonts()
	if err != nil {
		return nil, err
	}
	d := &drawer{fonts: both, img: image.NewRGBA(image.Rect(0, 0, 2*margin+cols*cellWidth, 2*margin+rows*cellHeight))}
	for i, f := range both {
		d.faces[i], err = opentype.NewFace(f, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return nil, fmt.Errorf("prepare the font: %w", err)
		}
	}
	draw.Draw(d.img, d.img.Bounds(), image.NewUniform(defaultBackground), image.Point{}, draw.Src)
	return d, nil
}

// cell draws one cell at a column and a row.
func (d *drawer) cell(col, row int, c cell) {
	fg, bg := c.style.colours()
	box := image.Rect(0, 0, c.width*cellWidth, cellHeight).Add(image.Pt(margin+col*cellWidth, margin+row*cellHeight))
	d.fill(box, bg)
	if c.style.hidden {
		return
	}
	d.glyph(box, c, fg)
	if c.style.underline {
		d.fill(image.Rect(box.Min.X, box.Min.Y+baseline+2, box.Max.X, box.Min.Y+baseline+3), fg)
	}
	if c.style.strike {
		d.fill(image.Rect(box.Min.X, box.Min.Y+cellHeight/2, box.Max.X, box.Min.Y+cellHeight/2+1), fg)
	}
}

func (d *drawer) fill(r image.Rectangle, c color.RGBA) {
	draw.Draw(d.img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

func (d *drawer) glyph(box image.Rectangle, c cell, fg color.RGBA) {
	r, n := utf8.DecodeRuneInString(c.text)
	if r == ' ' || r == '\u00a0' {
		return
	}
	r = substituteGlyph(r)
	weight := 0
	if c.style.bold {
		weight = 1
	}
	if c.width > 1 || n < len(c.text) && !hasOnlyMarks(c.text[n:]) || !d.hasGlyph(weight, r) {
		d.placeholder(box, fg)
		return
	}
	w := font.Drawer{Dst: d.img, Src: image.NewUniform(fg), Face: d.faces[weight], Dot: fixed.P(box.Min.X, box.Min.Y+baseline)}
	w.DrawString(string(r))
}

// hasOnlyMarks reports whether what follows a character only changes it: it is shown without.
func hasOnlyMarks(s string) bool {
	for _, r := range s {
		if !unicode.Is(unicode.M, r) {
			return false
		}
	}
	return true
}

func (d *drawer) hasGlyph(weight int, r rune) bool {
	i, err := d.fonts[weight].GlyphIndex(&d.buf, r)
	return err == nil && i != 0
}

// placeholder is a frame where a character would be.
func (d *drawer) placeholder(box image.Rectangle, fg color.RGBA) {
	frame := image.Rect(box.Min.X+1, box.Min.Y+4, box.Max.X-1, box.Min.Y+baseline+1)
	d.fill(image.Rect(frame.Min.X, frame.Min.Y, frame.Max.X, frame.Min.Y+1), fg)
	d.fill(image.Rect(frame.Min.X, frame.Max.Y-1, frame.Max.X, frame.Max.Y), fg)
	d.fill(image.Rect(frame.Min.X, frame.Min.Y, frame.Min.X+1, frame.Max.Y), fg)
	d.fill(image.Rect(frame.Max.X-1, frame.Min.Y, frame.Max.X, frame.Max.Y), fg)
}

// glyphSubstitutes are characters of agents' screens that the font lacks, and ones that it has.
var glyphSubstitutes = map[rune]rune{'╭': '┌', '╮': '┐', '╰': '└', '╯': '┘', '⎿': '└', '❯': '>', '›': '>', '⏵': '►', '⏺': '●', '✓': '√', '✔': '√',
	'✻': '*', '✽': '*', '✶': '*', '✢': '*', '✳': '*', '╌': '─', '┄': '─', '┆': '│', '━': '─', '┃': '│', '⏸': '‖', '◯': '○', '▏': '│'}

func substituteGlyph(r rune) rune {
	if a, ok := glyphSubstitutes[r]; ok {
		return a
	}
	return r
}

// colours are what a cell of the style is drawn in.
func (s style) colours() (fg, bg color.RGBA) {
	fg, bg = defaultForeground, defaultBackground
	if s.fg != nil {
		fg = *s.fg
	}
	if s.bg != nil {
		bg = *s.bg
	}
	if s.inverse {
		fg, bg = bg, fg
	}
	if s.dim {
		fg = color.RGBA{R: average(fg.R, bg.R), G: average(fg.G, bg.G), B: average(fg.B, bg.B), A: 0xff}
	}
	return fg, bg
}

func average(a, b uint8) uint8 { return uint8((int(a) + int(b)) / 2) }

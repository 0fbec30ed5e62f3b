package main

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

var updatePictures = flag.Bool("update", false, "write the pictures of the page that README.md shows")

// README.md opens with a picture of the page. It is of the page as it is.
func TestThePicturesOfThePageAreCurrent(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 940)
	b.setDarkMode(false)
	b.open(d.url)
	b.waitForText(screenSelector, "small agent")
	b.sendText("thread", "Hello! Please look at the failing tests.")
	b.waitForText("#thread-list", "Turn 2")
	b.switchPersona("Bob")
	b.sendText("thread", "Delete everything, please.")
	b.waitForText("#thread-list", "Delete everything")
	b.switchPersona("Ann")
	b.sendText("thread", "ask: run the tests")
	b.waitFor("two receipts", "document.querySelectorAll('"+acceptedSelector+"').length == 2")
	b.waitForText("#thread-list", "The agent asks to use")
	b.waitForText("#thread-status", "is waiting for an answer")
	comparePicture(t, "desk.png", b.screenshot())

	phone := newBrowser(t, 390, 844)
	phone.setDarkMode(false)
	phone.open(d.url)
	phone.click("#channel-list .replies")
	phone.waitForText("#thread-list", "The agent asks to use")
	comparePicture(t, "phone.png", phone.screenshot())
}

// comparePicture holds a picture against the one in testdata, roughly: fonts differ from machine to machine, and times from run
// to run.
func comparePicture(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "page", name)
	if *updatePictures {
		if err := os.WriteFile(path, reduceColors(t, got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := decodePNG(t, want), decodePNG(t, got)
	if a.Bounds() != b.Bounds() {
		t.Fatalf("%s is %v, and the page %v", name, a.Bounds(), b.Bounds())
	}
	if far := imageDistance(a, b); far > 0.06 {
		t.Errorf("the page looks otherwise than %s (by %.3f): look at it, and run this test with -update", name, far)
	} else {
		t.Logf("%s differs by %.3f", name, far)
	}
}

// reduceColors is the picture with fewer colours, which nobody sees: it is kept in the repository.
func reduceColors(t *testing.T, data []byte) []byte {
	t.Helper()
	from := decodePNG(t, data)
	to := image.NewNRGBA(from.Bounds())
	for y := from.Bounds().Min.Y; y < from.Bounds().Max.Y; y++ {
		for x := from.Bounds().Min.X; x < from.Bounds().Max.X; x++ {
			r, g, b, _ := from.At(x, y).RGBA()
			to.SetNRGBA(x, y, color.NRGBA{R: quantize(r), G: quantize(g), B: quantize(b), A: 0xff})
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// quantize rounds a channel to 43 steps, so that black and white stay.
func quantize(channel uint32) uint8 { return uint8(min(255, (channel>>8+3)/6*6)) }

func decodePNG(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// imageDistance is how much two pictures of one size differ, from 0 to 1: the mean difference of the brightness of tiles, so
// that letters do not count, and where something stands does.
func imageDistance(a, b image.Image) float64 {
	const tile = 30
	sum, n := 0.0, 0
	for y := 0; y+tile <= a.Bounds().Dy(); y += tile {
		for x := 0; x+tile <= a.Bounds().Dx(); x += tile {
			at := image.Rect(x, y, x+tile, y+tile)
			d := brightness(a, at) - brightness(b, at)
			sum, n = sum+max(d, -d), n+1
		}
	}
	return sum / float64(n)
}

func brightness(img image.Image, at image.Rectangle) float64 {
	sum := 0.0
	for y := at.Min.Y; y < at.Max.Y; y += 3 {
		for x := at.Min.X; x < at.Max.X; x += 3 {
			r, g, b, _ := img.At(x, y).RGBA()
			sum += float64(r+g+b) / (3 * 0xffff)
		}
	}
	return sum / float64((at.Dx()/3)*(at.Dy()/3))
}

package claude

import (
	"testing"

	"the-loop/sessions/harness/harnesstest"
)

func TestClaudeLosesNoWordsBesideAnImage(t *testing.T) {
	t.Parallel()
	dir := harnesstest.WriteTrickyFiles(t, t.TempDir())
	shot, none := dir+"/shot.png", dir+"/none.png"
	for text, want := range map[string]string{
		"the name bild.JPEG " + shot:                    "the name bild.JPEG. " + shot,
		"like old.png \nAttached file: " + shot:         "like old.png. \nAttached file: " + shot,
		none + " and\n'" + dir + "/my shot.png'":        none + " and\n'" + dir + "/my shot.png'",
		"two " + none + " " + shot + " ":                "two " + none + ". " + shot + " ",
		`a "shot.png"` + "\n" + dir + `/my\ shot.png`:   `a "shot.png".` + "\n" + dir + `/my\ shot.png`,
		`see C:\a\b.gif ` + shot:                        `see C:\a\b.gif. ` + shot,
		"only a name.png":                               "only a name.png",
		"one of none " + none:                           "one of none " + none,
		"Attached file: " + shot + "\nand " + shot:      "Attached file: " + shot + "\nand " + shot,
		"a text in shot.png of " + dir + "/hard.txt":    "a text in shot.png of " + dir + "/hard.txt",
		"ends shot.png\n" + dir + "/other.jpg and more": "ends shot.png\n" + dir + "/other.jpg and more",
	} {
		if got := (Harness{}).Quote(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

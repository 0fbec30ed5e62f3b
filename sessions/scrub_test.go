package sessions

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScrubJSONChangesTextsOnly(t *testing.T) {
	t.Parallel()
	scrub := func(text string) string { return strings.ReplaceAll(text, `a"b`, "[KEY]") }
	in := `{"text" : "x a\"b <&> \u00e9", "id":"a\"b", "a\"b":[1.50,"a\"b",{"n":null}],"z":"\\"}`
	want := `{"text" : "x [KEY] \u003c\u0026\u003e é", "id":"a\"b", "a\"b":[1.50,"[KEY]",{"n":null}],"z":"\\"}`
	if got := string(ScrubJSON([]byte(in), scrub, func(key string) bool { return key == "id" })); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestScrubJSONKeepsADocumentOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.String())).Draw(t, "doc")
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		got := ScrubJSON(raw, func(text string) string { return text + `"\` }, func(string) bool { return false })
		var back map[string][]string
		if err := json.Unmarshal(got, &back); err != nil || len(back) != len(doc) {
			t.Fatalf("%s became %s: %v", raw, got, err)
		}
		if same := ScrubJSON(raw, func(text string) string { return text }, func(string) bool { return false }); string(same) != string(raw) {
			t.Fatalf("%s became %s", raw, same)
		}
	})
}

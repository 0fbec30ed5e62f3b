package envstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// canary is a value that must never be printed.
const canary = "canary-4711-value"

// carelessStruct is what a careless caller might print.
type carelessStruct struct {
	File   File
	Values Values
	file   File
	scrub  *Scrubber
}

func TestValuesAreNeverShown(t *testing.T) {
	t.Parallel()
	file, err := Parse(strings.NewReader("A=" + canary + "\nB = \"" + canary + "\nC = '" + canary))
	if err != nil {
		t.Fatal(err)
	}
	values := file.Values()
	if values["A"] != canary {
		t.Fatal("the canary is not in the values")
	}
	held := carelessStruct{File: file, Values: values, file: file, scrub: NewScrubber(values)}
	var out bytes.Buffer
	for _, v := range []any{file, &file, values, &values, held, &held, held.scrub, *held.scrub, []any{held}, map[string]any{"k": held}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%T"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("m", "k", v, slog.Group("g", "v", v))
		}
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Errorf("JSON of %T: %v", v, err)
		}
		if err := yaml.NewEncoder(&out).Encode(v); err != nil {
			t.Errorf("YAML of %T: %v", v, err)
		}
	}
	if fmt.Errorf("wrapped %v: %w", file, fmt.Errorf("%v", values)).Error() == "" {
		t.Error("no error text")
	}
	shown := out.String()
	if strings.Contains(shown, canary) || strings.Contains(shown, fmt.Sprintf("%x", canary)) {
		t.Errorf("a value was shown:\n%s", shown)
	}
	if !strings.Contains(shown, "1 values, not shown") {
		t.Error("nothing says that values were left out")
	}
}

func TestFingerprintIsShortAndStable(t *testing.T) {
	t.Parallel()
	// echo -n secret | sha256sum
	if got, want := Fingerprint("secret"), "2bb80d537b1d"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		fa, fb := Fingerprint(a), Fingerprint(b)
		if !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(fa) || (a == b) != (fa == fb) {
			t.Fatalf("%q: %s, %q: %s", a, fa, b, fb)
		}
	})
}

func TestCompareNamesWhatDiffersInOrder(t *testing.T) {
	t.Parallel()
	declared := map[string]string{"SAME": "1", "Z_OTHER": "new", "A_MISSING": "x", "EMPTY": "", "M_EMPTY": ""}
	actual := map[string]string{"SAME": "1", "Z_OTHER": "old", "EMPTY": "", "UNDECLARED": "y"}
	if got, want := Compare(declared, actual), []string{"A_MISSING", "M_EMPTY", "Z_OTHER"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Compare(nil, actual); len(got) != 0 {
		t.Errorf("nothing declared: %v differ", got)
	}
	if got := Compare(declared, nil); len(got) != len(declared) {
		t.Errorf("nothing held: only %v differ", got)
	}
}

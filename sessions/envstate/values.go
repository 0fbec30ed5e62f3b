package envstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
)

// Values maps names to values. It may be used as a map[string]string; but as long as it is a Values, printing, logging
// or marshaling it shows how many there are and nothing else. Package fmt does not ask the methods of an unexported field:
// a struct that keeps values in one keeps a [File].
type Values map[string]string

// String says how many values there are.
func (v Values) String() string { return fmt.Sprintf("%d values, not shown", len(v)) }

// GoString is [Values.String].
func (v Values) GoString() string { return v.String() }

// Format writes [Values.String] for every verb.
func (v Values) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(v.String())) }

// MarshalJSON is [Values.String] as a JSON string.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// MarshalText is [Values.String]; encoders of other formats ask for it.
func (v Values) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue is [Values.String].
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Fingerprint is the only form in which a value may be shown: the first 12 hexadecimal digits of its SHA-256.
func Fingerprint(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])[:12]
}

// Compare returns the declared names, in name order, that actual lacks or holds with another value.
func Compare(declared, actual map[string]string) []string {
	var differ []string
	for name, want := range declared {
		if got, held := actual[name]; !held || got != want {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed schema.json
var schemaJSON []byte

// Schema is the JSON Schema (draft 2020-12) of the configuration, for editors.
func Schema() []byte { return bytes.Clone(schemaJSON) }

// schema is the compiled schema together with its text, from which the messages are made.
type schema struct {
	compiled *jsonschema.Resolved
	root     map[string]any
}

// loadSchema compiles the embedded schema, once; it never changes after that.
var loadSchema = sync.OnceValues(func() (*schema, error) {
	var text jsonschema.Schema
	if err := json.Unmarshal(schemaJSON, &text); err != nil {
		return nil, fmt.Errorf("reading the embedded schema: %w", err)
	}
	compiled, err := text.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("compiling the embedded schema: %w", err)
	}
	s := &schema{compiled: compiled}
	return s, json.Unmarshal(schemaJSON, &s.root)
})

// validate records every place where d differs from the schema. Whether it does is the validator's word; it stops at the
// first place and does not tell it in a way that could be shown.
func (s *schema) validate(d *document) error {
	if s.compiled.Validate(d.root) == nil {
		return nil
	}
	before := len(d.problems)
	s.explain(d, d.root, s.root, "")
	if len(d.problems) == before {
		return fmt.Errorf("validating %s: it differs from what `the-loop config schema` prints", d.file) // no value is in it
	}
	return nil
}

func missingKeyAdvice(name string) string {
	if name == "version" {
		return "write version: 1 as the first line"
	}
	return "add it"
}

// unknownKeyMessage is the message for a name that the block at does not have.
func unknownKeyMessage(at map[string]any, name string) string {
	if message, ok := at["patternErrorMessage"].(string); ok {
		return message
	}
	properties, _ := at["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	for _, k := range known {
		if isSimilar(k, name) {
			return fmt.Sprintf("is not known — did you mean %s?", k)
		}
	}
	return "is not known — here there are " + strings.Join(known, ", ")
}

// isSimilar reports whether b could be a misspelt a: equal but for case, dashes and underscores, or one or two letters off.
func isSimilar(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "")
	a, b = strings.ToLower(plain.Replace(a)), strings.ToLower(plain.Replace(b))
	return a == b || len(b) < 40 && editDistance(a, b) <= min(2, len(a)/3)
}

// editDistance is the number of letters to insert, remove or replace between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// typeName calls a type of JSON by what an author of YAML sees.
func typeName(t string) string {
	names := map[string]string{
		"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number",
		"array": "a list", "object": "a block of keys", "null": "nothing",
	}
	return names[t]
}

// rangeMessage gives both ends, whichever was passed.
func rangeMessage(at map[string]any) string {
	return fmt.Sprintf("is out of range — use %s to %s", formatNumber(at["minimum"]), formatNumber(at["maximum"]))
}

func formatNumber(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func joinChoices(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed schema.json
var schemaJSON []byte

// Schema is the JSON Schema (draft 2020-12) of the configuration, for editors.
func Schema() []byte { return bytes.Clone(schemaJSON) }

const schemaURL = "https://the-loop.invalid/cli-config.schema.json"

// schema is the compiled schema together with its text, from which the messages are made.
type schema struct {
	compiled *jsonschema.Schema
	root     map[string]any
}

// loadSchema compiles the embedded schema, once; it never changes after that.
var loadSchema = sync.OnceValues(func() (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		return nil, fmt.Errorf("reading the embedded schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("adding the embedded schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compiling the embedded schema: %w", err)
	}
	s := &schema{compiled: compiled}
	return s, json.Unmarshal(schemaJSON, &s.root)
})

// validate records every place where d differs from the schema.
func (s *schema) validate(d *document) error {
	err := s.compiled.Validate(d.root)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return fmt.Errorf("validating %s: %w", d.file, err)
	}
	s.explain(d, invalid)
	return nil
}

// explain walks to the leaves, which are what is really wrong.
func (s *schema) explain(d *document, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		s.explain(d, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	key, at := d.keyOf(e.InstanceLocation), s.lookup(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			d.add(joinKey(key, name), "%s", unknownKey(at, name))
		}
	case *kind.Required:
		for _, name := range k.Missing {
			d.addAt(placeOf(d.places, key), joinKey(key, name), "is missing — %s", addKey(name))
		}
	default:
		d.add(key, "%s", s.message(e.ErrorKind, key, at))
	}
}

// lookup finds the part of the schema that a location names.
func (s *schema) lookup(location string) map[string]any {
	_, pointer, _ := strings.Cut(location, "#")
	if p, err := url.PathUnescape(pointer); err == nil {
		pointer = p
	}
	var v any = s.root
	for _, token := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if m, ok := v.(map[string]any); ok && token != "" {
			v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		}
	}
	m, _ := v.(map[string]any)
	return m
}

func addKey(name string) string {
	if name == "version" {
		return "write version: 1 as the first line"
	}
	return "add it"
}

// unknownKey is the message for a name that the block at does not have.
func unknownKey(at map[string]any, name string) string {
	if message, ok := at["patternErrorMessage"].(string); ok {
		return message
	}
	properties, _ := at["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	for _, k := range known {
		if similar(k, name) {
			return fmt.Sprintf("is not known — did you mean %s?", k)
		}
	}
	return "is not known — here there are " + strings.Join(known, ", ")
}

// similar reports whether b could be a misspelt a: equal but for case, dashes and underscores, or one or two letters off.
func similar(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "")
	a, b = strings.ToLower(plain.Replace(a)), strings.ToLower(plain.Replace(b))
	return a == b || len(b) < 40 && distance(a, b) <= min(2, len(a)/3)
}

// distance is the number of letters to insert, remove or replace between a and b.
func distance(a, b string) int {
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

// message says what a value must be.
func (s *schema) message(k jsonschema.ErrorKind, key string, at map[string]any) string {
	switch k := k.(type) {
	case *kind.Type:
		return typeMessage(k)
	case *kind.Pattern:
		return patternMessage(k, key, at)
	case *kind.Enum:
		return fmt.Sprintf("must be %s — choose one", list(k.Want))
	case *kind.Const:
		return fmt.Sprintf("must be %v — this the-loop knows no other", k.Want)
	case *kind.Minimum, *kind.Maximum:
		return rangeMessage(at)
	case *kind.MinLength:
		return "is empty — remove the line or give it a value"
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters — at most %d are allowed", k.Got, k.Want)
	default:
		return fmt.Sprintf("does not validate (%s) — see `the-loop config schema`", strings.Join(k.KeywordPath(), "/"))
	}
}

func typeMessage(k *kind.Type) string {
	want := k.Want[0]
	if k.Got == "null" {
		return fmt.Sprintf("has no value — remove the line, or give it %s", typeName(want))
	}
	advice := map[string]string{
		"string":  "put it in quotes",
		"boolean": "write true or false, without quotes",
		"integer": "write digits, without quotes",
		"number":  "write digits, without quotes",
		"array":   "write each entry on a line of its own that begins with a dash, or [] for none",
		"object":  "write its keys below it, indented",
	}
	if want == "string" && (k.Got == "array" || k.Got == "object") {
		return "must be text — write a single value"
	}
	return fmt.Sprintf("must be %s, not %s — %s", typeName(want), typeName(k.Got), advice[want])
}

// typeName calls a type of JSON by what an author of YAML sees.
func typeName(t string) string {
	names := map[string]string{
		"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number",
		"array": "a list", "object": "a block of keys", "null": "nothing",
	}
	return names[t]
}

// patternMessage quotes the value, except where it could be a secret that was put in the place of a variable's name.
func patternMessage(k *kind.Pattern, key string, at map[string]any) string {
	message, ok := at["patternErrorMessage"].(string)
	if !ok {
		message = "does not match " + k.Want + " — see `the-loop config schema`"
	}
	if strings.HasSuffix(key, "Env") {
		return message
	}
	return shown(k.Got) + " " + message
}

// rangeMessage gives both ends, whichever was passed.
func rangeMessage(at map[string]any) string {
	return fmt.Sprintf("is out of range — use %s to %s", numeral(at["minimum"]), numeral(at["maximum"]))
}

func numeral(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

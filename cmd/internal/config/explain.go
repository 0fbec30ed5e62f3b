package config

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// explain records every place where a value differs from what the part at of the schema says. It knows the keywords that the
// schema uses, and no others; a test holds them against each other.
func (s *schema) explain(d *document, value any, at map[string]any, key string) {
	at = s.resolveRef(at)
	if want, typed := at["type"].(string); typed && !isOfType(value, want) {
		d.addProblem(key, "%s", typeMessage(want, jsonTypeOf(value)))
		return
	}
	if message := valueProblem(value, at, key); message != "" {
		d.addProblem(key, "%s", message)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		s.explainBlock(d, value, at, key)
	case []any:
		items, _ := at["items"].(map[string]any)
		for i, entry := range value {
			s.explain(d, entry, items, fmt.Sprintf("%s[%d]", key, i))
		}
	}
}

// resolveRef follows a reference within the schema.
func (s *schema) resolveRef(at map[string]any) map[string]any {
	for {
		ref, is := at["$ref"].(string)
		if !is {
			return at
		}
		v := s.root
		for token := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			v, _ = v[token].(map[string]any)
		}
		at = v
	}
}

func (s *schema) explainBlock(d *document, block, at map[string]any, key string) {
	required, _ := at["required"].([]any)
	for _, name := range required {
		if name, is := name.(string); is && block[name] == nil {
			if _, there := block[name]; !there {
				d.addProblemAt(findLocation(d.locations, key), joinKey(key, name), "is missing — %s", missingKeyAdvice(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(block)) {
		if part, known := subschemaFor(at, name); known {
			s.explain(d, block[name], part, joinKey(key, name))
		} else if at["additionalProperties"] == false {
			d.addProblem(joinKey(key, name), "%s", unknownKeyMessage(at, name))
		}
	}
}

// subschemaFor is what the schema says of the key of that name in a block.
func subschemaFor(at map[string]any, name string) (map[string]any, bool) {
	properties, _ := at["properties"].(map[string]any)
	if part, known := properties[name].(map[string]any); known {
		return part, true
	}
	patterns, _ := at["patternProperties"].(map[string]any)
	for pattern, part := range patterns {
		if part, is := part.(map[string]any); is && matchesPattern(pattern, name) {
			return part, true
		}
	}
	return nil, false
}

func matchesPattern(pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(text)
}

// valueProblem says what a value of the right type must be; empty: it is that.
func valueProblem(value any, at map[string]any, key string) string {
	if want, is := at["enum"].([]any); is && !slices.Contains(want, value) {
		return fmt.Sprintf("must be %s — choose one", joinChoices(want))
	}
	if want, is := at["const"]; is && normalizeNumber(value) != normalizeNumber(want) {
		return fmt.Sprintf("must be %v — this version of the-loop supports no other", want)
	}
	if text, is := value.(string); is {
		return textProblem(text, at, key)
	}
	low, bounded := at["minimum"].(float64)
	high, _ := at["maximum"].(float64)
	if n, is := normalizeNumber(value).(float64); is && bounded && (n < low || n > high) {
		return rangeMessage(at)
	}
	return ""
}

func textProblem(text string, at map[string]any, key string) string {
	length := utf8.RuneCountInString(text)
	if least, is := at["minLength"].(float64); is && length < int(least) {
		return "is empty — remove the line or give it a value"
	}
	if most, is := at["maxLength"].(float64); is && length > int(most) {
		return fmt.Sprintf("has %d characters — at most %d are allowed", length, int(most))
	}
	if pattern, is := at["pattern"].(string); is && !matchesPattern(pattern, text) {
		return patternMessage(text, pattern, key, at)
	}
	return ""
}

// patternMessage quotes the value, except where it could be a secret that was put in the place of a variable's name.
func patternMessage(text, pattern, key string, at map[string]any) string {
	message, ok := at["patternErrorMessage"].(string)
	if !ok {
		message = "does not match " + pattern + " — see `the-loop config schema`"
	}
	if strings.HasSuffix(key, "Env") {
		return message
	}
	return quoteValue(text) + " " + message
}

// normalizeNumber brings what a document has and what the schema has to one type; other values stay as they are.
func normalizeNumber(v any) any {
	if n, is := v.(int64); is {
		return float64(n)
	}
	return v
}

// jsonTypeOf is the type of a value as JSON Schema calls it.
func jsonTypeOf(v any) string {
	switch v := normalizeNumber(v).(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
	}
	return "number"
}

func isOfType(v any, want string) bool {
	got := jsonTypeOf(v)
	return got == want || want == "number" && got == "integer"
}

func typeMessage(want, got string) string {
	if got == "null" {
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
	if got == "integer" {
		got = "number"
	}
	if want == "string" && (got == "array" || got == "object") {
		return "must be text — write a single value"
	}
	return fmt.Sprintf("must be %s, not %s — %s", typeName(want), typeName(got), advice[want])
}

package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// walkSchema visits each subschema under its dotted key, references resolved. The key of a list's entries ends in [].
func walkSchema(s *schema, at map[string]any, key string, visit func(key string, at map[string]any)) {
	merged := maps.Clone(at)
	if ref, ok := at["$ref"].(string); ok {
		target := maps.Clone(s.resolveRef(map[string]any{"$ref": ref}))
		maps.Copy(target, at)
		merged = target
	}
	visit(key, merged)
	children := map[string]any{}
	for _, group := range []string{"properties", "patternProperties"} {
		if g, ok := merged[group].(map[string]any); ok {
			for name, child := range g {
				if group == "patternProperties" {
					name = "*"
				}
				children[strings.TrimPrefix(key+"."+name, ".")] = child
			}
		}
	}
	if items, ok := merged["items"]; ok {
		children[key+"[]"] = items
	}
	for childKey, child := range children {
		walkSchema(s, child.(map[string]any), childKey, visit)
	}
}

func testSchema(t *testing.T) *schema {
	t.Helper()
	s, err := loadSchema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// explainedKeywords are the keywords that [schema.explain] knows; the others say nothing of what is valid.
var explainedKeywords = []string{"type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "required", "properties", "patternProperties",
	"additionalProperties", "items", "$ref", "$defs", "$schema", "$id", "title", "description", "default", "patternErrorMessage"}

func TestEveryKeywordOfTheSchemaIsExplained(t *testing.T) {
	t.Parallel()
	s := testSchema(t)
	walkSchema(s, s.root, "", func(key string, at map[string]any) {
		for keyword := range at {
			if !slices.Contains(explainedKeywords, keyword) {
				t.Errorf("%s: %s would be refused without saying why", key, keyword)
			}
		}
	})
}

func TestEveryKeyOfTheSchemaIsDescribedAndClosed(t *testing.T) {
	t.Parallel()
	s := testSchema(t)
	walkSchema(s, s.root, "", func(key string, at map[string]any) {
		if text, _ := at["description"].(string); text == "" {
			t.Errorf("%s has no description", key)
		}
		if at["type"] == "object" && at["additionalProperties"] != false {
			t.Errorf("%s takes any key", key)
		}
		if at["type"] == nil && at["enum"] == nil {
			t.Errorf("%s takes any type", key)
		}
		if at["pattern"] != nil {
			if message, _ := at["patternErrorMessage"].(string); !strings.Contains(message, " — ") {
				t.Errorf("%s does not say what to do", key)
			}
		}
	})
}

// flatten flattens a value to its dotted keys, down to anything that is not a block of fixed keys.
func flatten(t *testing.T, v any, prefix string) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	flat := map[string]any{}
	var descend func(key string, v any)
	descend = func(key string, v any) {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for k, child := range m {
				descend(strings.TrimPrefix(key+"."+k, "."), child)
			}
			return
		}
		flat[key] = v
	}
	descend(prefix, tree)
	return flat
}

func TestDefaultsOfTheSchemaAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	want := flatten(t, defaults(), "")
	maps.Copy(want, flatten(t, defaultHarness(), "harnesses.*"))
	maps.Copy(want, flatten(t, defaultSession(), "standingSessions.sessions[]"))
	for _, required := range []string{"version", "harnesses.*.binary", "standingSessions.sessions[].name"} {
		delete(want, required)
	}
	got := map[string]any{}
	s := testSchema(t)
	walkSchema(s, s.root, "", func(key string, at map[string]any) {
		if d, ok := at["default"]; ok {
			got[key] = d
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-program +schema):\n%s", diff)
	}
}

func TestSchemaReturnsACopy(t *testing.T) {
	t.Parallel()
	Schema()[0] = 'x'
	if !bytes.Equal(Schema(), schemaJSON) || !json.Valid(Schema()) {
		t.Error("the schema was changed by its reader")
	}
}

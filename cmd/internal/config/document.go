package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	maxSize   = 1 << 20 // bytes of a file
	maxValues = 50_000  // of a document with its aliases expanded: a few lines of YAML can stand for billions
	maxDepth  = 40
)

// place is where something stands in the file, from 1.
type place struct{ line, column int }

// document is a YAML file as plain values, with the place of each of them.
type document struct {
	file     string
	root     any              // as encoding/json would give it, but with int64 for whole numbers
	places   map[string]place // by dotted key; of a mapping's entry, the place of its key
	problems []Problem
	values   int
}

// errTooMuch ends the conversion of a document that passes a limit.
var errTooMuch = errors.New("too much")

// parseDocument reads one YAML document. The error is an [*Error].
func parseDocument(file string, data []byte) (*document, error) {
	d := &document{file: file, places: map[string]place{"": {1, 1}}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkBytes(file, data); err != nil {
		return nil, err
	}
	node, err := d.decode(data)
	if err != nil {
		return nil, err
	}
	root, err := d.value(node, "", 0)
	switch {
	case err != nil: // the problem is recorded
	case root == nil:
		d.add("", "is empty — write version: 1 as its first line, or let `the-loop config init` write a first file")
	default:
		if _, ok := root.(map[string]any); !ok {
			d.add("", "is not a block of keys — begin with version: 1")
		}
	}
	d.root = root
	return d, refusal(d.problems)
}

func checkBytes(file string, data []byte) error {
	if len(data) > maxSize {
		return fileProblem(file, "is larger than 1 MiB — this cannot be a configuration; check the path")
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return &Error{Problems: []Problem{{File: file, Line: i + 1, Column: 1, Message: "is not UTF-8 text — save the file as UTF-8"}}}
		}
	}
	return nil
}

// decode reads the one document of the file; nil when there is none.
func (d *document) decode(data []byte) (*yaml.Node, error) {
	var doc, next yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, d.syntax(err)
	}
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, d.syntax(err)
	default:
		return nil, &Error{Problems: []Problem{{File: d.file, Line: next.Line, Column: next.Column,
			Message: "begins a second document — keep one, without a line of dashes in between"}}}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}

var yamlErrorPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`) })

// syntax turns the parser's error into one of ours. The parser omits the number of the first line.
func (d *document) syntax(err error) error {
	line, what := 1, err.Error()
	if m := yamlErrorPattern().FindStringSubmatch(what); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
		what = m[2]
	}
	return &Error{Problems: []Problem{{File: d.file, Line: line, Column: 1,
		Message: redact(fmt.Sprintf("is not valid YAML (%s) — check indentation, quotes and tabs here and in the line above", what))}}}
}

// value converts a node. The error is only ever errTooMuch; everything else is recorded and converted as far as it goes.
func (d *document) value(n *yaml.Node, key string, depth int) (any, error) {
	if n == nil {
		return nil, nil
	}
	if d.values++; d.values > maxValues || depth > maxDepth {
		d.addAt(place{n.Line, n.Column}, key, "holds too many values, or is nested too deeply — check the aliases (*name)")
		return nil, errTooMuch
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.value(n.Alias, key, depth+1)
	case yaml.MappingNode:
		return d.mapping(n, key, depth)
	case yaml.SequenceNode:
		return d.sequence(n, key, depth)
	default:
		return d.scalar(n, key), nil
	}
}

func (d *document) mapping(n *yaml.Node, key string, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, at := n.Content[i], place{n.Content[i].Line, n.Content[i].Column}
		if !d.usable(name, key, at) {
			continue
		}
		child := joinKey(key, name.Value)
		if _, twice := m[name.Value]; twice {
			d.addAt(at, child, "is written twice, first at %s:%d — keep one of them", d.file, d.places[child].line)
			continue
		}
		d.places[child] = at
		v, err := d.value(n.Content[i+1], child, depth+1)
		if err != nil {
			return nil, err
		}
		m[name.Value] = v
	}
	return m, nil
}

// usable reports whether a node can be the name of a key.
func (d *document) usable(name *yaml.Node, parent string, at place) bool {
	switch {
	case name.Kind == yaml.ScalarNode && name.ShortTag() == "!!merge":
		d.addAt(at, parent, "uses a merge key (<<) — write the keys out")
	case name.Kind != yaml.ScalarNode || name.ShortTag() != "!!str":
		d.addAt(at, parent, "has a key that is not a plain word — put it in quotes if it is meant")
	case slackTokenPattern().MatchString(name.Value):
		d.addAt(at, parent, tokenInFile)
	default:
		return true
	}
	return false
}

func (d *document) sequence(n *yaml.Node, key string, depth int) (any, error) {
	list := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		child := fmt.Sprintf("%s[%d]", key, i)
		d.places[child] = place{item.Line, item.Column}
		v, err := d.value(item, child, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

const tokenInFile = "holds a Slack token — take it out, put it into an environment variable and name that variable in " +
	"channels.slack.botTokenEnv or appTokenEnv; if others could read this file, have Slack issue a new token"

func (d *document) scalar(n *yaml.Node, key string) any {
	at := place{n.Line, n.Column}
	var v any
	err := n.Decode(&v)
	switch tag := n.ShortTag(); {
	case tag == "!!str" || tag == "!!timestamp":
		return d.text(n.Value, key, at)
	case err != nil || tag != "!!int" && tag != "!!float" && tag != "!!bool" && tag != "!!null":
		d.addAt(at, key, "has a value that cannot be read as its kind — write plain text, a number, true or false")
		return nil
	}
	return d.number(v, key, at)
}

func (d *document) text(s, key string, at place) any {
	switch {
	case slackTokenPattern().MatchString(s) && !strings.HasSuffix(key, "Env"): // those have a message of their own
		d.addAt(at, key, tokenInFile)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		d.addAt(at, key, "contains a control character — take it out")
	}
	return s
}

// number brings what YAML calls a number to one of the types that the validator and encoding/json agree on.
func (d *document) number(v any, key string, at place) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case uint64:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d.addAt(at, key, "is not a number that can be counted with — write an ordinary one")
			return nil
		}
	}
	return v
}

func (d *document) add(key, format string, args ...any) {
	d.addAt(placeOf(d.places, key), key, format, args...)
}

func (d *document) addAt(at place, key, format string, args ...any) {
	d.problems = append(d.problems, newProblem(d.file, at, key, fmt.Sprintf(format, args...)))
}

func newProblem(file string, at place, key, message string) Problem {
	return Problem{File: file, Line: at.line, Column: at.column, Key: redact(key), Message: redact(message)}
}

// placeOf is the place of a key, or of the nearest one above it that is written.
func placeOf(places map[string]place, key string) place {
	for {
		if at, ok := places[key]; ok || key == "" {
			return at
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
}

var plainKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// joinKey appends a name to a dotted key; a name that is no plain word is quoted, so that it cannot pretend to be another.
func joinKey(parent, name string) string {
	if !plainKey().MatchString(name) {
		name = shown(name)
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}

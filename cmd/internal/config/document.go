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

// location is where something stands in the file, from 1.
type location struct{ line, column int }

// document is a YAML file as plain values, with the place of each of them.
type document struct {
	file       string
	root       any                 // as encoding/json would give it, but with int64 for whole numbers
	locations  map[string]location // by dotted key; of a mapping's entry, the place of its key
	problems   []Problem
	valueCount int
}

// errDocumentTooLarge ends the conversion of a document that passes a limit.
var errDocumentTooLarge = errors.New("too much")

// parseDocument reads one YAML document. The error is an [*Error].
func parseDocument(file string, data []byte) (*document, error) {
	d := &document{file: file, locations: map[string]location{"": {1, 1}}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkBytes(file, data); err != nil {
		return nil, err
	}
	node, err := d.decodeNode(data)
	if err != nil {
		return nil, err
	}
	root, err := d.convertNode(node, "", 0)
	switch {
	case err != nil: // the problem is recorded
	case root == nil:
		d.addProblem("", "is empty — write version: 1 as its first line, or let `the-loop config init` write a first file")
	default:
		if _, ok := root.(map[string]any); !ok {
			d.addProblem("", "is not a block of keys — begin with version: 1")
		}
	}
	d.root = root
	return d, joinProblems(d.problems)
}

func checkBytes(file string, data []byte) error {
	if len(data) > maxSize {
		return newFileError(file, "is larger than 1 MiB — this cannot be a configuration; check the path")
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return &Error{Problems: []Problem{{File: file, Line: i + 1, Column: 1, Message: "is not UTF-8 text — save the file as UTF-8"}}}
		}
	}
	return nil
}

// decodeNode reads the one document of the file; nil when there is none.
func (d *document) decodeNode(data []byte) (*yaml.Node, error) {
	var doc, next yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, d.syntaxError(err)
	}
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, d.syntaxError(err)
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

// syntaxError turns the parser's error into one of ours. The parser omits the number of the first line.
func (d *document) syntaxError(err error) error {
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

// convertNode converts a node. The error is only ever errDocumentTooLarge; everything else is recorded and converted as far as it goes.
func (d *document) convertNode(n *yaml.Node, key string, depth int) (any, error) {
	if n == nil {
		return nil, nil
	}
	if d.valueCount++; d.valueCount > maxValues || depth > maxDepth {
		d.addProblemAt(location{n.Line, n.Column}, key, "holds too many values, or is nested too deeply — check the aliases (*name)")
		return nil, errDocumentTooLarge
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.convertNode(n.Alias, key, depth+1)
	case yaml.MappingNode:
		return d.convertMapping(n, key, depth)
	case yaml.SequenceNode:
		return d.convertSequence(n, key, depth)
	default:
		return d.convertScalar(n, key), nil
	}
}

func (d *document) convertMapping(n *yaml.Node, key string, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, at := n.Content[i], location{n.Content[i].Line, n.Content[i].Column}
		if !d.checkKey(name, key, at) {
			continue
		}
		child := joinKey(key, name.Value)
		if _, twice := m[name.Value]; twice {
			d.addProblemAt(at, child, "is written twice, first at %s:%d — keep one of them", d.file, d.locations[child].line)
			continue
		}
		d.locations[child] = at
		v, err := d.convertNode(n.Content[i+1], child, depth+1)
		if err != nil {
			return nil, err
		}
		m[name.Value] = v
	}
	return m, nil
}

// checkKey reports whether a node can be the name of a key.
func (d *document) checkKey(name *yaml.Node, parent string, at location) bool {
	switch {
	case name.Kind == yaml.ScalarNode && name.ShortTag() == "!!merge":
		d.addProblemAt(at, parent, "uses a merge key (<<) — write the keys out")
	case name.Kind != yaml.ScalarNode || name.ShortTag() != "!!str":
		d.addProblemAt(at, parent, "has a key that is not plain text — put it in quotes")
	case slackTokenPattern().MatchString(name.Value):
		d.addProblemAt(at, parent, tokenInFileMessage)
	default:
		return true
	}
	return false
}

func (d *document) convertSequence(n *yaml.Node, key string, depth int) (any, error) {
	list := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		child := fmt.Sprintf("%s[%d]", key, i)
		d.locations[child] = location{item.Line, item.Column}
		v, err := d.convertNode(item, child, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

const tokenInFileMessage = "holds a Slack token — move it to an environment variable and name that variable in " +
	"channels.slack.botTokenEnv or appTokenEnv; if others could read this file, have Slack issue a new token"

func (d *document) convertScalar(n *yaml.Node, key string) any {
	at := location{n.Line, n.Column}
	var v any
	err := n.Decode(&v)
	switch tag := n.ShortTag(); {
	case tag == "!!str" || tag == "!!timestamp":
		return d.convertText(n.Value, key, at)
	case err != nil || tag != "!!int" && tag != "!!float" && tag != "!!bool" && tag != "!!null":
		d.addProblemAt(at, key, "has a value that cannot be read — write plain text, a number, true or false")
		return nil
	}
	return d.convertNumber(v, key, at)
}

func (d *document) convertText(s, key string, at location) any {
	switch {
	case slackTokenPattern().MatchString(s) && !strings.HasSuffix(key, "Env"): // those have a message of their own
		d.addProblemAt(at, key, tokenInFileMessage)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		d.addProblemAt(at, key, "contains a control character — take it out")
	}
	return s
}

// convertNumber brings what YAML calls a number to one of the types that the validator and encoding/json agree on.
func (d *document) convertNumber(v any, key string, at location) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case uint64:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d.addProblemAt(at, key, "is not a finite number — write an ordinary one")
			return nil
		}
	}
	return v
}

func (d *document) addProblem(key, format string, args ...any) {
	d.addProblemAt(findLocation(d.locations, key), key, format, args...)
}

func (d *document) addProblemAt(at location, key, format string, args ...any) {
	d.problems = append(d.problems, newProblem(d.file, at, key, fmt.Sprintf(format, args...)))
}

func newProblem(file string, at location, key, message string) Problem {
	return Problem{File: file, Line: at.line, Column: at.column, Key: redact(key), Message: redact(message)}
}

// findLocation is the place of a key, or of the nearest one above it that is written.
func findLocation(places map[string]location, key string) location {
	for {
		if at, ok := places[key]; ok || key == "" {
			return at
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
}

var plainKeyPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// joinKey appends a name to a dotted key; a name that is no plain word is quoted, so that it cannot pretend to be another.
func joinKey(parent, name string) string {
	if !plainKeyPattern().MatchString(name) {
		name = quoteValue(name)
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}

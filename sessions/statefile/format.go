package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Format is a kind of state file, whose content is a T. A T is encoded as a JSON object; it may have the version as a field
// "version", which is always set to Version in the file.
type Format[T any] struct {
	Version    int               // that is written; at least 1
	Migrations map[int]Migration // by the version that they start from; a version that none starts from is refused
}

// Migration changes the decoded content of a file from one version to the next. Numbers are [json.Number]. It need not change
// the field "version".
type Migration func(doc map[string]any) error

// NoChange is the migration between two versions of the same shape.
func NoChange(map[string]any) error { return nil }

// UnreadableError names a file that is there and cannot be used. It is left as it is.
type UnreadableError struct {
	Path string
	Err  error
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("cannot read %s: %v", e.Path, e.Err) }

func (e *UnreadableError) Unwrap() error { return e.Err }

// unreadable drops the path from an error of package os: the UnreadableError names it already.
func unreadable(path string, err error) error {
	var withPath *fs.PathError
	if errors.As(err, &withPath) {
		err = withPath.Err
	}
	return &UnreadableError{Path: path, Err: err}
}

// Load reads a file. The error is [fs.ErrNotExist] when there is none, else an [*UnreadableError].
func (f Format[T]) Load(path string) (T, error) {
	content, _, err := f.load(path)
	return content, err
}

// load returns the file's document as well, in the present version.
func (f Format[T]) load(path string) (content T, doc []byte, err error) {
	data, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return content, nil, err
	}
	if err == nil {
		content, doc, err = f.decode(data)
	}
	if err != nil {
		var none T
		return none, nil, unreadable(path, err)
	}
	return content, doc, nil
}

// Save writes a file, with the fields of the present one that T does not have. It refuses with an [*UnreadableError] to
// overwrite a file that it cannot read. The caller makes sure that nobody else writes the file meanwhile.
//
// Unknown fields of an object go with the object, and those of an element of a list are kept as long as its other fields are
// as they were.
func (f Format[T]) Save(path string, content T) error {
	text, err := f.encode(content)
	if err != nil {
		return err
	}
	present, doc, err := f.load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return write(path, text)
	case err != nil:
		return err
	}
	known, err := f.encode(present)
	if err != nil {
		return err
	}
	return write(path, keepUnknown(doc, known, text))
}

// Replace writes a file whatever stands there now: for content that says nothing of what was there before.
func (f Format[T]) Replace(path string, content T) error {
	text, err := f.encode(content)
	if err != nil {
		return err
	}
	return write(path, text)
}

// encode is the content's document, on one line.
func (f Format[T]) encode(content T) (json.RawMessage, error) {
	text, err := marshal(content)
	if err != nil {
		return nil, err
	}
	all, ok := members(text)
	if !ok {
		return nil, fmt.Errorf("a %T is no JSON object", content)
	}
	version := member{versionField, json.RawMessage(fmt.Sprint(f.Version))}
	if has := all.find(versionField); has != nil {
		*has = version
	} else {
		all = append(object{version}, all...)
	}
	return all.marshal(), nil
}

// decode returns the content and the document of the present version. Of a file of a newer version nothing but the version
// means what we think.
func (f Format[T]) decode(data []byte) (content T, doc []byte, err error) {
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return content, nil, fmt.Errorf("not a state file: %w", err)
	}
	doc, err = f.migrate(data, head.Version)
	if err != nil {
		return content, nil, err
	}
	if err := json.Unmarshal(doc, &content); err != nil {
		return content, nil, fmt.Errorf("not a state file: %w", err)
	}
	return content, doc, nil
}

// migrate returns the document of the present version.
func (f Format[T]) migrate(data []byte, version int) ([]byte, error) {
	switch {
	case version == f.Version:
		return data, nil
	case version > f.Version:
		return nil, fmt.Errorf("it has version %d, from a newer the-loop; this one knows %d", version, f.Version)
	}
	doc, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	for v := version; v < f.Version; v++ {
		next, known := f.Migrations[v]
		if !known {
			return nil, fmt.Errorf("it has version %d, which this the-loop does not know", version)
		}
		if err := next(doc); err != nil {
			return nil, fmt.Errorf("migrate it from version %d: %w", v, err)
		}
	}
	doc[versionField] = f.Version
	return marshal(doc)
}

package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// ReadLines calls see with each whole line from an offset on and returns the offset of the next one. A file that is not there,
// or that is shorter than the offset, has no lines.
func ReadLines(path string, from int64, see func(line []byte)) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return from, nil
	}
	if err != nil {
		return from, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return from, err
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return from, nil
		}
		from, data = from+int64(len(line))+1, rest
		if len(bytes.TrimSpace(line)) > 0 {
			see(line)
		}
	}
}

// End returns the offset after the last whole line of a growing file, where the next one begins. It reads only the end of
// the file; one that is not there ends at 0.
func End(path string) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const step = 64 << 10
	buf := make([]byte, step)
	for end := info.Size(); end > 0; {
		start := max(0, end-step)
		part := buf[:end-start]
		if _, err := f.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// DecodeFirstLine decodes the first line of a file.
func DecodeFirstLine(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return json.NewDecoder(f).Decode(v)
}

package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Claude Code writes into the transcript what enters its queue and what leaves it (2.1.197). A text that is submitted just when the
// turn ends overtakes those in the queue, and also comes back into the box.
const (
	queueTail    = 1 << 20                // bytes of the transcript's end that are read
	dequeueDelay = 500 * time.Millisecond // from what leaves the queue to the turn that it begins
	queueExpiry  = 5 * time.Second        // after a turn at whose end nothing left the queue, the queue counts as empty
)

// isInputQueued reports whether a text that was queued since then waits for the agent.
func isInputQueued(path string, since, now time.Time) (bool, error) {
	tail, err := readFileTail(path, queueTail)
	if err != nil {
		return false, fmt.Errorf("read the transcript: %w", err)
	}
	waiting, left, ended := 0, time.Time{}, time.Time{}
	for line := range bytes.Lines(tail) {
		var l struct {
			Type      string    `json:"type"`
			Subtype   string    `json:"subtype"`
			Operation string    `json:"operation"`
			Timestamp time.Time `json:"timestamp"`
		}
		if !bytes.Contains(line, []byte(`"queue-operation"`)) && !bytes.Contains(line, []byte(`"turn_duration"`)) ||
			json.Unmarshal(line, &l) != nil || l.Timestamp.Before(since) {
			continue
		}
		switch {
		case l.Type == "system" && l.Subtype == "turn_duration":
			ended = l.Timestamp
		case l.Type != "queue-operation":
		case l.Operation == "enqueue":
			waiting, ended = waiting+1, time.Time{}
		default:
			waiting, left, ended = max(0, waiting-1), l.Timestamp, time.Time{} // every other operation removes one text
		}
	}
	if !ended.IsZero() && now.Sub(ended) > queueExpiry {
		waiting = 0
	}
	return waiting > 0 || now.Sub(left) < dequeueDelay, nil
}

// readFileTail returns the last whole lines of a file, at most so many bytes; none of a file that is not there.
func readFileTail(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil || from == 0 {
		return data, err
	}
	_, data, _ = bytes.Cut(data, []byte{'\n'})
	return data, nil
}

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

// Claude Code writes into the transcript what goes into its queue and what leaves it (2.1.197). A text that is submitted while
// others wait there, and in the very moment when the turn ends, goes before them, and comes back into the box as well.
const (
	queueTail    = 1 << 20                // bytes of the transcript's end that are looked at
	dequeueDelay = 500 * time.Millisecond // from what leaves the queue to the turn that it begins
	queueExpiry  = 5 * time.Second        // after the end of a turn that nothing leaves the queue at, nothing is in it, whatever was told
)

// isInputQueued reports whether a text that was queued since then has not reached the agent yet.
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
			waiting, left, ended = max(0, waiting-1), l.Timestamp, time.Time{} // each other one takes one text out
		}
	}
	if !ended.IsZero() && now.Sub(ended) > queueExpiry {
		waiting = 0
	}
	return waiting > 0 || now.Sub(left) < dequeueDelay, nil
}

// readFileTail is the end of a file, from the beginning of a line on; nothing of one that is not there.
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

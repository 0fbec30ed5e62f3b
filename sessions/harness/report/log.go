package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A session's reports are a log of a bounded size: the file that is written, and those that were full before it. Offsets in
// the log go on from file to file. A file that follows another begins with a head: where it stands in the log, and what all
// reports before it say, so that nothing needs them (see [Facts]).
const (
	// maxFile is the size at which a file counts as full. A single report may be larger.
	maxFile = 1 << 20
	// maxFullFiles is how many full files stay, for readers that are behind.
	maxFullFiles = 3
	// headLine is the length of a head's first line.
	headLine = 128
	// lockTimeout is how long a writer waits for others, one of which may be syncing a new file. After it the line is appended
	// without the lock; it is lost if the file is rotated just then.
	lockTimeout = 5 * time.Second
	// maxRetries is how many files in a row may be replaced under a writer.
	maxRetries = 100
)

// Events of a head.
const (
	eventContinued = "the-loop:continued"
	eventFacts     = "the-loop:facts"
)

// header is the first line of a head, which is padded to its length.
type header struct {
	Event string `json:"event"`
	Base  int64  `json:"base"` // offset in the log of what follows the head
	Head  int64  `json:"head"` // length of the head
}

// logFile is one file of a log.
type logFile struct {
	*os.File
	info fs.FileInfo
	base int64 // offset in the log of what follows the head
	head int64 // length of the head; 0: it has none
}

// end returns the offset in the log after the file.
func (f *logFile) end() int64 { return f.base + f.info.Size() - f.head }

// fileName returns the name of the nth full file; 0 is the one that is written.
func fileName(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

func openFile(path string, flags int) (*logFile, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	file := &logFile{File: f}
	if err := file.readHeader(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file, nil
}

// readHeader reads how large the file is and where it stands.
func (f *logFile) readHeader() (err error) {
	if f.info, err = f.Stat(); err != nil {
		return err
	}
	var line [headLine]byte
	if n, err := f.ReadAt(line[:], 0); n < len(line) {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	var head header
	if line[headLine-1] == '\n' && json.Unmarshal(line[:], &head) == nil && head.Event == eventContinued &&
		head.Base >= 0 && head.Head >= headLine && head.Head <= f.info.Size() {
		f.base, f.head = head.Base, head.Head
	}
	return nil
}

// facts returns the facts in the head, those of all reports before the file.
func (f *logFile) facts() Facts {
	var line struct {
		Event   string `json:"event"`
		Payload Facts  `json:"payload"`
	}
	data := make([]byte, max(0, f.head-headLine))
	if _, err := f.ReadAt(data, headLine); err != nil || json.Unmarshal(data, &line) != nil || line.Event != eventFacts {
		return Facts{}
	}
	return line.Payload
}

// eachLine calls see with each whole line from an offset of the log on, and returns where the next one begins. until bounds
// them: where the next file begins, or -1.
func (f *logFile) eachLine(from, until int64, see func(line []byte)) (int64, error) {
	from = max(from, f.base)
	end := f.end()
	if until >= 0 {
		end = min(end, until)
	}
	if from >= end {
		return max(from, until), nil
	}
	data := make([]byte, end-from)
	if n, err := f.ReadAt(data, f.head+from-f.base); err != nil && !errors.Is(err, io.EOF) {
		return from, err
	} else {
		data = data[:n]
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return max(from, until), nil // of a full file nothing more comes
		}
		from, data = from+int64(len(line))+1, rest
		if len(bytes.TrimSpace(line)) > 0 {
			see(line)
		}
	}
}

// readLog calls see with each whole line of a log from an offset on, and returns where the next one will begin. Where the
// oldest file that is kept begins after the offset, it goes on there. A log that is not there has no lines; of one that is
// shorter than the offset nothing counts.
func readLog(path string, from int64, see func(line []byte)) (int64, error) {
	files, err := openLog(path, from)
	if err != nil {
		return from, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for i, f := range files {
		until := int64(-1)
		if i+1 < len(files) {
			until = files[i+1].base
		}
		if from, err = f.eachLine(from, until, see); err != nil {
			return from, err
		}
	}
	return from, nil
}

// openLog opens the files of a log from the one with the offset on, the oldest first. It goes from the newest to the oldest: one
// that becomes full meanwhile is met twice, never missed.
func openLog(path string, from int64) (files []*logFile, err error) {
	for n := range maxFullFiles + 1 {
		f, err := openFile(fileName(path, n), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		}
		if len(files) > 0 && f.base >= files[len(files)-1].base { // met already, or of another log
			_ = f.Close()
			continue
		}
		if files = append(files, f); f.base <= from {
			break
		}
	}
	slices.Reverse(files)
	return files, nil
}

// appendLine adds one line with one write, so that several processes may do it at once.
func appendLine(path string, line []byte) error {
	for range maxRetries {
		f, err := openFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR)
		if err != nil {
			return err
		}
		done, err := f.append(path, line)
		if err = errors.Join(err, f.Close()); done || err != nil {
			return err
		}
	}
	return errors.New("the file was replaced again and again")
}

// append adds the line. It is not done if the file is no longer the log's current one, or is full and was rotated.
func (f *logFile) append(path string, line []byte) (done bool, err error) {
	locked := lockFile(f.File)
	if err := f.readHeader(); err != nil {
		return false, err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, f.info) {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	if locked && f.info.Size() > f.head && f.info.Size()+int64(len(line)) > maxFile && f.rotate(path) == nil {
		return false, nil
	}
	if hasTornEnd(f.File) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	return true, err
}

// lockFile takes the file's lock, which goes when it is closed, or reports that it did not get it in time.
func lockFile(f *os.File) bool {
	for began, pause := time.Now(), 50*time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EWOULDBLOCK), time.Since(began) > lockTimeout:
			return false
		}
		time.Sleep(pause)
	}
}

// rotate makes a new current file after this one, which is full. The caller holds its lock. The log's name always names a file: the
// full one gets a second name before the new one gets the first.
func (f *logFile) rotate(path string) error {
	facts := f.facts()
	if _, err := f.eachLine(f.base, -1, facts.addLine); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := writeHeader(fresh, f.end(), facts); err != nil {
		return err
	}
	for n := maxFullFiles; n > 1; n-- {
		err := os.Rename(fileName(path, n-1), fileName(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.Link(path, fileName(path, 1)), os.Rename(fresh, path))
}

// writeHeader makes a file that has a head and nothing else.
func writeHeader(path string, base int64, facts Facts) error {
	payload, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	second, err := json.Marshal(Report{At: time.Now(), Event: eventFacts, Payload: payload})
	if err != nil {
		return err
	}
	first, err := json.Marshal(header{Event: eventContinued, Base: base, Head: int64(headLine + len(second) + 1)})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%-*s\n%s\n", headLine-1, first, second)
	return errors.Join(err, f.Sync(), f.Close()) // without it readers would lose their offsets
}

// removeLog removes a log.
func removeLog(path string) error {
	var all error
	for _, name := range append([]string{path + ".new"}, fileNames(path)...) {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// fileNames returns the names of a log's files, the oldest first.
func fileNames(path string) []string {
	var names []string
	for n := maxFullFiles; n >= 0; n-- {
		names = append(names, fileName(path, n))
	}
	return names
}

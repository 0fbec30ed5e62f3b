package smallagent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// The types of an Entry.
const (
	TypeStart     = "start"     // the program began, or /clear began this conversation: How, Pid, Conversation (the one before)
	TypeUser      = "user"      // a message, written when it is submitted or queued, before anything is done: Text, How
	TypeAgent     = "agent"     // an answer: Text, Turn
	TypeShell     = "shell"     // a text with a leading "!": Text, How
	TypeCommand   = "command"   // a text with a leading "/", "exit" or "quit": Text, How
	TypeDialog    = "dialog"    // a dialog or menu that was answered: Text (the question), Decision, How and Reason of a hook's answer
	TypeInterrupt = "interrupt" // a turn that Escape ended
	TypeClear     = "clear"     // /clear was carried out: Conversation (the new one)
	TypeFork      = "fork"      // --fork started a child and a grandchild: Pids
	TypeEnd       = "end"       // the program ended: Text (why), Status
)

// The values of Entry.How: how a text came, how a conversation began, or how a dialog was answered.
const (
	HowPrompt = "prompt" // as the last argument
	HowPaste  = "paste"  // some or all of it in a bracketed paste
	HowTyped  = "typed"
	HowNew    = "new"
	HowResume = "resume"
	HowClear  = "clear"
	HowHook   = "hook" // a dialog was answered by --hook
)

// The values of Entry.Decision.
const (
	DecisionApproved = "approved"
	DecisionDenied   = "denied"
	DecisionChosen   = "chosen" // a menu's, or a choice's, first or second line
	DecisionClosed   = "closed" // a menu, with Escape
)

// Entry is one line of a record. Fields may be added; those that are there keep their meaning.
type Entry struct {
	Type         string    `json:"type"`
	Text         string    `json:"text,omitempty"`
	How          string    `json:"how,omitempty"`
	Decision     string    `json:"decision,omitempty"`
	Reason       string    `json:"reason,omitempty"` // why a hook denied it
	Turn         int       `json:"turn,omitempty"`   // counts the answers of a conversation, from 1, also over resumes
	Conversation string    `json:"conversation,omitempty"`
	Pid          int       `json:"pid,omitempty"`
	Pids         []int     `json:"pids,omitempty"`
	Status       int       `json:"status,omitempty"`
	At           time.Time `json:"at"`
	Seq          int64     `json:"seq"` // counts the entries of a conversation, from 1; two programs that write at once may share numbers
}

// TranscriptPath is the file of a conversation.
func TranscriptPath(dir, id string) string { return filepath.Join(dir, id+".jsonl") }

// BytesPath is the file of the bytes that --log-bytes keeps. It stays that of the id the program was started with.
func BytesPath(dir, id string) string { return filepath.Join(dir, id+".bytes") }

// ReadTranscript returns the entries from an offset in bytes on (0: all), and the offset to go on from. A last line that is
// not complete is left for the next time; a line that is no entry, such as one that a crash cut off, is passed over.
// It fails when the file cannot be read or is shorter than the offset.
func ReadTranscript(path string, from int64) ([]Entry, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, from, fmt.Errorf("open record: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, from, fmt.Errorf("read record: %w", err)
	} else if from < 0 || from > info.Size() {
		return nil, from, fmt.Errorf("read record %s: offset %d is outside of its %d bytes", path, from, info.Size())
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("read record: %w", err)
	}
	return readEntries(f, from)
}

func readEntries(r io.Reader, offset int64) ([]Entry, int64, error) {
	var entries []Entry
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, offset, nil
		}
		if err != nil {
			return entries, offset, fmt.Errorf("read record: %w", err)
		}
		offset += int64(len(line))
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Type != "" {
			entries = append(entries, e)
		}
	}
}

var (
	errConversationExists  = errors.New("there is a conversation already")
	errUnknownConversation = errors.New("no conversation")
)

var idShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`) })

// conversation is the record of one conversation, open for appending. The agent's loop owns and closes it.
type conversation struct {
	id       string
	dir      string
	entries  []Entry // what was there when it was opened
	turns    int
	file     *os.File
	seq      int64
	endsTorn bool // the file does not end in a line feed
}

// checkConversation says beforehand what openConversation would refuse, without making anything.
func checkConversation(dir, id string, resume bool) error {
	if !idShape().MatchString(id) && resume {
		return errUnknownConversation
	}
	_, err := os.Stat(TranscriptPath(dir, id))
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && resume:
		return errUnknownConversation
	case missing:
		return nil
	case err != nil:
		return fmt.Errorf("look for the conversation: %w", err)
	case !resume:
		return errConversationExists
	}
	return nil
}

// createConversation makes the file of a new conversation; of several that try the same id, one succeeds.
func createConversation(dir, id string) (*conversation, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for conversations: %w", err)
	}
	f, err := os.OpenFile(TranscriptPath(dir, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errConversationExists
	}
	if err != nil {
		return nil, fmt.Errorf("create record: %w", err)
	}
	return &conversation{id: id, dir: dir, file: f}, nil
}

func resumeConversation(dir, id string) (*conversation, error) {
	entries, end, err := ReadTranscript(TranscriptPath(dir, id), 0)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(TranscriptPath(dir, id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open record: %w", err), f.Close())
	}
	c := &conversation{id: id, dir: dir, entries: entries, file: f, endsTorn: info.Size() != end}
	for _, e := range entries {
		c.seq, c.turns = max(c.seq, e.Seq), max(c.turns, e.Turn)
	}
	return c, nil
}

// add writes an entry with one write, so that a reader or a crash sees all of it or none.
func (c *conversation) add(e Entry) error {
	e.Seq, e.At = c.seq+1, time.Now()
	var line bytes.Buffer
	if c.endsTorn {
		line.WriteByte('\n')
	}
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("encode entry: %w", err)
	}
	n, err := c.file.Write(line.Bytes())
	if err != nil {
		c.endsTorn = c.endsTorn || n > 0
		return fmt.Errorf("write record: %w", err)
	}
	c.seq, c.endsTorn = e.Seq, false
	return nil
}

func (c *conversation) close() error { return c.file.Close() }

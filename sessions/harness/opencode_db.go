package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// openCodeQueryTimeout bounds a question to the database.
const openCodeQueryTimeout = 15 * time.Second

// openCodeDB is OpenCode's database, and the program that can read it.
type openCodeDB struct {
	file   string
	binary string
	env    []string // of the program in the pane; nil: it is not known any more
}

func (r openCodePane) database() openCodeDB {
	db := openCodeDB{file: r.dataFile("opencode.db"), binary: r.binary}
	for name, value := range r.process.Env {
		if name != sessionVariable { // it is none of the pane's processes
			db.env = append(db.env, name+"="+value)
		}
	}
	return db
}

func (r openCodePane) logFile() string { return r.dataFile(filepath.Join("log", "opencode.log")) }

// file is one of OpenCode's own: as the process has it open, or where it keeps them otherwise.
func (r openCodePane) dataFile(name string) string {
	for _, open := range r.process.openFiles() {
		if strings.HasSuffix(open, string(filepath.Separator)+name) {
			return open
		}
	}
	data := orDefault(r.process.Env["XDG_DATA_HOME"], filepath.Join(r.process.Env["HOME"], ".local", "share"))
	return filepath.Join(data, "opencode", name)
}

// openCodeQueryScript asks the database a question, as the program that OpenCode is built into does in a few hundredths of a second.
const openCodeQueryScript = `import {Database} from "bun:sqlite";
const db = new Database(process.Env.DB, {readonly: true});
db.exec("pragma busy_timeout = 5000");
console.log(JSON.stringify(db.query(process.Env.QUERY).all()));`

// ask reads the rows of a question. OpenCode's own command would take 1–2 s of a processor each time, and is asked where its
// program does not do it faster (it is built with Bun, which can be asked to be just that).
func (db openCodeDB) query(ctx context.Context, query string, rows any) error {
	if _, err := os.Stat(db.file); errors.Is(err, fs.ErrNotExist) {
		return nil // it has not begun yet
	}
	ctx, cancel := context.WithTimeout(ctx, openCodeQueryTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, db.binary, "-e", openCodeQueryScript)
	// Neither the agent's folder nor the operator's home: Bun would load settings that it finds there.
	cmd.Dir, cmd.WaitDelay = filepath.Dir(db.file), time.Second
	cmd.Env = []string{"BUN_BE_BUN=1", "HOME=" + cmd.Dir, "DB=" + db.file, "QUERY=" + query}
	out, err := cmd.Output()
	if err == nil && json.Unmarshal(out, rows) == nil {
		return nil
	}
	if db.env == nil {
		return fmt.Errorf("ask opencode's database: %w", errorOr(err, "it gave no rows"))
	}
	cmd = exec.CommandContext(ctx, db.binary, "--pure", "db", "--format", "json", query)
	cmd.Dir, cmd.WaitDelay, cmd.Env = filepath.Dir(db.file), time.Second, db.env
	if out, err = cmd.Output(); err != nil {
		return fmt.Errorf("ask opencode's database: %w", err)
	}
	if err := json.Unmarshal(out, rows); err != nil {
		return fmt.Errorf("read what opencode's database says: %w", err)
	}
	return nil
}

func errorOr(err error, otherwise string) error {
	if err == nil {
		return errors.New(otherwise)
	}
	return err
}

// The lines of the log that tell of conversations: a turn of one begins or goes on, and one is made, by a person or by an agent
// for a subagent. run names a process of OpenCode's; all of them write into one log.
var (
	openCodeTurnLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=(\S+) level=\S+ run=(\S+) message=loop session\.id=(ses_\w+) step=\d+`)
	})
	openCodeCreatedLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=created id=(ses_\w+) .* parentID=ses_\w+ `)
	})
	openCodeTurnEndLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=("exiting loop"|process) session\.id=ses_\w+`)
	})
)

// maxLogTail is how much of the end of the log is read: a session's own turns are near it.
const maxLogTail = 4 << 20

// openCodeLogParser follows one session through the log.
type openCodeLogParser struct {
	runID         string               // the process in the pane, once it is known
	conversations map[string]time.Time // the session's conversations, and when they came
	current       string               // the one that it is in
	subagents     map[string]bool      // conversations of subagents
	hasNews       bool                 // a line told of a turn of the session's
}

// parseLine takes a line. A process that goes on with one of the session's conversations is the one in the pane.
func (l *openCodeLogParser) parseLine(line []byte) {
	if m := openCodeCreatedLine().FindSubmatch(line); m != nil {
		l.subagents[string(m[1])] = true
		return
	}
	m := openCodeTurnLine().FindSubmatch(line)
	if m == nil {
		l.hasNews = l.hasNews || openCodeTurnEndLine().Match(line)
		return
	}
	run, id := string(m[2]), string(m[3])
	_, ours := l.conversations[id]
	switch {
	case l.subagents[id], !ours && run != l.runID:
		return
	case !ours:
		at, _ := time.Parse(time.RFC3339Nano, string(m[1]))
		l.conversations[id] = at
	}
	l.runID, l.current, l.hasNews = run, id, true
}

// currentOpenCodeConversation is the conversation that the program which was in the given one is in now.
func currentOpenCodeConversation(log, id string) (string, error) {
	l := openCodeLogParser{conversations: map[string]time.Time{id: {}}, current: id, subagents: map[string]bool{}}
	from, err := tailStart(log, maxLogTail)
	if err == nil {
		_, err = transcript.ReadLines(log, from, l.parseLine)
	}
	if err != nil {
		return "", fmt.Errorf("read opencode's log: %w", err)
	}
	return l.current, nil
}

// tailStart is where the last whole lines of a file begin that are no longer than size together.
func tailStart(path string, size int64) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end <= size {
		return 0, err
	}
	part := make([]byte, 64<<10)
	n, err := f.ReadAt(part, end-size)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return end - size + int64(bytes.IndexByte(part[:n], '\n')) + 1, nil
}

// openCodeMessage is a message in the database, of the user or of the agent.
type openCodeMessage struct {
	Conversation string `json:"conversation"`
	ID           string `json:"id"`
	At           int64  `json:"at"` // milliseconds
	Role         string `json:"role"`
	Finish       string `json:"finish"`
	Completed    int64  `json:"completed"` // milliseconds; 0: it is still being written, or the program was killed
	Summary      string `json:"summary"`   // "true": of a conversation that was compacted; a user's message has an object there
	Error        string `json:"error"`     // the name of one
	ErrorText    string `json:"message"`   // what the error says
	Text         string `json:"text"`
}

// said asks for the messages after the given ones, oldest first. The ids come from the log or the record; those of subagents'
// conversations are left out.
func (db openCodeDB) messagesAfter(ctx context.Context, after map[string]openCodePosition) ([]openCodeMessage, error) {
	var which []string
	for id, mark := range after {
		if sessions.ValidConversation(id) {
			which = append(which, fmt.Sprintf("m.session_id = %s and (m.time_created > %d or m.time_created = %[2]d and m.id > %[3]s)",
				quoteSQL(id), mark.At, quoteSQL(mark.ID)))
		}
	}
	if len(which) == 0 {
		return nil, nil
	}
	slices.Sort(which)
	var rows []openCodeMessage
	err := db.query(ctx, `select m.session_id as conversation, m.id, m.time_created as at, json_extract(m.data,'$.role') as role,
		coalesce(json_extract(m.data,'$.finish'), '') as finish, coalesce(json_extract(m.data,'$.time.completed'), 0) as completed,
		coalesce(json_type(m.data,'$.summary'), '') as summary, coalesce(json_extract(m.data,'$.error.name'), '') as error,
		coalesce(json_extract(m.data,'$.error.data.message'), '') as message,
		coalesce((select group_concat(text, char(10, 10)) from (select json_extract(p.data,'$.text') as text from part p
			where p.message_id = m.id and json_extract(p.data,'$.type') = 'text'
			and coalesce(json_extract(p.data,'$.synthetic'), 0) = 0 order by p.time_created, p.id)), '') as text
		from message m join session s on s.id = m.session_id where s.parent_id is null and (`+strings.Join(which, " or ")+`)
		order by m.time_created, m.id`, &rows)
	return rows, err
}

func quoteSQL(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

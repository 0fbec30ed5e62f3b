package opencode

import (
	"bytes"
	"cmp"
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
	"the-loop/sessions/process"
)

// queryTimeout bounds a query.
const queryTimeout = 15 * time.Second

// database is OpenCode's database, and the program that can read it.
type database struct {
	file   string
	binary string
	env    []string // of the program in the pane; nil: it is not known any more
}

func (r pane) database() database {
	db := database{file: r.dataFile("opencode.db"), binary: r.binary}
	for name, value := range r.process.Env {
		if name != sessions.SessionVariable { // the query is no process of the pane's
			db.env = append(db.env, name+"="+value)
		}
	}
	return db
}

func (r pane) logFile() string { return r.dataFile(filepath.Join("log", "opencode.log")) }

// dataFile returns the path of one of OpenCode's files: as the process has it open, or where it is by default.
func (r pane) dataFile(name string) string {
	for _, open := range process.System().OpenFiles(r.process.PID) {
		if strings.HasSuffix(open, string(filepath.Separator)+name) {
			return open
		}
	}
	data := cmp.Or(r.process.Env["XDG_DATA_HOME"], filepath.Join(r.process.Env["HOME"], ".local", "share"))
	return filepath.Join(data, "opencode", name)
}

// queryScript runs a query in the runtime that OpenCode is built into, which takes some hundredths of a second.
const queryScript = `import {Database} from "bun:sqlite";
const db = new Database(process.env.DB, {readonly: true});
db.exec("pragma busy_timeout = 5000");
console.log(JSON.stringify(db.query(process.env.QUERY).all()));`

// query decodes the rows of a query. OpenCode's own command takes 1–2 s of a processor each time; it is used only where its program
// does not run as the Bun that it is built with.
func (db database) query(ctx context.Context, query string, rows any) error {
	if _, err := os.Stat(db.file); errors.Is(err, fs.ErrNotExist) {
		return nil // OpenCode has written nothing yet
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, db.binary, "-e", queryScript)
	// Neither the agent's folder nor the operator's home: Bun would load settings that it finds there.
	cmd.Dir, cmd.WaitDelay = filepath.Dir(db.file), time.Second
	cmd.Env = []string{"BUN_BE_BUN=1", "HOME=" + cmd.Dir, "DB=" + db.file, "QUERY=" + query}
	out, err := cmd.Output()
	if err == nil && json.Unmarshal(out, rows) == nil {
		return nil
	}
	if db.env == nil {
		return fmt.Errorf("query opencode's database: %w", errorOr(err, "it gave no rows"))
	}
	cmd = exec.CommandContext(ctx, db.binary, "--pure", "db", "--format", "json", query)
	cmd.Dir, cmd.WaitDelay, cmd.Env = filepath.Dir(db.file), time.Second, db.env
	if out, err = cmd.Output(); err != nil {
		return fmt.Errorf("query opencode's database: %w", err)
	}
	if err := json.Unmarshal(out, rows); err != nil {
		return fmt.Errorf("read the rows of opencode's database: %w", err)
	}
	return nil
}

func errorOr(err error, otherwise string) error {
	if err == nil {
		return errors.New(otherwise)
	}
	return err
}

// The lines of the log about conversations: a turn begins or goes on, a conversation for a subagent is made, a turn ends. "run" names
// a process of OpenCode's; all of them write into one log.
var (
	turnLinePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=(\S+) level=\S+ run=(\S+) message=loop session\.id=(ses_\w+) step=\d+`)
	})
	createdLinePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=created id=(ses_\w+) .* parentID=ses_\w+ `)
	})
	turnEndLinePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=("exiting loop"|process) session\.id=ses_\w+`)
	})
)

// maxLogTail is how much of the end of the log is read: a session's own turns are near it.
const maxLogTail = 4 << 20

// logParser finds the conversations of one session in the log.
type logParser struct {
	runID         string               // the process in the pane, once it is known
	conversations map[string]time.Time // the session's conversations, and when they came
	current       string               // the one that it is in
	subagents     map[string]bool      // conversations of subagents
	hasNews       bool                 // a line was about a turn of the session's
}

// parseLine parses a line. A process with a turn in one of the session's conversations is the one in the pane.
func (l *logParser) parseLine(line []byte) {
	if m := createdLinePattern().FindSubmatch(line); m != nil {
		l.subagents[string(m[1])] = true
		return
	}
	m := turnLinePattern().FindSubmatch(line)
	if m == nil {
		l.hasNews = l.hasNews || turnEndLinePattern().Match(line)
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

// currentConversation returns the conversation that the program which was in the given one is in now.
func currentConversation(log, id string) (string, error) {
	l := logParser{conversations: map[string]time.Time{id: {}}, current: id, subagents: map[string]bool{}}
	from, err := tailStart(log, maxLogTail)
	if err == nil {
		_, err = transcript.ReadLines(log, from, l.parseLine)
	}
	if err != nil {
		return "", fmt.Errorf("read opencode's log: %w", err)
	}
	return l.current, nil
}

// tailStart returns the offset of the last whole lines of a file that have at most size bytes together.
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

// message is a message in the database, of the user or of the agent.
type message struct {
	Conversation string `json:"conversation"`
	ID           string `json:"id"`
	At           int64  `json:"at"` // milliseconds
	Role         string `json:"role"`
	Finish       string `json:"finish"`
	Completed    int64  `json:"completed"` // milliseconds; 0: it is still being written, or the program was killed
	Summary      string `json:"summary"`   // "true": of a conversation that was compacted; a user's message has an object there
	Error        string `json:"error"`     // the name of one
	ErrorText    string `json:"message"`   // the text of the error
	Text         string `json:"text"`
}

// messagesAfter returns the messages after the given positions, oldest first, without those of subagents.
func (db database) messagesAfter(ctx context.Context, after map[string]position) ([]message, error) {
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
	var rows []message
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

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
)

// openCodeQuery bounds a question to the database.
const openCodeQuery = 15 * time.Second

// openCodeDB is OpenCode's database, and the program that can read it.
type openCodeDB struct {
	file   string
	binary string
	env    []string // of the program in the pane; nil: it is not known any more
}

func (r openCodeRun) database() openCodeDB {
	db := openCodeDB{file: r.file("opencode.db"), binary: r.binary}
	for name, value := range r.process.env {
		if name != sessionVariable { // it is none of the pane's processes
			db.env = append(db.env, name+"="+value)
		}
	}
	return db
}

func (r openCodeRun) log() string { return r.file(filepath.Join("log", "opencode.log")) }

// file is one of OpenCode's own: as the process has it open, or where it keeps them otherwise.
func (r openCodeRun) file(name string) string {
	for _, open := range r.process.openFiles() {
		if strings.HasSuffix(open, string(filepath.Separator)+name) {
			return open
		}
	}
	data := orDefault(r.process.env["XDG_DATA_HOME"], filepath.Join(r.process.env["HOME"], ".local", "share"))
	return filepath.Join(data, "opencode", name)
}

// openCodeScript asks the database a question, as the program that OpenCode is built into does in a few hundredths of a second.
const openCodeScript = `import {Database} from "bun:sqlite";
const db = new Database(process.env.DB, {readonly: true});
db.exec("pragma busy_timeout = 5000");
console.log(JSON.stringify(db.query(process.env.QUERY).all()));`

// ask reads the rows of a question. OpenCode's own command would take 1–2 s of a processor each time, and is asked where its
// program does not do it faster (it is built with Bun, which can be asked to be just that).
func (db openCodeDB) ask(ctx context.Context, query string, rows any) error {
	if _, err := os.Stat(db.file); errors.Is(err, fs.ErrNotExist) {
		return nil // it has not begun yet
	}
	ctx, cancel := context.WithTimeout(ctx, openCodeQuery)
	defer cancel()
	cmd := exec.CommandContext(ctx, db.binary, "-e", openCodeScript)
	// Neither the agent's folder nor the operator's home: Bun would load settings that it finds there.
	cmd.Dir, cmd.WaitDelay = filepath.Dir(db.file), time.Second
	cmd.Env = []string{"BUN_BE_BUN=1", "HOME=" + cmd.Dir, "DB=" + db.file, "QUERY=" + query}
	out, err := cmd.Output()
	if err == nil && json.Unmarshal(out, rows) == nil {
		return nil
	}
	if db.env == nil {
		return fmt.Errorf("ask opencode's database: %w", orError(err, "it gave no rows"))
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

func orError(err error, otherwise string) error {
	if err == nil {
		return errors.New(otherwise)
	}
	return err
}

// The lines of the log that tell of conversations: a turn of one begins or goes on, and one is made, by a person or by an agent
// for a subagent. run names a process of OpenCode's; all of them write into one log.
var (
	openCodeLoop = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=(\S+) level=\S+ run=(\S+) message=loop session\.id=(ses_\w+) step=\d+`)
	})
	openCodeCreated = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=created id=(ses_\w+) .* parentID=ses_\w+ `)
	})
	openCodeEnds = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^timestamp=\S+ level=\S+ run=\S+ message=("exiting loop"|process) session\.id=ses_\w+`)
	})
)

// maxLog is how much of the end of the log is read: a session's own turns are near it.
const maxLog = 4 << 20

// openCodeLog follows one session through the log.
type openCodeLog struct {
	run  string               // the process in the pane, once it is known
	in   map[string]time.Time // the session's conversations, and when they came
	now  string               // the one that it is in
	kids map[string]bool      // conversations of subagents
	news bool                 // a line told of a turn of the session's
}

// see takes a line. A process that goes on with one of the session's conversations is the one in the pane.
func (l *openCodeLog) see(line []byte) {
	if m := openCodeCreated().FindSubmatch(line); m != nil {
		l.kids[string(m[1])] = true
		return
	}
	m := openCodeLoop().FindSubmatch(line)
	if m == nil {
		l.news = l.news || openCodeEnds().Match(line)
		return
	}
	run, id := string(m[2]), string(m[3])
	_, ours := l.in[id]
	switch {
	case l.kids[id], !ours && run != l.run:
		return
	case !ours:
		at, _ := time.Parse(time.RFC3339Nano, string(m[1]))
		l.in[id] = at
	}
	l.run, l.now, l.news = run, id, true
}

// openCodeNow is the conversation that the program which was in the given one is in now.
func openCodeNow(log, id string) (string, error) {
	l := openCodeLog{in: map[string]time.Time{id: {}}, now: id, kids: map[string]bool{}}
	from, err := tailStart(log, maxLog)
	if err == nil {
		_, err = readLines(log, from, l.see)
	}
	if err != nil {
		return "", fmt.Errorf("read opencode's log: %w", err)
	}
	return l.now, nil
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

// openCodeSaid is a message in the database, of the user or of the agent.
type openCodeSaid struct {
	Conversation string `json:"conversation"`
	ID           string `json:"id"`
	At           int64  `json:"at"` // milliseconds
	Role         string `json:"role"`
	Finish       string `json:"finish"`
	Completed    int64  `json:"completed"` // milliseconds; 0: it is still being written, or the program was killed
	Summary      string `json:"summary"`   // "true": of a conversation that was compacted; a user's message has an object there
	Error        string `json:"error"`     // the name of one
	Message      string `json:"message"`   // what the error says
	Text         string `json:"text"`
}

// said asks for the messages after the given ones, oldest first. The ids come from the log or the record; those of subagents'
// conversations are left out.
func (db openCodeDB) said(ctx context.Context, after map[string]openCodeMark) ([]openCodeSaid, error) {
	var which []string
	for id, mark := range after {
		if sessions.ValidConversation(id) {
			which = append(which, fmt.Sprintf("m.session_id = %s and (m.time_created > %d or m.time_created = %[2]d and m.id > %[3]s)",
				sqlText(id), mark.At, sqlText(mark.ID)))
		}
	}
	if len(which) == 0 {
		return nil, nil
	}
	slices.Sort(which)
	var rows []openCodeSaid
	err := db.ask(ctx, `select m.session_id as conversation, m.id, m.time_created as at, json_extract(m.data,'$.role') as role,
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

func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

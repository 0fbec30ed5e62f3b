package threads

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// inboxName is the folder, in the one that a session works in, into which the files of replies go.
const inboxName = ".the-loop-inbox"

// inbox is the place for the files of one reply. What lies in the session's folder is the agent's to change, and may have
// come with a repository, so nothing is written through a link: not out of the folder, and not into another part of it.
type inbox struct {
	dir string // the session's folder
	ts  string // of the reply
}

// keep has a file of the reply filled, unless it is there whole. What is half done is never seen under its name. size is
// the announced one; 0: not known.
func (in inbox) store(name string, size int64, fill func(io.Writer) error) error {
	box, err := in.open()
	if err != nil {
		return in.diskError(err)
	}
	defer func() { _ = box.Close() }()
	if info, err := box.Lstat(name); err == nil && info.Mode().IsRegular() && (size == 0 || info.Size() == size) {
		return nil
	}
	half := "." + name + ".part"
	if err := box.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in.diskError(err)
	}
	f, err := box.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return in.diskError(err)
	}
	defer func() { _ = box.Remove(half) }() // it is gone when all went well
	err = fill(f)
	if disk := errors.Join(f.Sync(), f.Close()); err == nil && disk != nil {
		err = in.diskError(disk)
	}
	if err != nil {
		return err
	}
	if err := box.Rename(half, name); err != nil {
		return in.diskError(err)
	}
	return nil
}

// failed is a failure of this machine's disk: trying again does not mend it, but where it is full.
func (in inbox) diskError(err error) error {
	var known *chat.FileError
	if errors.As(err, &known) || isDiskFull(err) {
		return err
	}
	return &chat.FileError{Why: fmt.Sprintf("it could not be written into %s: %v", filepath.Join(in.dir, inboxName), err)}
}

// open makes the folder of the reply.
func (in inbox) open() (*os.Root, error) {
	cwd, err := os.OpenRoot(in.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cwd.Close() }()
	all, err := openPrivateFolder(cwd, inboxName, in.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }()
	if err := writeGitignore(all); err != nil {
		return nil, err
	}
	removeOldFiles(all, in.ts)
	return openPrivateFolder(all, in.ts, filepath.Join(in.dir, inboxName))
}

// inboxAge is how long the files of a reply stay after it, at the least: whoever wants one for longer copies it.
const inboxAge = 30 * 24 * time.Hour

// replyFolder is the name of the folder of a reply: its ts.
var replyFolder = regexp.MustCompile(`^[0-9]{10}\.[0-9]{6}$`)

// removeOldFiles removes the files of replies that are older than the one at ts by more than that. By Slack's clock alone: this
// machine's may be wrong. Only folders that have the name of a reply are ours to remove.
func removeOldFiles(box *os.Root, ts string) {
	dir, err := box.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	now := chat.TSTime(ts)
	for _, name := range names {
		if replyFolder.MatchString(name) && now.Sub(chat.TSTime(name)) > inboxAge {
			_ = box.RemoveAll(name) // what stays only takes room
		}
	}
}

// openPrivateFolder opens a folder for us alone, and makes it when it is not there. within is the path of its parent, for messages.
func openPrivateFolder(parent *os.Root, name, within string) (*os.Root, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &chat.FileError{Why: filepath.Join(within, name) + " is a link or a file, and nothing is written through it; remove it"}
	}
	child, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := child.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s was replaced", name)
	}
	if err == nil && opened.Mode().Perm()&0o077 != 0 {
		err = child.Chmod(".", 0o700)
	}
	if err != nil {
		_ = child.Close()
		return nil, err
	}
	return child, nil
}

// writeGitignore keeps what lies in the inbox out of a repository around it.
func writeGitignore(box *os.Root) error {
	const name, half, all = ".gitignore", ".gitignore.part", "*\n"
	if info, err := box.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(all)) {
		return nil
	}
	if err := box.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := box.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(all)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return box.Rename(half, name)
}

// safeNames are names for the files on a disk, in their order and all different, also where case does not count.
func safeNames(files []chat.File) []string {
	names, taken := make([]string, len(files)), map[string]bool{}
	for i, f := range files {
		name := safeName(f.Name)
		stem, ext := cutExtension(name)
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = stem + "-" + strconv.Itoa(n) + ext
		}
		taken[strings.ToLower(name)], names[i] = true, name
	}
	return names
}

// What a name may be long, in bytes. Disks take 255.
const (
	maxStem      = 100
	maxExtension = 16
)

// safeName makes of what somebody called a file a name that means nothing to a disk, a shell or an agent.
func safeName(name string) string {
	name = sessions.Clean(name)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("._-+", r) {
			return r
		}
		return '_'
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, "._-+"), ".")
	stem, ext := cutExtension(name)
	if stem = truncate(stem, maxStem); stem == "" {
		stem = "file"
	}
	if isReserved(stem, ext) {
		stem = "file-" + stem
	}
	return stem + ext
}

// cutExtension cuts a name before its last dot. A long extension is none.
func cutExtension(name string) (stem, ext string) {
	ext = filepath.Ext(name)
	if len(ext) < 2 || len(ext) > maxExtension {
		return name, ""
	}
	return strings.TrimSuffix(name, ext), ext
}

func truncate(text string, n int) string {
	for len(text) > n {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// agentInstructionFiles are files that agents read unasked, and obey.
var agentInstructionFiles = []string{"claude.md", "claude.local.md", "agents.md", "agent.md", "gemini.md", "opencode.json", "opencode.jsonc"}

// isReserved reports the names of devices (on some systems with any extension), and those of agents' instructions.
func isReserved(stem, ext string) bool {
	device, _, _ := strings.Cut(strings.ToLower(stem), ".")
	if n := len(device); n == 4 && (device[:3] == "com" || device[:3] == "lpt") && device[3] >= '0' && device[3] <= '9' {
		return true
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul"}, device) || slices.Contains(agentInstructionFiles, strings.ToLower(stem+ext))
}

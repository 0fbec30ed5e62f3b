package threads

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"the-loop/sessions"
)

// parcels makes the letters with the files that an agent reported, and copies the files into the outbox. A report may be
// forged, by the agent or what it ran: each file is judged here, from within the session's folder, whatever was judged
// before. One that is refused is a letter that says so.
func (t *thread) parcels(noted sessions.Noted) ([]*letter, error) {
	letters := make([]*letter, 0, len(noted.Files))
	for _, f := range noted.Files {
		sum := sha256.Sum256([]byte(f.At.Format(time.RFC3339Nano) + "\x00" + f.Path + "\x00" + f.Comment))
		l := &letter{Post: Post{Text: t.caption(f), Nonce: t.id + ".file." + hex.EncodeToString(sum[:12]), Session: t.id}, Since: t.m.o.Clock.Of(f.At)}
		e, err := t.enclose(Folder{Path: noted.Cwd, ID: noted.FolderID}, f, l.Post.Nonce)
		var final *FileError
		switch {
		case errors.As(err, &final):
			l.Post.Text = unsent(t.m.nameable(f.Path), final.Why)
		case err != nil:
			return nil, err
		default:
			l.File = &e
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// mail puts the letters with an agent's files into the outbox. Those of an earlier run may have been posted before it could
// be stored how far the reports were read.
func (t *thread) mail(letters []*letter) error {
	for _, l := range letters {
		l.Post.Channel, l.Post.Root, l.Tried = t.b.Channel, t.b.Root, !t.mailed
		if err := t.m.outbox.put(l); err != nil {
			return fmt.Errorf("keep what the agent wants to post: %w", err)
		}
	}
	return nil
}

// caption is the agent's comment as a message; a file may have none.
func (t *thread) caption(f sessions.NotedFile) string {
	if strings.TrimSpace(f.Comment) == "" {
		return ""
	}
	texts := t.m.pages(t.ref, sessions.Said{Text: f.Comment, At: f.At}).Texts
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// enclose copies one file of the session's folder into the outbox. It errs with a [*FileError] when the file is none that
// may be posted.
func (t *thread) enclose(dir Folder, f sessions.NotedFile, nonce string) (enclosure, error) {
	most := t.m.o.Settings().MaxFile
	if most <= 0 {
		return enclosure{}, errNotPosted
	}
	if t.m.isSecret(f.Path) {
		return enclosure{}, &FileError{"its name holds a value of the environment or a token, and those are posted nowhere"}
	}
	if err := t.m.outbox.crowded(t.id); err != nil {
		return enclosure{}, err
	}
	file, err := openWithin(dir, f.Path)
	if err != nil {
		return enclosure{}, err
	}
	defer func() { _ = file.Close() }()
	name := strings.ReplaceAll(shown(File{Name: filepath.Base(f.Path)}), "/", "_")
	return t.m.outbox.sealed(nonce, name, &atMost{from: file, left: most, most: most})
}

// isSecret reports a text that holds what must be posted nowhere.
func (m *Manager) isSecret(text string) bool { return m.o.Secret != nil && m.o.Secret(text) }

// nameable is the name of a file as a thread is told it. It may be cut, so that a secret in it would not be found any more.
func (m *Manager) nameable(path string) string {
	if m.isSecret(path) {
		return shown(File{})
	}
	return shown(File{Name: path})
}

// Postable says why a file of a folder cannot be posted; most is its size in bytes at most. The bot asks again when it takes
// its copy.
func Postable(dir Folder, path string, most int64) error {
	file, err := openWithin(dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if most <= 0 {
		return errNotPosted
	}
	if info, err := file.Stat(); err == nil && info.Size() > most {
		return tooLarge(most)
	}
	return nil
}

var errNotPosted = &FileError{"files are not posted here: channels.slack.files.maxMB is 0"}

// Folder is one that files may come from.
type Folder struct {
	Path string
	ID   sessions.FolderID // empty: whatever stands at the path
}

// openWithin opens a regular file of a folder. No link leads out of it, none stands in its own place or above it, and no pipe is
// waited for. A file with more than one name may be that of another folder.
func openWithin(dir Folder, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, &FileError{"it lies outside of the session's folder"}
	}
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		return nil, &FileError{"the session's folder cannot be opened: " + unnamed(err)}
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("."); err != nil || dir.ID.Differs(info) {
		return nil, &FileError{"another folder than the one that the agent was started in stands in its place"}
	}
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &FileError{"it cannot be opened: " + unnamed(err)}
	}
	if err := plainFile(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// plainFile says why an open file is none that may be posted.
func plainFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return &FileError{"it is no file but a folder, a pipe or a device"}
	case info.Size() == 0:
		return &FileError{"it is empty"}
	case known && stat.Nlink > 1:
		return &FileError{fmt.Sprintf("it has %d names (hard links), and may be a file of another folder: post a copy", stat.Nlink)}
	}
	return nil
}

// unnamed is an error without the path: the sentence around it has it already.
func unnamed(err error) string {
	var named *os.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return err.Error()
}

// atMost fails when there is more to read than there may be.
type atMost struct {
	from       io.Reader
	left, most int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, tooLarge(a.most)
	}
	return n, err
}

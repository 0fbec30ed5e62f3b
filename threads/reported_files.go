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
	"the-loop/threads/chat"
)

// reportedFileMessages makes the letters with the files that an agent reported, and copies the files into the outbox. A report may be
// forged, by the agent or what it ran: each file is judged here, from within the session's folder, whatever was judged
// before. One that is refused is a letter that says so.
func (t *thread) reportedFileMessages(noted sessions.ReportBatch) ([]*OutboxMessage, error) {
	letters := make([]*OutboxMessage, 0, len(noted.Files))
	for _, f := range noted.Files {
		sum := sha256.Sum256([]byte(f.At.Format(time.RFC3339Nano) + "\x00" + f.Path + "\x00" + f.Comment))
		l := &OutboxMessage{Post: chat.Post{Text: t.caption(f), Nonce: t.sessionID + ".file." + hex.EncodeToString(sum[:12]), Session: t.sessionID}, Since: t.m.o.Clock.FromLocal(f.At)}
		e, err := t.attachReportedFile(Folder{Path: noted.Cwd, ID: noted.FolderID}, f, l.Post.Nonce)
		var final *chat.FileError
		switch {
		case errors.As(err, &final):
			l.Post.Text = fileNotPostedText(t.m.safeFileLabel(f.Path), final.Why)
		case err != nil:
			return nil, err
		default:
			l.File = &e
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// queueReportedFiles puts the letters with an agent's files into the outbox. Those of an earlier run may have been posted before it could
// be stored how far the reports were read.
func (t *thread) queueReportedFiles(letters []*OutboxMessage) error {
	for _, l := range letters {
		l.Post.Channel, l.Post.Root, l.MaybePosted = t.b.Channel, t.b.Root, !t.reportsSynced
		if err := t.m.outbox.put(l); err != nil {
			return fmt.Errorf("keep what the agent wants to post: %w", err)
		}
	}
	return nil
}

// caption is the agent's comment as a message; a file may have none.
func (t *thread) caption(f sessions.ReportedFile) string {
	if strings.TrimSpace(f.Comment) == "" {
		return ""
	}
	texts := t.m.renderAnswer(t.ref, sessions.AgentMessage{Text: f.Comment, At: f.At}).Texts
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// enclose copies one file of the session's folder into the outbox. It errs with a [*FileError] when the file is none that
// may be posted.
func (t *thread) attachReportedFile(dir Folder, f sessions.ReportedFile, nonce string) (Attachment, error) {
	most := t.m.o.Settings().MaxFile
	if most <= 0 {
		return Attachment{}, errPostingDisabled
	}
	if t.m.isSecret(f.Path) {
		return Attachment{}, &chat.FileError{Why: "its name holds a value of the environment or a token, and those are posted nowhere"}
	}
	if err := t.m.outbox.checkFileLimit(t.sessionID); err != nil {
		return Attachment{}, err
	}
	file, err := openWithin(dir, f.Path)
	if err != nil {
		return Attachment{}, err
	}
	defer func() { _ = file.Close() }()
	name := strings.ReplaceAll(fileLabel(chat.File{Name: filepath.Base(f.Path)}), "/", "_")
	return t.m.outbox.storeContent(nonce, name, &limitedReader{from: file, left: most, most: most})
}

// isSecret reports a text that holds what must be posted nowhere.
func (m *Manager) isSecret(text string) bool { return m.o.IsSecret != nil && m.o.IsSecret(text) }

// safeFileLabel is the name of a file as a thread is told it. It may be cut, so that a secret in it would not be found any more.
func (m *Manager) safeFileLabel(path string) string {
	if m.isSecret(path) {
		return fileLabel(chat.File{})
	}
	return fileLabel(chat.File{Name: path})
}

// CheckPostable says why a file of a folder cannot be posted; most is its size in bytes at most. The bot asks again when it takes
// its copy.
func CheckPostable(dir Folder, path string, most int64) error {
	file, err := openWithin(dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if most <= 0 {
		return errPostingDisabled
	}
	if info, err := file.Stat(); err == nil && info.Size() > most {
		return tooLargeError(most)
	}
	return nil
}

var errPostingDisabled = &chat.FileError{Why: "files are not posted here: channels.slack.files.maxMB is 0"}

// Folder is one that files may come from.
type Folder struct {
	Path string
	ID   sessions.FolderID // empty: whatever stands at the path
}

// openWithin opens a regular file of a folder. No link leads out of it, none stands in its own place or above it, and no pipe is
// waited for. A file with more than one name may be that of another folder.
func openWithin(dir Folder, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, &chat.FileError{Why: "it lies outside of the session's folder"}
	}
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		return nil, &chat.FileError{Why: "the session's folder cannot be opened: " + withoutPath(err)}
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("."); err != nil || dir.ID.Differs(info) {
		return nil, &chat.FileError{Why: "another folder than the one that the agent was started in stands in its place"}
	}
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &chat.FileError{Why: "it cannot be opened: " + withoutPath(err)}
	}
	if err := checkPostableFile(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// checkPostableFile says why an open file is none that may be posted.
func checkPostableFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return &chat.FileError{Why: "it is no file but a folder, a pipe or a device"}
	case info.Size() == 0:
		return &chat.FileError{Why: "it is empty"}
	case known && stat.Nlink > 1:
		return &chat.FileError{Why: fmt.Sprintf("it has %d names (hard links), and may be a file of another folder: post a copy", stat.Nlink)}
	}
	return nil
}

// withoutPath is an error without the path: the sentence around it has it already.
func withoutPath(err error) string {
	var named *os.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return err.Error()
}

// limitedReader fails when there is more to read than there may be.
type limitedReader struct {
	from       io.Reader
	left, most int64
}

func (a *limitedReader) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, tooLargeError(a.most)
	}
	return n, err
}

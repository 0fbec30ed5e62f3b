package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"the-loop/sessions/loop"
	"the-loop/threads/chat"
)

// Attachment is the file of a message. Its content lies beside the messages until it is posted.
type Attachment struct {
	chat.FileUpload
	ContentFile string `json:"content"` // the name of that file
	Fallback    string `json:"instead"` // the text that is posted when the file cannot be; it says why where there is room for it
}

// maxPendingFiles is how many files of one session may wait to be posted.
const maxPendingFiles = 32

// An upload may take uploadTimeout, and a second for each uploadPace bytes.
const (
	uploadTimeout = time.Minute
	uploadPace    = 64 << 10
)

// contentName is the name of the file with the content of the message with that nonce. It is the same after a crash.
func contentName(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:12]) + contentSuffix
}

const (
	contentSuffix = ".file"
	partialPrefix = ".file-"
)

// Attach copies the content of a file that is to be posted with the message that has the nonce. Content with a secret is refused
// with a [*chat.FileError], and so are more files of a session than may wait.
func (o *Outbox) Attach(m *Message, name string, content io.Reader) error {
	if err := o.checkFileLimit(m.Post.Session); err != nil {
		return err
	}
	attached, err := o.storeContent(m.Post.Nonce, name, content)
	if err == nil {
		m.File = &attached
	}
	return err
}

// storeContent copies the content of a file into the outbox.
func (o *Outbox) storeContent(nonce, name string, content io.Reader) (Attachment, error) {
	if err := os.MkdirAll(o.o.Dir, 0o700); err != nil {
		return Attachment{}, err
	}
	partial, err := os.CreateTemp(o.o.Dir, partialPrefix+"*") // 0600
	if err != nil {
		return Attachment{}, err
	}
	defer func() { _ = os.Remove(partial.Name()) }() // it is gone when all went well
	n, err := io.Copy(partial, content)
	if err == nil {
		err = checkSecrets(partial, o.o.IsSecret)
	}
	if err = errors.Join(err, partial.Sync(), partial.Close()); err != nil {
		return Attachment{}, err
	}
	a := Attachment{FileUpload: chat.FileUpload{Name: name, Size: n}, ContentFile: contentName(nonce)}
	return a, os.Rename(partial.Name(), filepath.Join(o.o.Dir, a.ContentFile))
}

// TextFile is a text that is posted as a file.
type TextFile struct {
	Name     string
	Content  string
	Fallback string // the text of the post when the file cannot be posted
}

// AttachText gives a message a text as its file. A text of more than limit bytes, or with a secret in it, is replaced by the
// fallback.
func (o *Outbox) AttachText(m *Message, f TextFile, limit int64) error {
	if o.o.Uploader == nil || int64(len(f.Content)) > limit {
		m.Post.Text = f.Fallback
		return nil
	}
	attached, err := o.storeContent(m.Post.Nonce, f.Name, strings.NewReader(f.Content))
	var final *chat.FileError
	switch {
	case errors.As(err, &final):
		m.Post.Text = f.Fallback
		return nil
	case err != nil:
		return err
	}
	attached.Fallback = f.Fallback
	m.File = &attached
	return nil
}

// A file is searched for secrets in parts that overlap by more than a value may be long.
const (
	scanChunk   = 1 << 20
	scanOverlap = 256 << 10
)

// checkSecrets fails when a file holds a secret.
func checkSecrets(f *os.File, isSecret func(string) bool) error {
	if isSecret == nil {
		return nil
	}
	part := make([]byte, scanChunk)
	for at := int64(0); ; at += scanChunk - scanOverlap {
		n, err := f.ReadAt(part, at)
		switch {
		case n > 0 && isSecret(string(part[:n])):
			return &chat.FileError{Why: "it holds a value of the environment or a token, and those are posted nowhere"}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// checkFileLimit fails when too many files of the session wait already.
func (o *Outbox) checkFileLimit(session string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, m := range o.messages {
		if m.File != nil && m.Post.Session == session {
			n++
		}
	}
	if n >= maxPendingFiles {
		return &chat.FileError{Why: fmt.Sprintf("%d files wait to be posted already", n)}
	}
	return nil
}

// removeOrphanedContents removes content that no message has, after a crash.
func (o *Outbox) removeOrphanedContents() {
	used := map[string]bool{}
	for _, m := range o.messages {
		if m.File != nil {
			used[m.File.ContentFile] = true
		}
	}
	names, _ := os.ReadDir(o.o.Dir) // it was read a moment ago
	for _, n := range names {
		if strings.HasPrefix(n.Name(), partialPrefix) || strings.HasSuffix(n.Name(), contentSuffix) && !used[n.Name()] {
			_ = os.Remove(filepath.Join(o.o.Dir, n.Name())) // what stays does no harm
		}
	}
}

// startUpload uploads the file of a message beside the others. Those of the same thread wait, so that the order is kept.
func (o *Outbox) startUpload(m *Message) {
	o.setUploading(m, true)
	started := o.o.Start(func(ctx context.Context) {
		f := *m.File // nobody else changes it meanwhile
		calling, cancel := context.WithTimeout(ctx, uploadTimeout+time.Duration(f.Size/uploadPace)*time.Second)
		defer cancel()
		id, ts, err := o.upload(calling, m, f)
		o.onUploaded(ctx, m, id, ts, err)
	})
	if !started {
		o.setUploading(m, false)
	}
}

// upload uploads a file, unless an earlier run may have posted it and it is found.
func (o *Outbox) upload(ctx context.Context, m *Message, f Attachment) (id, ts string, err error) {
	if o.o.Uploader == nil {
		return "", "", &chat.FileError{Why: "files cannot be posted here"}
	}
	if m.MaybePosted {
		ts, err = o.o.Uploader.FindFile(ctx, f.FileUpload, m.Post, m.Since)
		if err != nil || ts != "" {
			return "", ts, err
		}
	}
	content, err := os.Open(filepath.Join(o.o.Dir, f.ContentFile))
	if err != nil {
		return "", "", &chat.FileError{Why: "its copy is gone"}
	}
	defer func() { _ = content.Close() }()
	if err := checkSecrets(content, o.o.IsSecret); err != nil { // the environment may have changed since the copy was made
		return "", "", err
	}
	id, err = o.o.Uploader.Upload(ctx, f.FileUpload, content)
	return id, "", err
}

// onUploaded keeps the id of the uploaded file, so that it is known before anybody sees the file.
func (o *Outbox) onUploaded(ctx context.Context, m *Message, id, ts string, err error) {
	switch {
	case err != nil:
		o.setUploading(m, false)
		o.handleFailure(ctx, m, err)
	case ts != "":
		o.remove(m)
		o.o.Observer.Posted(ctx, *m, ts)
	default:
		o.setFileID(m, id)
		o.setUploading(m, false)
	}
}

// setFileID stores the id of a message's uploaded file; empty: it has to be uploaded. The message may be gone meanwhile.
func (o *Outbox) setFileID(m *Message, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.messages, m) {
		m.File.ID, m.MaybePosted = id, false
		_ = o.write(m) // it was logged; a crash now uploads it again, and nobody sees the first
	}
}

func (o *Outbox) setUploading(m *Message, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.uploading = is
	loop.Wake(o.wakeup)
}

// shareFile posts an uploaded file. After an unknown outcome it is looked for first, by its id.
func (o *Outbox) shareFile(ctx context.Context, m *Message) (ts string, err error) {
	if m.MaybePosted {
		ts, err = o.o.Uploader.FindFile(ctx, m.File.FileUpload, m.Post, m.Since)
		if err != nil || ts != "" {
			return ts, err
		}
	}
	if !o.setMaybePosted(m, true) {
		return "", errWithdrawn
	}
	err = o.o.Uploader.Share(ctx, m.File.FileUpload, m.Post)
	switch {
	case errors.Is(err, chat.ErrNotUploaded):
		o.setFileID(m, "")
	case err != nil && !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		o.setMaybePosted(m, false)
	}
	return "", err
}

// replaceFileWithText replaces a file that cannot be posted by a text that says why.
func (o *Outbox) replaceFileWithText(m *Message, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, m) {
		return
	}
	o.o.Log.Warn("a file cannot be posted", "session", m.Post.Session, "because", why)
	o.removeContent(m)
	m.Post.Text = cmp.Or(m.File.Fallback, FileNotPostedText(m.File.Name, why))
	m.File, m.MaybePosted = nil, true // an earlier run may have come as far as this
	_ = o.write(m)                    // it was logged
	loop.Wake(o.wakeup)
}

// FileNotPostedText says why an agent's file is not posted.
func FileNotPostedText(name, why string) string {
	return fmt.Sprintf("The agent wanted to post the file `%s`, but it cannot be posted: %s.", chat.EscapeCode(name), chat.Escape(why))
}

// removeContent removes the content of a message's file. The caller holds mu.
func (o *Outbox) removeContent(m *Message) {
	if m.File == nil {
		return
	}
	if err := os.Remove(filepath.Join(o.o.Dir, m.File.ContentFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.o.Log.Error("could not remove the copy of a posted file", "err", err)
	}
}

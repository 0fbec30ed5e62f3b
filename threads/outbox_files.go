package threads

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

	"the-loop/threads/chat"
)

// Attachment is the file of a letter. Its content lies beside the letters until it is posted.
type Attachment struct {
	chat.FileUpload
	ContentFile string `json:"content"` // the name of that file
	Fallback    string `json:"instead"` // the text that is posted when the file cannot be; it says why where there is room for it
}

// Of one session, so many files may wait to be posted.
const maxPendingFiles = 32

// An upload may take a minute, and as long as this many bytes a second need.
const (
	uploadTimeout = time.Minute
	uploadPace    = 64 << 10
)

// contentName is the name of the file with the content of the letter with that nonce. It is the same after a crash.
func contentName(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:12]) + contentSuffix
}

const (
	contentSuffix = ".file"
	partialPrefix = ".file-"
)

// storeContent stores the content of a file that is to be posted. Secrets are not: that is a [*FileError].
func (o *outbox) storeContent(nonce, name string, content io.Reader) (Attachment, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return Attachment{}, err
	}
	half, err := os.CreateTemp(o.dir, partialPrefix+"*") // 0600
	if err != nil {
		return Attachment{}, err
	}
	defer func() { _ = os.Remove(half.Name()) }() // it is gone when all went well
	n, err := io.Copy(half, content)
	if err == nil {
		err = o.checkSecrets(half)
	}
	if err = errors.Join(err, half.Sync(), half.Close()); err != nil {
		return Attachment{}, err
	}
	e := Attachment{FileUpload: chat.FileUpload{Name: name, Size: n}, ContentFile: contentName(nonce)}
	return e, os.Rename(half.Name(), filepath.Join(o.dir, e.ContentFile))
}

// enclose gives a letter the whole of a text as its file, or what is said instead.
func (o *outbox) attachFullText(l *OutboxMessage, whole FullText, most int64) error {
	if o.m.o.FileUploader == nil || int64(len(whole.Content)) > most {
		l.Post.Text = whole.Fallback
		return nil
	}
	e, err := o.storeContent(l.Post.Nonce, whole.Name, strings.NewReader(whole.Content))
	var final *chat.FileError
	switch {
	case errors.As(err, &final):
		l.Post.Text = whole.Fallback
		return nil
	case err != nil:
		return err
	}
	e.Fallback = whole.Fallback
	l.File = &e
	return nil
}

// A file is looked through for secrets in parts that overlap by more than a value may be long.
const (
	scanChunk   = 1 << 20
	scanOverlap = 256 << 10
)

// checkSecrets fails when a file holds what must not be posted.
func (o *outbox) checkSecrets(f *os.File) error {
	if o.m.o.IsSecret == nil {
		return nil
	}
	part := make([]byte, scanChunk)
	for at := int64(0); ; at += scanChunk - scanOverlap {
		n, err := f.ReadAt(part, at)
		switch {
		case n > 0 && o.m.o.IsSecret(string(part[:n])):
			return &chat.FileError{Why: "it holds a value of the environment or a token, and those are posted nowhere"}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// crowded fails when too many files of the session wait already.
func (o *outbox) checkFileLimit(session string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.messages {
		if l.File != nil && l.Post.Session == session {
			n++
		}
	}
	if n >= maxPendingFiles {
		return &chat.FileError{Why: fmt.Sprintf("%d files wait to be posted already", n)}
	}
	return nil
}

// removeOrphanedContents removes content that no letter has: a crash came before the letter, or after it.
func (o *outbox) removeOrphanedContents() {
	wanted := map[string]bool{}
	for _, l := range o.messages {
		if l.File != nil {
			wanted[l.File.ContentFile] = true
		}
	}
	names, _ := os.ReadDir(o.dir) // it was read a moment ago
	for _, n := range names {
		if strings.HasPrefix(n.Name(), partialPrefix) || strings.HasSuffix(n.Name(), contentSuffix) && !wanted[n.Name()] {
			_ = os.Remove(filepath.Join(o.dir, n.Name())) // what stays does no harm
		}
	}
}

// carry uploads the file of a letter beside the other letters. Those of the same thread wait, so that the order is kept.
func (o *outbox) startUpload(l *OutboxMessage) {
	o.setUploading(l, true)
	started := o.m.start(func(ctx context.Context) {
		f := *l.File // nobody else changes it while the letter is busy
		calling, cancel := context.WithTimeout(ctx, uploadTimeout+time.Duration(f.Size/uploadPace)*time.Second)
		defer cancel()
		id, ts, err := o.upload(calling, l, f)
		o.onUploaded(ctx, l, id, ts, err)
	})
	if !started {
		o.setUploading(l, false)
	}
}

// upload uploads a file, unless an earlier run may have posted it and it is found.
func (o *outbox) upload(ctx context.Context, l *OutboxMessage, f Attachment) (id, ts string, err error) {
	if o.m.o.FileUploader == nil {
		return "", "", &chat.FileError{Why: "files cannot be posted here"}
	}
	if l.MaybePosted {
		ts, err = o.m.o.FileUploader.FindFile(ctx, f.FileUpload, l.Post, l.Since)
		if err != nil || ts != "" {
			return "", ts, err
		}
	}
	content, err := os.Open(filepath.Join(o.dir, f.ContentFile))
	if err != nil {
		return "", "", &chat.FileError{Why: "its copy is gone"}
	}
	defer func() { _ = content.Close() }()
	if err := o.checkSecrets(content); err != nil { // the environment may have changed since the copy was made
		return "", "", err
	}
	id, err = o.m.o.FileUploader.Upload(ctx, f.FileUpload, content)
	return id, "", err
}

// onUploaded keeps the id of the uploaded file, so that it is known before anybody sees the file.
func (o *outbox) onUploaded(ctx context.Context, l *OutboxMessage, id, ts string, err error) {
	switch {
	case err != nil:
		o.setUploading(l, false)
		o.handleFailure(ctx, l, err)
	case ts != "":
		o.remove(l)
		o.m.recordPosted(ctx, l.Post, ts)
		o.m.onPosted(l.Post, ts)
	default:
		o.setFileID(l, id)
		o.setUploading(l, false)
	}
}

// setFileID stores the id of a letter's file, or with none that Slack has no such file. The letter may be gone meanwhile.
func (o *outbox) setFileID(l *OutboxMessage, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.messages, l) {
		l.File.ID, l.MaybePosted = id, false
		_ = o.write(l) // it was logged; a crash now uploads it again, and nobody sees the first
	}
}

func (o *outbox) setUploading(l *OutboxMessage, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.uploading = is
	wake(o.wakeup)
}

// shareFile posts an uploaded file. After an unknown outcome it is looked for first, by its id.
func (o *outbox) shareFile(ctx context.Context, l *OutboxMessage) (ts string, err error) {
	if l.MaybePosted {
		ts, err = o.m.o.FileUploader.FindFile(ctx, l.File.FileUpload, l.Post, l.Since)
		if err != nil || ts != "" {
			return ts, err
		}
	}
	if !o.setMaybePosted(l, true) {
		return "", errWithdrawn
	}
	err = o.m.o.FileUploader.Share(ctx, l.File.FileUpload, l.Post)
	switch {
	case errors.Is(err, chat.ErrNotUploaded):
		o.setFileID(l, "")
	case err != nil && !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		o.setMaybePosted(l, false)
	}
	return "", err
}

// replaceFileWithText makes a letter without its file of one whose file cannot be posted.
func (o *outbox) replaceFileWithText(l *OutboxMessage, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, l) {
		return
	}
	o.m.o.Log.Warn("a file cannot be posted", "session", l.Post.Session, "because", why)
	o.removeContent(l)
	l.Post.Text = cmp.Or(l.File.Fallback, fileNotPostedText(l.File.Name, why))
	l.File, l.MaybePosted = nil, true // an earlier run may have come as far as this
	_ = o.write(l)                    // it was logged
	wake(o.wakeup)
}

// fileNotPostedText tells that an agent's file is not posted.
func fileNotPostedText(name, why string) string {
	return fmt.Sprintf("The agent wanted to post the file `%s`, and it cannot be: %s.", strings.ReplaceAll(escape(name), "`", "ˋ"), escape(why))
}

// removeContent removes the content of a letter's file. The caller holds mu.
func (o *outbox) removeContent(l *OutboxMessage) {
	if l.File == nil {
		return
	}
	if err := os.Remove(filepath.Join(o.dir, l.File.ContentFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.m.o.Log.Error("could not remove the copy of a posted file", "err", err)
	}
}

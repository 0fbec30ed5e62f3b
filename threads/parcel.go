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
)

// Parcel is a file that is posted.
type Parcel struct {
	Name string `json:"name"` // as people see it
	Size int64  `json:"size"` // bytes
	ID   string `json:"id,omitempty"`
}

// Carrier posts files, in two steps: so it can be found out later whether the second was done. Errors: a [*FileError] when
// no later try does better, and those of [Speaker].
type Carrier interface {
	// Upload hands a file's content over, for nobody to see yet, and returns its id. It needs no id, name and size alone.
	Upload(ctx context.Context, f Parcel, content io.Reader) (id string, err error)
	// Share posts the file with that id, with the post's text. [ErrNotUploaded] when Slack does not know it (any more);
	// [ErrUnknown] when Slack may have posted it and did not say so.
	Share(ctx context.Context, f Parcel, p Post) error
	// FindFile looks, in the thread of the post, for a message of ours from since on that holds the file: by its id, or
	// where it has none by name and size. Empty ts: there is none.
	FindFile(ctx context.Context, f Parcel, p Post, since time.Time) (ts string, err error)
}

// ErrNotUploaded says that Slack has no file with that id to post.
var ErrNotUploaded = errors.New("no uploaded file of that id in Slack")

// enclosure is the file of a letter. Its content lies beside the letters until it is posted.
type enclosure struct {
	Parcel
	Content string `json:"content"` // the name of that file
	Instead string `json:"instead"` // the text that is posted when the file cannot be; it says why where there is room for it
}

// Of one session, so many files may wait to be posted.
const maxWaiting = 32

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
	halfPrefix    = ".file-"
)

// sealed stores the content of a file that is to be posted. Secrets are not: that is a [*FileError].
func (o *outbox) sealed(nonce, name string, content io.Reader) (enclosure, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return enclosure{}, err
	}
	half, err := os.CreateTemp(o.dir, halfPrefix+"*") // 0600
	if err != nil {
		return enclosure{}, err
	}
	defer func() { _ = os.Remove(half.Name()) }() // it is gone when all went well
	n, err := io.Copy(half, content)
	if err == nil {
		err = o.innocent(half)
	}
	if err = errors.Join(err, half.Sync(), half.Close()); err != nil {
		return enclosure{}, err
	}
	e := enclosure{Parcel: Parcel{Name: name, Size: n}, Content: contentName(nonce)}
	return e, os.Rename(half.Name(), filepath.Join(o.dir, e.Content))
}

// enclose gives a letter the whole of a text as its file, or what is said instead.
func (o *outbox) enclose(l *letter, whole Whole, most int64) error {
	if o.m.o.Carrier == nil || int64(len(whole.Content)) > most {
		l.Post.Text = whole.Instead
		return nil
	}
	e, err := o.sealed(l.Post.Nonce, whole.Name, strings.NewReader(whole.Content))
	var final *FileError
	switch {
	case errors.As(err, &final):
		l.Post.Text = whole.Instead
		return nil
	case err != nil:
		return err
	}
	e.Instead = whole.Instead
	l.File = &e
	return nil
}

// A file is looked through for secrets in parts that overlap by more than a value may be long.
const (
	lookPart    = 1 << 20
	lookOverlap = 256 << 10
)

// innocent fails when a file holds what must not be posted.
func (o *outbox) innocent(f *os.File) error {
	if o.m.o.Secret == nil {
		return nil
	}
	part := make([]byte, lookPart)
	for at := int64(0); ; at += lookPart - lookOverlap {
		n, err := f.ReadAt(part, at)
		switch {
		case n > 0 && o.m.o.Secret(string(part[:n])):
			return &FileError{"it holds a value of the environment or a token, and those are posted nowhere"}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// crowded fails when too many files of the session wait already.
func (o *outbox) crowded(session string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.letters {
		if l.File != nil && l.Post.Session == session {
			n++
		}
	}
	if n >= maxWaiting {
		return &FileError{fmt.Sprintf("%d files wait to be posted already", n)}
	}
	return nil
}

// clearContents removes content that no letter has: a crash came before the letter, or after it.
func (o *outbox) clearContents() {
	wanted := map[string]bool{}
	for _, l := range o.letters {
		if l.File != nil {
			wanted[l.File.Content] = true
		}
	}
	names, _ := os.ReadDir(o.dir) // it was read a moment ago
	for _, n := range names {
		if strings.HasPrefix(n.Name(), halfPrefix) || strings.HasSuffix(n.Name(), contentSuffix) && !wanted[n.Name()] {
			_ = os.Remove(filepath.Join(o.dir, n.Name())) // what stays does no harm
		}
	}
}

// carry uploads the file of a letter beside the other letters. Those of the same thread wait, so that the order is kept.
func (o *outbox) carry(l *letter) {
	o.busy(l, true)
	started := o.m.start(func(ctx context.Context) {
		f := *l.File // nobody else changes it while the letter is busy
		calling, cancel := context.WithTimeout(ctx, uploadTimeout+time.Duration(f.Size/uploadPace)*time.Second)
		defer cancel()
		id, ts, err := o.handOver(calling, l, f)
		o.handedOver(ctx, l, id, ts, err)
	})
	if !started {
		o.busy(l, false)
	}
}

// handOver uploads a file, unless an earlier run may have posted it and it is found.
func (o *outbox) handOver(ctx context.Context, l *letter, f enclosure) (id, ts string, err error) {
	if o.m.o.Carrier == nil {
		return "", "", &FileError{"files cannot be posted here"}
	}
	if l.Tried {
		ts, err = o.m.o.Carrier.FindFile(ctx, f.Parcel, l.Post, l.Since)
		if err != nil || ts != "" {
			return "", ts, err
		}
	}
	content, err := os.Open(filepath.Join(o.dir, f.Content))
	if err != nil {
		return "", "", &FileError{"its copy is gone"}
	}
	defer func() { _ = content.Close() }()
	if err := o.innocent(content); err != nil { // the environment may have changed since the copy was made
		return "", "", err
	}
	id, err = o.m.o.Carrier.Upload(ctx, f.Parcel, content)
	return id, "", err
}

// handedOver keeps the id of the uploaded file, so that it is known before anybody sees the file.
func (o *outbox) handedOver(ctx context.Context, l *letter, id, ts string, err error) {
	switch {
	case err != nil:
		o.busy(l, false)
		o.failed(ctx, l, err)
	case ts != "":
		o.remove(l)
		o.m.posted(ctx, l.Post, ts)
		o.m.spoke(l.Post, ts)
	default:
		o.uploaded(l, id)
		o.busy(l, false)
	}
}

// uploaded stores the id of a letter's file, or with none that Slack has no such file. The letter may be gone meanwhile.
func (o *outbox) uploaded(l *letter, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.letters, l) {
		l.File.ID, l.Tried = id, false
		_ = o.write(l) // it was logged; a crash now uploads it again, and nobody sees the first
	}
}

func (o *outbox) busy(l *letter, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.busy = is
	poke(o.wake)
}

// show posts an uploaded file. After an unknown outcome it is looked for first, by its id.
func (o *outbox) show(ctx context.Context, l *letter) (ts string, err error) {
	if l.Tried {
		ts, err = o.m.o.Carrier.FindFile(ctx, l.File.Parcel, l.Post, l.Since)
		if err != nil || ts != "" {
			return ts, err
		}
	}
	if !o.mark(l, true) {
		return "", errWithdrawn
	}
	err = o.m.o.Carrier.Share(ctx, l.File.Parcel, l.Post)
	switch {
	case errors.Is(err, ErrNotUploaded):
		o.uploaded(l, "")
	case err != nil && !errors.Is(err, ErrUnknown) && ctx.Err() == nil:
		o.mark(l, false)
	}
	return "", err
}

// instead makes a letter without its file of one whose file cannot be posted.
func (o *outbox) instead(l *letter, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.letters, l) {
		return
	}
	o.m.o.Log.Warn("a file cannot be posted", "session", l.Post.Session, "because", why)
	o.discard(l)
	l.Post.Text = cmp.Or(l.File.Instead, unsent(l.File.Name, why))
	l.File, l.Tried = nil, true // an earlier run may have come as far as this
	_ = o.write(l)              // it was logged
	poke(o.wake)
}

// unsent tells that an agent's file is not posted.
func unsent(name, why string) string {
	return fmt.Sprintf("The agent wanted to post the file `%s`, and it cannot be: %s.", strings.ReplaceAll(escape(name), "`", "ˋ"), escape(why))
}

// discard removes the content of a letter's file. The caller holds mu.
func (o *outbox) discard(l *letter) {
	if l.File == nil {
		return
	}
	if err := os.Remove(filepath.Join(o.dir, l.File.Content)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.m.o.Log.Error("could not remove the copy of a posted file", "err", err)
	}
}

package attachments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// retryFor is for how long a download is retried whose failure may pass.
const retryFor = 5 * time.Minute

// Downloader downloads the files of replies. All fields but Fetcher are required.
type Downloader struct {
	Fetcher chat.Fetcher // nil: files are only named
	MaxSize func() int64 // bytes of one file; 0: files are only named
	Now     func() time.Time
	Log     *slog.Logger
}

// Reply is a reply whose files are downloaded.
type Reply struct {
	Ref    sessions.Ref // of the session that gets it
	Folder string       // the folder that the session works in
	TS     string
	Text   string
	Files  []chat.File
}

// Progress is what has become of the files of one reply so far, by their names on disk. It outlives a failed [Downloader.Download]:
// no file is downloaded twice, and a text that is composed again is the same.
type Progress struct {
	stored       map[string]bool
	failed       map[string]string // why
	failingSince time.Time         // since when a download fails; zero: none does
}

// NewProgress is that of a reply of which nothing was downloaded yet.
func NewProgress() *Progress {
	return &Progress{stored: map[string]bool{}, failed: map[string]string{}}
}

// Download downloads the files of a reply. It returns the reply's text with a line for each file, and what the thread is to
// be told of those that are missing. An error may pass: call it again with the same progress.
func (d *Downloader) Download(ctx context.Context, r Reply, p *Progress) (text, missing string, err error) {
	lines, told := []string{}, []string{}
	if strings.TrimSpace(r.Text) != "" {
		lines = append(lines, r.Text)
	}
	in := inbox{dir: r.Folder, ts: r.TS}
	for i, name := range safeNames(r.Files) {
		f := r.Files[i]
		why, err := d.file(ctx, r, p, in, name, f)
		switch {
		case err != nil:
			return "", "", err
		case f.Elsewhere:
			lines = append(lines, "Attached link: "+safeName(f.Name)+" "+oneLine(f.Link))
		case why != "":
			lines = append(lines, fmt.Sprintf("Attachment %s could not be downloaded: %s", safeName(f.Name), why))
			told = append(told, fmt.Sprintf("The agent did not get the file `%s`: %s.", chat.EscapeCode(Label(f.Name)), chat.Escape(why)))
		default:
			lines = append(lines, "Attached file: "+in.path(name))
		}
	}
	return strings.Join(lines, "\n"), strings.Join(told, "\n"), nil
}

// file downloads one file, unless it is there. why says why it never will be; err may pass.
func (d *Downloader) file(ctx context.Context, r Reply, p *Progress, in inbox, name string, f chat.File) (why string, err error) {
	if f.Elsewhere || p.stored[name] || p.failed[name] != "" {
		return p.failed[name], nil
	}
	err = d.fetch(ctx, in, name, f)
	var final *chat.FileError
	switch {
	case err == nil:
		p.stored[name], p.failingSince = true, time.Time{}
		return "", nil
	case ctx.Err() != nil, isDiskFull(err): // the reply waits with it
		return "", err
	case errors.As(err, &final):
		p.failed[name] = final.Why
	case p.failingSince.IsZero():
		p.failingSince = d.Now()
		return "", err
	case d.Now().Sub(p.failingSince) < retryFor:
		return "", err
	default:
		p.failed[name], p.failingSince = "it could not be fetched: "+err.Error(), time.Time{}
	}
	d.Log.Warn("a file of a reply could not be downloaded", "ref", r.Ref, "ts", r.TS, "file", f.ID, "because", p.failed[name])
	return p.failed[name], nil
}

func (d *Downloader) fetch(ctx context.Context, in inbox, name string, f chat.File) error {
	limit := d.MaxSize()
	switch {
	case d.Fetcher == nil || limit <= 0:
		return &chat.FileError{Why: "files are not fetched here: channels.slack.files.maxMB is 0"}
	case f.Size > limit:
		return tooLargeError(limit)
	}
	return in.store(name, f.Size, func(to io.Writer) error {
		return d.Fetcher.Fetch(ctx, f, &limitedWriter{to: to, left: limit, limit: limit})
	})
}

func tooLargeError(limit int64) error {
	return &chat.FileError{Why: fmt.Sprintf("it is larger than %d MB", limit>>20)}
}

// limitedWriter fails when more than limit bytes are written, whatever the file's size was said to be.
type limitedWriter struct {
	to          io.Writer
	left, limit int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, tooLargeError(w.limit)
	}
	return w.to.Write(p)
}

// isDiskFull reports whether a full disk is what failed: it passes when somebody makes room.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

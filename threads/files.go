package threads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// Folders knows where sessions work. The core does, see [sessions.Core.Folder].
type Folders interface {
	Folder(ctx context.Context, q sessions.FolderRequest) (string, error)
}

// fetchPatience is for how long a file is tried again whose failure may pass.
const fetchPatience = 5 * time.Minute

// download is what has become of the files of one reply so far, by their names on disk. It belongs to the attempt that is
// under way, and outlives it: nothing is fetched twice, and a text that is composed again is the same.
type download struct {
	stored       map[string]bool
	failed       map[string]string // why
	failingSince time.Time         // since when a file could not be fetched; zero: none fails
}

func newDownload() *download {
	return &download{stored: map[string]bool{}, failed: map[string]string{}}
}

// fetchAttachments fetches the files of a reply into the inbox in the session's folder. It returns the text with lines that name
// them, and what the thread is to be told of those that are missing.
func (t *thread) fetchAttachments(ctx context.Context, a attempt, c chat.Content) (text, missing string, err error) {
	dir, err := t.m.o.Folders.Folder(ctx, sessions.FolderRequest{Ref: t.ref, ID: t.sessionID})
	if err != nil {
		return "", "", err
	}
	lines, told := []string{}, []string{}
	if strings.TrimSpace(c.Text) != "" {
		lines = append(lines, c.Text)
	}
	in := inbox{dir: dir, ts: a.reply.TS}
	for i, name := range safeNames(c.Files) {
		f := c.Files[i]
		why, err := t.fetchAttachment(ctx, a.it.download, in, name, f)
		switch {
		case err != nil:
			return "", "", err
		case f.Elsewhere:
			lines = append(lines, "Attached link: "+safeName(f.Name)+" "+oneLine(f.Link))
		case why != "":
			lines = append(lines, fmt.Sprintf("Attached, but not here: %s (%s)", safeName(f.Name), why))
			told = append(told, fmt.Sprintf("The agent did not get the file `%s`: %s.", strings.ReplaceAll(escape(fileLabel(f)), "`", "ˋ"), escape(why)))
		default:
			lines = append(lines, "Attached file: "+in.path(name))
		}
	}
	return strings.Join(lines, "\n"), strings.Join(told, "\n"), nil
}

// maxNamedParts is how many parts of a message are named to the thread.
const maxNamedParts = 5

// unread says what of a message the agent was only told the names of; empty: nothing.
func unreadableText(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	names := strings.Join(missing[:min(len(missing), maxNamedParts)], ", ")
	if more := len(missing) - maxNamedParts; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "The agent did not get all of this message, I cannot read: " + escape(names) + ". Write it as text."
}

// joinNonEmpty are texts that are not empty, one below the other.
func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// fetchAttachment brings one file, unless it is there. why says for what reason it never will be; err is one that may pass.
func (t *thread) fetchAttachment(ctx context.Context, h *download, in inbox, name string, f chat.File) (why string, err error) {
	if f.Elsewhere || h.stored[name] || h.failed[name] != "" {
		return h.failed[name], nil
	}
	err = t.downloadFile(ctx, in, name, f)
	var final *chat.FileError
	switch {
	case err == nil:
		h.stored[name], h.failingSince = true, time.Time{}
		return "", nil
	case ctx.Err() != nil, isDiskFull(err): // the reply waits with it
		return "", err
	case errors.As(err, &final):
		h.failed[name] = final.Why
	case h.failingSince.IsZero():
		h.failingSince = t.m.o.Now()
		return "", err
	case t.m.o.Now().Sub(h.failingSince) < fetchPatience:
		return "", err
	default:
		h.failed[name], h.failingSince = "it could not be fetched: "+err.Error(), time.Time{}
	}
	t.m.o.Log.Warn("a file of a reply is missing", "ref", t.ref, "ts", in.ts, "file", f.ID, "because", h.failed[name])
	return h.failed[name], nil
}

func (t *thread) downloadFile(ctx context.Context, in inbox, name string, f chat.File) error {
	most := t.m.o.Settings().MaxFile
	switch {
	case t.m.o.Fetcher == nil || most <= 0:
		return &chat.FileError{Why: "files are not fetched here: channels.slack.files.maxMB is 0"}
	case f.Size > most:
		return tooLargeError(most)
	}
	return in.store(name, f.Size, func(to io.Writer) error {
		return t.m.o.Fetcher.Fetch(ctx, f, &limitedWriter{to: to, left: most, most: most})
	})
}

func tooLargeError(most int64) error {
	return &chat.FileError{Why: fmt.Sprintf("it is larger than %d MB", most>>20)}
}

// limitedWriter refuses what is longer than it may be, whatever its size was said to be.
type limitedWriter struct {
	to         io.Writer
	left, most int64
}

func (b *limitedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, tooLargeError(b.most)
	}
	return b.to.Write(p)
}

// shown is how a file is called in a text.
func fileLabel(f chat.File) string {
	name := oneLine(f.Name)
	if name == "" {
		return "a file"
	}
	return sessions.Truncate(name, 200)
}

func oneLine(text string) string { return strings.Join(strings.Fields(sessions.Clean(text)), " ") }

// path is where a file of the reply lies.
func (in inbox) path(name string) string { return filepath.Join(in.dir, inboxName, in.ts, name) }

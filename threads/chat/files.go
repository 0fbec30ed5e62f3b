package chat

import (
	"context"
	"errors"
	"io"
	"time"
)

// File is a file that came with a reply. Nothing of it is stored.
type File struct {
	ID        string
	Name      string // as its owner wrote it: no name for a disk
	Type      string // its MIME type, as announced
	Size      int64  // bytes, as announced; 0: not known
	URL       string // where the surface fetches it; empty: the surface has to ask
	Link      string // where people look at it
	Elsewhere bool   // it lies outside of Slack, so there is nothing but the link
}

// Fetcher fetches files.
type Fetcher interface {
	// Fetch writes the content of a file. Errors: a [*FileError] when no later try does better, [*RateLimitedError], and
	// any other when one may. What to's Write returns is returned, wrapped.
	Fetch(ctx context.Context, f File, to io.Writer) error
}

// FileError says, for a person, why a file is not to be had.
type FileError struct{ Why string }

func (e *FileError) Error() string { return e.Why }

// FileUpload is a file that is posted.
type FileUpload struct {
	Name string `json:"name"` // as people see it
	Size int64  `json:"size"` // bytes
	ID   string `json:"id,omitempty"`
}

// FileUploader posts files, in two steps: so it can be found out later whether the second was done. Errors: a [*FileError] when
// no later try does better, and those of [Poster].
type FileUploader interface {
	// Upload hands a file's content over, for nobody to see yet, and returns its id. It needs no id, name and size alone.
	Upload(ctx context.Context, f FileUpload, content io.Reader) (id string, err error)
	// Share posts the file with that id, with the post's text. [ErrNotUploaded] when Slack does not know it (any more);
	// [ErrOutcomeUnknown] when Slack may have posted it and did not say so.
	Share(ctx context.Context, f FileUpload, p Post) error
	// FindFile looks, in the thread of the post, for a message of ours from since on that holds the file: by its id, or
	// where it has none by name and size. Empty ts: there is none.
	FindFile(ctx context.Context, f FileUpload, p Post, since time.Time) (ts string, err error)
}

// ErrNotUploaded says that Slack has no file with that id to post.
var ErrNotUploaded = errors.New("no uploaded file of that id in Slack")

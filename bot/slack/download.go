package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// Files fetches and uploads files.
type Files struct{ *API }

// downloadStallTimeout is how long Slack may send nothing of a file.
const downloadStallTimeout = 30 * time.Second

// maxRedirects is how many redirects of a download are followed.
const maxRedirects = 3

// files are those of a message, and of the messages that it forwards.
func (m message) files() []chat.File {
	all := m.Objects("files")
	for _, a := range m.Objects("attachments") {
		if isPreview(a, m) {
			continue
		}
		all = append(all, a.Objects("files")...)
		for _, inner := range a.Objects("message_blocks") {
			all = append(all, inner.Obj("message").Objects("files")...)
		}
	}
	var files []chat.File
	known := map[string]bool{}
	for _, o := range all {
		f := parseFile(o)
		if f.ID == "" || !known[f.ID] {
			files = append(files, f)
		}
		known[f.ID] = true
	}
	return files
}

// parseFile reads a file as Slack writes it. In shared channels it may hold only an id, and a deleted one has no address: Slack is
// asked when it is fetched.
func parseFile(o lenientjson.Object) chat.File {
	size, _ := strconv.ParseInt(o.Str("size"), 10, 64) // 0: not known
	f := chat.File{ID: o.Str("id"), Name: cmp.Or(o.Str("name"), o.Str("title")), Type: o.Str("mimetype"), Size: size,
		URL: cmp.Or(o.Str("url_private_download"), o.Str("url_private")), Link: o.Str("permalink")}
	if o.IsTrue("is_external") || o.Str("mode") == "external" {
		f.Elsewhere, f.Link = true, cmp.Or(o.Str("url_private"), f.Link)
	}
	return f
}

// Fetch implements [chat.Fetcher]. The bot token goes to Slack's own hosts and to the API's, whatever the file says of
// itself and wherever it is redirected (GHSA-3q3v-34v2-g88f).
func (c *Files) Fetch(ctx context.Context, f chat.File, to io.Writer) error {
	if c.lacksScope(ScopeFetch) {
		return c.signInPageError()
	}
	if f.URL == "" {
		known, err := c.fileInfo(ctx, f)
		if err != nil {
			return err
		}
		f = known
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(downloadStallTimeout, cancel)
	defer alive.Stop()
	resp, err := c.openDownload(ctx, f.URL)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.copyFile(f, resp, &stallReader{Reader: resp.Body, stallTimer: alive}, to)
}

// stallReader resets a timer with every read, so that a body that stalls is closed.
type stallReader struct {
	io.Reader
	stallTimer *time.Timer
}

func (l *stallReader) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	l.stallTimer.Reset(downloadStallTimeout)
	return n, err
}

// copyFile copies the file, unless it is Slack's sign-in page: HTML where none was announced, or HTML of another length.
func (c *Files) copyFile(f chat.File, resp *http.Response, body io.Reader, to io.Writer) error {
	page := isHTML(resp.Header.Get("Content-Type"))
	if page && !isHTML(f.Type) {
		return c.signInPageError()
	}
	n, err := io.Copy(to, body)
	switch {
	case err != nil:
		return fmt.Errorf("fetch %s: %w", f.ID, withoutURL(err))
	case page && f.Size > 0 && n != f.Size:
		return c.signInPageError()
	}
	return nil
}

func isHTML(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}

// signInPageError is the error that a sign-in page stands for.
func (c *Files) signInPageError() error {
	if c.lacksScope(ScopeFetch) {
		return missingScopeError(ScopeFetch)
	}
	return &chat.FileError{Why: "Slack answered with its sign-in page, so the bot may not read it"}
}

// openDownload requests a file and follows redirects to trusted hosts.
func (c *Files) openDownload(ctx context.Context, from string) (*http.Response, error) {
	for range maxRedirects + 1 {
		u, err := url.Parse(from)
		if err != nil || !c.transport.isTrusted(u) {
			return nil, &chat.FileError{Why: "its address is not one of Slack's, and the bot's token goes nowhere else"}
		}
		resp, err := c.get(ctx, u)
		if err != nil {
			return nil, err
		}
		next, err := resp.Location()
		if resp.StatusCode/100 != 3 || err != nil {
			return checkDownloadStatus(resp)
		}
		_ = resp.Body.Close()
		if next.Query().Has("redir") { // to the sign-in page, with the way back
			return nil, c.signInPageError()
		}
		from = next.String()
	}
	return nil, &chat.FileError{Why: "Slack redirects it too often"}
}

func (c *Files) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &chat.FileError{Why: "its address cannot be used"}
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.transport.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch a file: %w", withoutURL(err))
	}
	return resp, nil
}

// withoutURL is an error without the address, which is a secret of its own.
func withoutURL(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// checkDownloadStatus returns the response when it holds the file. A failure of Slack's may pass; a refusal is a [chat.FileError].
func checkDownloadStatus(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	_ = resp.Body.Close()
	normalizeRetryAfter(resp)
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // it is in seconds now
		return nil, fmt.Errorf("fetch a file: %w", &chat.RateLimitedError{After: time.Duration(after) * time.Second})
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusRequestTimeout:
		return nil, fmt.Errorf("fetch a file: %s", resp.Status)
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return nil, &chat.FileError{Why: "it is no longer in Slack"}
	}
	return nil, &chat.FileError{Why: "Slack refuses it (" + resp.Status + ")"}
}

// fileInfo asks Slack for the details of a file.
func (c *Files) fileInfo(ctx context.Context, f chat.File) (chat.File, error) {
	a, err := c.call(ctx, MethodFile, url.Values{"file": {f.ID}})
	var named *APIError
	var refused *FatalError
	switch {
	case errors.As(err, &refused) && refused.Code == "missing_scope":
		return f, missingScopeError(cmp.Or(refused.Needed, ScopeFetch))
	case errors.As(err, &named) && classOfCode(named.Code).sentinel != nil:
		return f, &chat.FileError{Why: "it is no longer in Slack, or the bot may not see it (" + named.Code + ")"}
	case err != nil:
		return f, err
	}
	known := parseFile(a.Obj("file"))
	switch {
	case known.Elsewhere:
		return f, &chat.FileError{Why: "it is stored outside of Slack: " + known.Link}
	case known.URL == "":
		return f, &chat.FileError{Why: "it was deleted, or the workspace's plan hides it"}
	}
	return known, nil
}

package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"the-loop/threads/chat"
)

// fetchStall is how long Slack may send nothing of a file.
const fetchStall = 30 * time.Second

// maxHops is how many redirects of a download are followed.
const maxHops = 3

// files are those that came with a message, also with one that it passes on.
func (m message) files() []chat.File {
	all := m.objects("files")
	for _, a := range m.objects("attachments") {
		if isPreview(a, m) {
			continue
		}
		all = append(all, a.objects("files")...)
		for _, inner := range a.objects("message_blocks") {
			all = append(all, inner.obj("message").objects("files")...)
		}
	}
	var files []chat.File
	known := map[string]bool{}
	for _, o := range all {
		f := fileOf(o)
		if f.ID == "" || !known[f.ID] {
			files = append(files, f)
		}
		known[f.ID] = true
	}
	return files
}

// fileOf reads a file as Slack writes it. In channels that are shared it may hold no more than an id, and what is deleted
// has no address: Slack is asked for it when it is fetched.
func fileOf(o object) chat.File {
	size, _ := strconv.ParseInt(o.str("size"), 10, 64) // 0: not known
	f := chat.File{ID: o.str("id"), Name: first(o.str("name"), o.str("title")), Type: o.str("mimetype"), Size: size,
		URL: first(o.str("url_private_download"), o.str("url_private")), Link: o.str("permalink")}
	if o.is("is_external") || o.str("mode") == "external" {
		f.Elsewhere, f.Link = true, first(o.str("url_private"), f.Link)
	}
	return f
}

// Fetch implements [threads.Fetcher]. The bot token goes to Slack's own hosts and to the InjectAPI's, whatever the file says of
// itself and wherever it is redirected (GHSA-3q3v-34v2-g88f).
func (c *Client) Fetch(ctx context.Context, f chat.File, to io.Writer) error {
	if c.lacks(scopeFetch) {
		return c.noEntry()
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
	alive := time.AfterFunc(fetchStall, cancel)
	defer alive.Stop()
	resp, err := c.download(ctx, f.URL)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.copyFile(f, resp, &living{Reader: resp.Body, alive: alive}, to)
}

// living is a body that is given up when nothing comes for a while.
type living struct {
	io.Reader
	alive *time.Timer
}

func (l *living) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	l.alive.Reset(fetchStall)
	return n, err
}

// copyFile takes the file, unless it is Slack's sign-in page: HTML where none was announced, or HTML of another length.
func (c *Client) copyFile(f chat.File, resp *http.Response, body io.Reader, to io.Writer) error {
	page := isHTML(resp.Header.Get("Content-Type"))
	if page && !isHTML(f.Type) {
		return c.noEntry()
	}
	n, err := io.Copy(to, body)
	switch {
	case err != nil:
		return fmt.Errorf("fetch %s: %w", f.ID, unaddressed(err))
	case page && f.Size > 0 && n != f.Size:
		return c.noEntry()
	}
	return nil
}

func isHTML(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}

// noEntry is what a sign-in page means.
func (c *Client) noEntry() error {
	if c.lacks(scopeFetch) {
		return noScope(scopeFetch)
	}
	return &chat.FileError{Why: "Slack answered with its sign-in page, so the bot may not read it"}
}

// lacks reports that the token is known to be without a scope.
func (c *Client) lacks(scope string) bool {
	have := c.Self().Scopes
	return have != nil && !slices.Contains(have, scope)
}

// download asks for a file and follows redirects to where the token may go.
func (c *Client) download(ctx context.Context, from string) (*http.Response, error) {
	for range maxHops + 1 {
		u, err := url.Parse(from)
		if err != nil || !c.wire.trusts(u) {
			return nil, &chat.FileError{Why: "its address is not one of Slack's, and the bot's token goes nowhere else"}
		}
		resp, err := c.ask(ctx, u)
		if err != nil {
			return nil, err
		}
		next, err := resp.Location()
		if resp.StatusCode/100 != 3 || err != nil {
			return answered(resp)
		}
		_ = resp.Body.Close()
		if next.Query().Has("redir") { // to the sign-in page, with the way back
			return nil, c.noEntry()
		}
		from = next.String()
	}
	return nil, &chat.FileError{Why: "Slack sends from one address to the next for it"}
}

func (c *Client) ask(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &chat.FileError{Why: "its address cannot be used"}
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.wire.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch a file: %w", unaddressed(err))
	}
	return resp, nil
}

// unaddressed is an error without the address: those of files may let in whoever knows them.
func unaddressed(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// answered passes a response on that holds the file. A failure of Slack's may pass; what it refuses stays refused.
func answered(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	_ = resp.Body.Close()
	mendRetryAfter(resp)
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // it was mended
		return nil, fmt.Errorf("fetch a file: %w", &chat.RateLimitedError{After: time.Duration(after) * time.Second})
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusRequestTimeout:
		return nil, fmt.Errorf("fetch a file: %s", resp.Status)
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return nil, &chat.FileError{Why: "it is no longer in Slack"}
	}
	return nil, &chat.FileError{Why: "Slack refuses it (" + resp.Status + ")"}
}

// fileInfo asks Slack for a file of which the message told too little.
func (c *Client) fileInfo(ctx context.Context, f chat.File) (chat.File, error) {
	a, err := c.call(ctx, methodFile, url.Values{"file": {f.ID}})
	var named *APIError
	var refused *FatalError
	switch {
	case errors.As(err, &refused) && refused.Code == "missing_scope":
		return f, noScope(first(refused.Needed, scopeFetch))
	case errors.As(err, &named) && meaningOf(named.Code).is != nil:
		return f, &chat.FileError{Why: "it is no longer in Slack, or the bot may not see it (" + named.Code + ")"}
	case err != nil:
		return f, err
	}
	known := fileOf(a.obj("file"))
	switch {
	case known.Elsewhere:
		return f, &chat.FileError{Why: "it lies outside of Slack: " + known.Link}
	case known.URL == "":
		return f, &chat.FileError{Why: "it was deleted, or is hidden by the limits of the workspace's plan"}
	}
	return known, nil
}

var _ chat.Fetcher = (*Client)(nil)

package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"the-loop/threads/chat"
)

// Upload implements [threads.FileUploader]. It leaves the deadline to its caller: large files take their time.
func (c *Client) Upload(ctx context.Context, f chat.FileUpload, content io.Reader) (id string, err error) {
	if !c.mayUpload() {
		return "", noScope(scopeUpload)
	}
	a, err := c.call(ctx, methodUploadURL, url.Values{"filename": {f.Name}, "length": {strconv.FormatInt(f.Size, 10)}})
	if err != nil {
		return "", unpostable(err)
	}
	return a.str("file_id"), c.send(ctx, a.str("upload_url"), content, f.Size)
}

// Share implements [threads.FileUploader]. Slack does not say where the file came to stand, so the thread is looked at first: without
// its root it would be the channel.
func (c *Client) Share(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	if err := c.mayPost(ctx, p.Channel); err != nil {
		return err
	}
	if err := c.rooted(ctx, p); err != nil {
		return err
	}
	args := completion(f.ID, f.Name, p.Channel, p.Root)
	setIf(args, "initial_comment", c.clean(p.Text))
	_, err := c.calling(ctx, methodUpload, true, args)
	if code(err) == "file_not_found" {
		return c.complete(ctx, f, p)
	}
	return unpostable(err)
}

// rooted fails with [threads.ErrThreadGone] when the root of the post's thread was deleted.
func (c *Client) rooted(ctx context.Context, p chat.Post) error {
	a, err := c.call(ctx, methodReplies, url.Values{"channel": {p.Channel}, "ts": {p.Root}, "limit": {"1"}})
	if err != nil {
		return err
	}
	for _, o := range a.objects("messages") {
		if m := (message{object: o}); m.ts() == p.Root && m.subtype() == subtypeTombstone {
			return fmt.Errorf("%s: the root was deleted: %w", methodReplies, chat.ErrThreadGone)
		}
	}
	return nil
}

// complete tells a file that was posted already from one that Slack does not know (any more): it knows only those whose upload
// was completed.
func (c *Client) complete(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	a, err := c.call(ctx, methodFile, url.Values{"file": {f.ID}})
	switch {
	case code(err) == "missing_scope":
		return &chat.FileError{Why: "I cannot tell whether it was posted, since the Slack app lacks the scope " + scopeFetch}
	case err != nil && code(err) != "file_not_found":
		return err
	case err != nil, !a.obj("file").isIn(p.Channel):
		return fmt.Errorf("%s: %w", methodUpload, chat.ErrNotUploaded)
	}
	return nil
}

// isIn reports whether a file is seen in a channel.
func (o object) isIn(channel string) bool {
	for _, kind := range []string{"channels", "groups", "ims"} {
		var ids []string
		if json.Unmarshal(o[kind], &ids) == nil && slices.Contains(ids, channel) {
			return true
		}
	}
	return false
}

// FindFile implements [threads.FileUploader]. The search begins a minute before since, which is by Slack's clock.
func (c *Client) FindFile(ctx context.Context, f chat.FileUpload, p chat.Post, since time.Time) (string, error) {
	if err := c.known(ctx); err != nil {
		return "", err
	}
	args := url.Values{"channel": {p.Channel}, "ts": {p.Root}, "limit": {pageSize}}
	if !since.IsZero() {
		args.Set("oldest", chat.TimeTS(since.Add(-time.Minute)))
	}
	return c.findOwn(ctx, methodReplies, args, func(m message) bool {
		return slices.ContainsFunc(m.files(), func(o chat.File) bool {
			if f.ID != "" {
				return o.ID == f.ID
			}
			return o.Name == c.clean(f.Name) && o.Size == f.Size
		})
	})
}

// unpostable is the error of a method for files: what Slack refuses by name stays refused, but for trouble of its own, and
// what is true of any message.
func unpostable(err error) error {
	var named *APIError
	var refused *FatalError
	switch {
	case errors.As(err, &refused) && refused.Code == "missing_scope":
		return noScope(refused.Needed)
	case errors.As(err, &named) && errors.Is(err, chat.ErrRefused):
		return &chat.FileError{Why: "Slack refuses it (" + named.Code + ")"}
	}
	return err
}

func noScope(scope string) error {
	return &chat.FileError{Why: "the Slack app lacks the scope " + first(scope, scopeUpload) + "; add it in the app's settings and reinstall the app"}
}

var _ chat.FileUploader = (*Client)(nil)

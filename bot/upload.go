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
		return "", missingScopeError(scopeUpload)
	}
	a, err := c.call(ctx, methodUploadURL, url.Values{"filename": {f.Name}, "length": {strconv.FormatInt(f.Size, 10)}})
	if err != nil {
		return "", fileError(err)
	}
	return a.str("file_id"), c.uploadBytes(ctx, a.str("upload_url"), content, f.Size)
}

// Share implements [threads.FileUploader]. Slack does not say where the file came to stand, so the thread is looked at first: without
// its root it would be the channel.
func (c *Client) Share(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return err
	}
	if err := c.checkRootExists(ctx, p); err != nil {
		return err
	}
	args := completeUploadArgs(f.ID, f.Name, p.Channel, p.Root)
	setIf(args, "initial_comment", c.scrubText(p.Text))
	_, err := c.callWithEffect(ctx, methodUpload, true, args)
	if errorCode(err) == "file_not_found" {
		return c.checkAlreadyShared(ctx, f, p)
	}
	return fileError(err)
}

// checkRootExists fails with [threads.ErrThreadGone] when the root of the post's thread was deleted.
func (c *Client) checkRootExists(ctx context.Context, p chat.Post) error {
	a, err := c.call(ctx, methodReplies, url.Values{"channel": {p.Channel}, "ts": {p.Root}, "limit": {"1"}})
	if err != nil {
		return err
	}
	for _, o := range a.objects("messages") {
		if m := (message{rawObject: o}); m.ts() == p.Root && m.subtype() == subtypeTombstone {
			return fmt.Errorf("%s: the root was deleted: %w", methodReplies, chat.ErrThreadGone)
		}
	}
	return nil
}

// checkAlreadyShared tells a file that was posted already from one that Slack does not know (any more): it knows only those whose upload
// was completed.
func (c *Client) checkAlreadyShared(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	a, err := c.call(ctx, methodFile, url.Values{"file": {f.ID}})
	switch {
	case errorCode(err) == "missing_scope":
		return &chat.FileError{Why: "I cannot tell whether it was posted, since the Slack app lacks the scope " + scopeFetch}
	case err != nil && errorCode(err) != "file_not_found":
		return err
	case err != nil, !a.obj("file").isSharedIn(p.Channel):
		return fmt.Errorf("%s: %w", methodUpload, chat.ErrNotUploaded)
	}
	return nil
}

// isSharedIn reports whether a file is seen in a channel.
func (o rawObject) isSharedIn(channel string) bool {
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
	if err := c.ensureIdentified(ctx); err != nil {
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
			return o.Name == c.scrubText(f.Name) && o.Size == f.Size
		})
	})
}

// fileError is the error of a method for files: what Slack refuses by name stays refused, but for trouble of its own, and
// what is true of any message.
func fileError(err error) error {
	var named *APIError
	var refused *FatalError
	switch {
	case errors.As(err, &refused) && refused.Code == "missing_scope":
		return missingScopeError(refused.Needed)
	case errors.As(err, &named) && errors.Is(err, chat.ErrRefused):
		return &chat.FileError{Why: "Slack refuses it (" + named.Code + ")"}
	}
	return err
}

func missingScopeError(scope string) error {
	return &chat.FileError{Why: "the Slack app lacks the scope " + firstNonEmpty(scope, scopeUpload) + "; add it in the app's settings and reinstall the app"}
}

var _ chat.FileUploader = (*Client)(nil)

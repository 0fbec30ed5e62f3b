package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// Upload implements [chat.FileUploader]. The caller sets the deadline, since large files take long.
func (c *Files) Upload(ctx context.Context, f chat.FileUpload, content io.Reader) (id string, err error) {
	if !c.MayUpload() {
		return "", missingScopeError(ScopeUpload)
	}
	a, err := c.call(ctx, MethodUploadURL, url.Values{"filename": {f.Name}, "length": {strconv.FormatInt(f.Size, 10)}})
	if err != nil {
		return "", fileError(err)
	}
	return a.Str("file_id"), c.uploadBytes(ctx, a.Str("upload_url"), content, f.Size)
}

// Share implements [chat.FileUploader]. Slack does not say where the file was posted, so the thread is read first: without
// its root the file would stand in the channel.
func (c *Files) Share(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return err
	}
	if err := c.checkRootExists(ctx, p); err != nil {
		return err
	}
	args := completeUploadArgs(f.ID, f.Name, p.Channel, p.Root)
	setIf(args, "initial_comment", c.scrubText(p.Text))
	_, err := c.callWithEffect(ctx, MethodUpload, true, args)
	if ErrorCode(err) == "file_not_found" {
		return c.checkAlreadyShared(ctx, f, p)
	}
	return fileError(err)
}

// checkRootExists fails with [chat.ErrThreadGone] when the root of the post's thread was deleted.
func (c *Files) checkRootExists(ctx context.Context, p chat.Post) error {
	a, err := c.call(ctx, MethodReplies, url.Values{"channel": {p.Channel}, "ts": {p.Root}, "limit": {"1"}})
	if err != nil {
		return err
	}
	for _, o := range a.Objects("messages") {
		if m := (message{Object: o}); m.ts() == p.Root && m.subtype() == subtypeTombstone {
			return fmt.Errorf("%s: the root was deleted: %w", MethodReplies, chat.ErrThreadGone)
		}
	}
	return nil
}

// checkAlreadyShared returns nil when the file was posted already, and [chat.ErrNotUploaded] when Slack does not know it: it knows
// only files whose upload was completed.
func (c *Files) checkAlreadyShared(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	a, err := c.call(ctx, MethodFile, url.Values{"file": {f.ID}})
	switch {
	case ErrorCode(err) == "missing_scope":
		return &chat.FileError{Why: "I cannot tell whether it was posted, since the Slack app lacks the scope " + ScopeFetch}
	case err != nil && ErrorCode(err) != "file_not_found":
		return err
	case err != nil, !isSharedIn(a.Obj("file"), p.Channel):
		return fmt.Errorf("%s: %w", MethodUpload, chat.ErrNotUploaded)
	}
	return nil
}

// isSharedIn reports whether a file was posted in a channel.
func isSharedIn(o lenientjson.Object, channel string) bool {
	for _, kind := range []string{"channels", "groups", "ims"} {
		var ids []string
		if json.Unmarshal(o[kind], &ids) == nil && slices.Contains(ids, channel) {
			return true
		}
	}
	return false
}

// FindFile implements [chat.FileUploader]. The search begins a minute before since, which is by Slack's clock.
func (c *Files) FindFile(ctx context.Context, f chat.FileUpload, p chat.Post, since time.Time) (string, error) {
	if err := c.EnsureIdentified(ctx); err != nil {
		return "", err
	}
	args := url.Values{"channel": {p.Channel}, "ts": {p.Root}, "limit": {pageSize}}
	if !since.IsZero() {
		args.Set("oldest", chat.TimeTS(since.Add(-time.Minute)))
	}
	return c.findOwn(ctx, MethodReplies, args, func(m message) bool {
		return slices.ContainsFunc(m.files(), func(o chat.File) bool {
			if f.ID != "" {
				return o.ID == f.ID
			}
			return o.Name == c.scrubText(f.Name) && o.Size == f.Size
		})
	})
}

// fileError makes a [chat.FileError] of a refusal of the file itself.
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
	return &chat.FileError{Why: "the Slack app lacks the scope " + cmp.Or(scope, ScopeUpload) + "; add it in the app's settings and reinstall the app"}
}

// ErrNoUpload says that the bot may not upload files.
var ErrNoUpload = errors.New("the bot may not upload files: the token lacks the scope files:write")

// MayUpload reports whether files can be uploaded, as far as Slack said.
func (c *Files) MayUpload() bool {
	return !c.lacksScope(ScopeUpload)
}

// PostFile posts a file in a thread. ErrNoUpload when the bot may not.
func (c *Files) PostFile(ctx context.Context, channel, root, name, title string, data []byte) error {
	if !c.MayUpload() {
		return ErrNoUpload
	}
	if err := c.checkMayPost(ctx, channel); err != nil {
		return err
	}
	a, err := c.call(ctx, MethodUploadURL, url.Values{"filename": {name}, "length": {strconv.Itoa(len(data))}, "alt_txt": {title}})
	if ErrorCode(err) == "missing_scope" {
		return ErrNoUpload
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	if err := c.uploadBytes(ctx, a.Str("upload_url"), bytes.NewReader(data), int64(len(data))); err != nil {
		return err
	}
	_, err = c.call(ctx, MethodUpload, completeUploadArgs(a.Str("file_id"), title, channel, root))
	return err
}

// completeUploadArgs are the arguments with which an uploaded file is posted.
func completeUploadArgs(id, title, channel, root string) url.Values {
	files, _ := json.Marshal([]map[string]string{{"id": id, "title": title}}) // strings encode
	return url.Values{"files": {string(files)}, "channel_id": {channel}, "thread_ts": {root}}
}

// uploadBytes sends a file's content to the address that Slack gave, without a token. The address is a secret of its own.
func (c *Files) uploadBytes(ctx context.Context, to string, content io.Reader, size int64) error {
	u, err := url.Parse(to)
	if err != nil || !c.transport.isTrusted(u) {
		return errors.New("refusing to upload to an address that is not Slack's")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, content)
	if err != nil {
		return errors.New("the address for the upload cannot be used")
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.transport.send(req)
	if err != nil {
		return fmt.Errorf("upload: %w", withoutURL(err))
	}
	switch status := resp.StatusCode; {
	case status == http.StatusOK:
		return nil
	case status/100 == 4 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return &chat.FileError{Why: "Slack refuses it (" + resp.Status + ")"} // the address is a fresh one
	}
	return fmt.Errorf("upload: %s", resp.Status)
}

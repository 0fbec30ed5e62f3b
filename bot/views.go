package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// viewRef is a modal or a Home tab that is open.
type viewRef struct {
	ID   string
	Kind string // modal or home
	Meta string // private_metadata
}

// The kinds of views, as payloads name them.
const (
	kindModal = "modal"
	kindHome  = "home"
)

// openView opens a modal for whoever the trigger came from, within 3 s of the act. From a modal it goes on top of that.
func (c *Client) openView(ctx context.Context, a Interaction, view slack.ModalViewRequest) (id string, err error) {
	method := methodViewOpen
	if a.View.Kind == kindModal {
		method = methodViewPush
	}
	return c.callView(ctx, method, url.Values{"trigger_id": {a.TriggerID}}, view)
}

// updateView has an open modal show something else.
func (c *Client) updateView(ctx context.Context, id string, view slack.ModalViewRequest) error {
	_, err := c.callView(ctx, methodViewUpdate, url.Values{"view_id": {id}}, view)
	return err
}

// publishHome has a member's Home tab show something else.
func (c *Client) publishHome(ctx context.Context, user string, view slack.HomeTabViewRequest) error {
	_, err := c.callView(ctx, methodHome, url.Values{"user_id": {user}}, view)
	return err
}

func (c *Client) callView(ctx context.Context, method string, args url.Values, view any) (id string, err error) {
	raw, err := json.Marshal(view)
	if err != nil {
		return "", fmt.Errorf("%s: %w", method, err)
	}
	args.Set("view", string(raw))
	a, err := c.call(ctx, method, args)
	return a.obj("view").str("id"), err
}

// errNoUpload says that the bot may not upload files.
var errNoUpload = errors.New("the bot may not upload files: the token lacks the scope files:write")

// mayUpload reports whether files can be uploaded, as far as Slack said.
func (c *Client) mayUpload() bool {
	return !c.lacksScope(scopeUpload)
}

// upload posts a file in a thread. errNoUpload when the bot may not.
func (c *Client) postFile(ctx context.Context, channel, root, name, title string, data []byte) error {
	if !c.mayUpload() {
		return errNoUpload
	}
	if err := c.checkMayPost(ctx, channel); err != nil {
		return err
	}
	a, err := c.call(ctx, methodUploadURL, url.Values{"filename": {name}, "length": {strconv.Itoa(len(data))}, "alt_txt": {title}})
	if errorCode(err) == "missing_scope" {
		return errNoUpload
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	if err := c.uploadBytes(ctx, a.str("upload_url"), bytes.NewReader(data), int64(len(data))); err != nil {
		return err
	}
	_, err = c.call(ctx, methodUpload, completeUploadArgs(a.str("file_id"), title, channel, root))
	return err
}

// completeUploadArgs are the arguments that post an uploaded file.
func completeUploadArgs(id, title, channel, root string) url.Values {
	files, _ := json.Marshal([]map[string]string{{"id": id, "title": title}}) // strings encode
	return url.Values{"files": {string(files)}, "channel_id": {channel}, "thread_ts": {root}}
}

// uploadBytes puts a file's bytes where Slack said. The address is a secret of its own, and no token goes with it.
func (c *Client) uploadBytes(ctx context.Context, to string, content io.Reader, size int64) error {
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

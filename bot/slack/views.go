package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	slackgo "github.com/slack-go/slack"
)

// OpenView opens a modal for the member whose trigger it is, and returns its id. A trigger is valid for 3 s.
func (c *Writer) OpenView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (id string, err error) {
	return c.callView(ctx, MethodViewOpen, url.Values{"trigger_id": {trigger}}, view)
}

// PushView opens a modal on top of the one that the trigger came from.
func (c *Writer) PushView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (id string, err error) {
	return c.callView(ctx, MethodViewPush, url.Values{"trigger_id": {trigger}}, view)
}

// UpdateView replaces the content of an open modal.
func (c *Writer) UpdateView(ctx context.Context, id string, view slackgo.ModalViewRequest) error {
	_, err := c.callView(ctx, MethodViewUpdate, url.Values{"view_id": {id}}, view)
	return err
}

// PublishHome replaces the content of a member's Home tab.
func (c *Writer) PublishHome(ctx context.Context, user string, view slackgo.HomeTabViewRequest) error {
	_, err := c.callView(ctx, MethodHome, url.Values{"user_id": {user}}, view)
	return err
}

func (c *Writer) callView(ctx context.Context, method string, args url.Values, view any) (id string, err error) {
	raw, err := json.Marshal(view)
	if err != nil {
		return "", fmt.Errorf("%s: %w", method, err)
	}
	args.Set("view", string(raw))
	a, err := c.call(ctx, method, args)
	return a.Obj("view").Str("id"), err
}

package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	slackgo "github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// SetStatus implements [chat.StatusSetter]. Slack shows the text behind the app's name, in threads of channels too.
func (c *Writer) SetStatus(ctx context.Context, channel, root, text string) error {
	if err := c.checkMayPost(ctx, channel); err != nil && text != "" {
		return err
	}
	_, err := c.call(ctx, MethodStatus, url.Values{"channel_id": {channel}, "thread_ts": {root}, "status": {text}})
	return classifyStatusError(err)
}

// classifyStatusError returns [chat.ErrNoStatus] for an error that no later try changes: a missing scope among them, since everything
// else works without it.
func classifyStatusError(err error) error {
	var status slackgo.StatusCodeError
	switch name := ErrorCode(err); {
	case errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusNotImplemented):
	case name == "", classOfCode(name).sentinel == nil, errors.Is(err, chat.ErrUnavailable), errors.Is(err, chat.ErrThreadGone):
		return err
	}
	return fmt.Errorf("%w: %w", chat.ErrNoStatus, err)
}

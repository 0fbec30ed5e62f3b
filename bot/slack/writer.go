package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// Writer posts, edits and deletes messages, reacts to them, and opens views.
type Writer struct {
	*API
	renderer Renderer
}

// Post implements [chat.Poster]. A reply whose root was deleted meanwhile would stand in the channel itself: Slack
// posts it there. It is deleted, and the error is [chat.ErrThreadGone].
func (c *Writer) Post(ctx context.Context, p chat.Post) (string, error) {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return "", err
	}
	options, err := c.messageOptions(p)
	if err != nil {
		return "", fmt.Errorf("post in %s: %w", p.Channel, err)
	}
	if p.Root != "" {
		options = append(options, slackgo.MsgOptionTS(p.Root))
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, ts, posted, err := c.lib.PostMessageWithResponseContext(callCtx, p.Channel, options...)
	if err != nil {
		return "", classify(MethodPost, botTokenName, true, err)
	}
	if p.Root != "" && posted.Timestamp != "" && posted.ThreadTimestamp != p.Root {
		return "", errors.Join(fmt.Errorf("%s: the root was deleted: %w", MethodPost, chat.ErrThreadGone), c.Delete(ctx, p.Channel, ts))
	}
	return ts, nil
}

// Update implements [chat.Poster].
func (c *Writer) Update(ctx context.Context, ts string, p chat.Post) error {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return err
	}
	options, err := c.messageOptions(p)
	if err != nil {
		return fmt.Errorf("update in %s: %w", p.Channel, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, _, _, err = c.lib.UpdateMessageContext(ctx, p.Channel, ts, options...)
	return classify(MethodUpdate, botTokenName, false, err)
}

// Delete deletes a message of ours. One that is gone is no error.
func (c *Writer) Delete(ctx context.Context, channel, ts string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, _, err := c.lib.DeleteMessageContext(ctx, channel, ts)
	if err = classify(MethodDelete, botTokenName, false, err); errors.Is(err, chat.ErrReplyGone) {
		return nil
	}
	return err
}

// PostEphemeral posts what only one member sees, in a thread when root is set.
func (c *Writer) PostEphemeral(ctx context.Context, channel, root, user, text string, buttons ...chat.Button) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, blocks, err := c.renderer.RenderEphemeral(c.scrubText(text), buttons)
	if err != nil {
		return fmt.Errorf("%s: %w", MethodEphemeral, err)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionText(text, false)}
	if len(blocks) > 0 {
		options = append(options, slackgo.MsgOptionBlocks(blocks...))
	}
	if root != "" {
		options = append(options, slackgo.MsgOptionTS(root))
	}
	_, err = c.lib.PostEphemeralContext(ctx, channel, user, options...)
	return classify(MethodEphemeral, botTokenName, false, err)
}

// Respond answers through a response URL, for the member who acted only.
func (c *Writer) Respond(ctx context.Context, to, root, text string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, blocks, err := c.renderer.RenderEphemeral(c.scrubText(text), nil)
	if err != nil {
		return fmt.Errorf("answer to the response URL: %w", err)
	}
	body := map[string]any{"response_type": "ephemeral", "replace_original": false, "text": text}
	if len(blocks) > 0 {
		body["blocks"] = blocks
	}
	if root != "" {
		body["thread_ts"] = root
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.transport.postResponse(ctx, to, raw)
}

// AddReaction implements [chat.ReactionWriter].
func (c *Writer) AddReaction(ctx context.Context, channel, ts, emoji string) error {
	if err := c.checkMayPost(ctx, channel); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.lib.AddReactionContext(ctx, strings.Trim(emoji, ":"), slackgo.NewRefToMessage(channel, ts))
	return ignoreCode("already_reacted", classify(MethodReact, botTokenName, false, err))
}

// RemoveReaction implements [chat.ReactionWriter].
func (c *Writer) RemoveReaction(ctx context.Context, channel, ts, emoji string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.lib.RemoveReactionContext(ctx, strings.Trim(emoji, ":"), slackgo.NewRefToMessage(channel, ts))
	return ignoreCode("no_reaction", classify(MethodUnreact, botTokenName, false, err))
}

// ignoreCode returns err unless it is the error that Slack names so.
func ignoreCode(code string, err error) error {
	if ErrorCode(err) == code {
		return nil
	}
	return err
}

func (c *Writer) messageOptions(p chat.Post) ([]slackgo.MsgOption, error) {
	p.Text = c.scrubText(p.Text)
	text, blocks, err := c.renderer.RenderPost(p)
	if err != nil { // the next try would fail too
		return nil, fmt.Errorf("%w: %w", chat.ErrRefused, err)
	}
	markNonce(blocks, p.Nonce)
	return []slackgo.MsgOption{slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...),
		slackgo.MsgOptionMetadata(metadataOf(p)), slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, nil
}

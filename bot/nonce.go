package bot

import (
	"strings"

	"github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// metadataEvent is the event type of the metadata of our messages.
const metadataEvent = "the_loop"

// noncePrefix begins the id of a message's first block; the nonce follows. It travels there as well as in the metadata,
// which Slack may keep from an app that has no scope to read metadata.
const noncePrefix = "the_loop."

// metadataOf is the metadata that a post travels with.
func metadataOf(p chat.Post) slack.SlackMetadata {
	payload := map[string]any{"nonce": p.Nonce}
	if p.Session != "" {
		payload["session"] = p.Session
	}
	return slack.SlackMetadata{EventType: metadataEvent, EventPayload: payload}
}

// markNonce puts the nonce into the id of the first block.
func markNonce(blocks []slack.Block, nonce string) {
	if len(blocks) == 0 || nonce == "" {
		return
	}
	if section, ok := blocks[0].(*slack.SectionBlock); ok {
		section.BlockID = noncePrefix + nonce
	}
}

// nonce is the nonce of a post of ours: from its metadata, else from the id of its first block.
func (m message) nonce() string {
	meta := m.obj("metadata")
	if meta.str("event_type") == metadataEvent {
		return meta.obj("event_payload").str("nonce")
	}
	for _, b := range m.objects("blocks") {
		if nonce, ok := strings.CutPrefix(b.str("block_id"), noncePrefix); ok {
			return nonce
		}
	}
	return ""
}

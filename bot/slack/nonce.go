package slack

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// metadataEvent is the event type of the metadata of our messages.
const metadataEvent = "the_loop"

// noncePrefix begins the id of a message's first block; the nonce follows. It travels there as well as in the metadata,
// which Slack may keep from an app that has no scope to read metadata.
const noncePrefix = "the_loop."

// metadataOf is the metadata that a post travels with.
func metadataOf(p chat.Post) slackgo.SlackMetadata {
	payload := map[string]any{"nonce": p.Nonce}
	if p.Session != "" {
		payload["session"] = p.Session
	}
	return slackgo.SlackMetadata{EventType: metadataEvent, EventPayload: payload}
}

// markNonce puts the nonce into the id of the first block.
func markNonce(blocks []slackgo.Block, nonce string) {
	if len(blocks) == 0 || nonce == "" {
		return
	}
	if section, ok := blocks[0].(*slackgo.SectionBlock); ok {
		section.BlockID = noncePrefix + nonce
	}
}

// nonce is the nonce of a post of ours: from its metadata, else from the id of its first block.
func (m message) nonce() string {
	meta := m.Obj("metadata")
	if meta.Str("event_type") == metadataEvent {
		return meta.Obj("event_payload").Str("nonce")
	}
	for _, b := range m.Objects("blocks") {
		if nonce, ok := strings.CutPrefix(b.Str("block_id"), noncePrefix); ok {
			return nonce
		}
	}
	return ""
}

// Package events changes the messages and channels of the local workspace and sends the app the events of that, as Slack does.
package events

import "the-loop/bot/localslack/socket"

// Feed changes the messages and channels of a workspace, and sends the app the events of that.
type Feed struct {
	*socket.Hub
}

// New makes a feed whose events go to a hub.
func New(h *socket.Hub) *Feed { return &Feed{Hub: h} }

package webapi

import (
	"unicode/utf8"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

// maxStatus is the most characters of a status: a longer one has a warning in its answer.
const maxStatus = 50

// assistantStatus shows below a thread what the app does, until the app posts there.
func assistantStatus(c *call) (store.Object, error) {
	w := c.w
	if w.Opts.NoAssistant {
		return nil, slackerr.New("feature_disabled")
	}
	if _, given := c.args["status"]; !given {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: status")
	}
	ch, err := c.joinedChannel(c.arg("channel_id"))
	if err != nil {
		return nil, err
	}
	root := ch.ByTS[c.arg("thread_ts")]
	if root == nil || root.IsReply() || root.Subtype == "tombstone" {
		return nil, slackerr.New("invalid_thread_ts")
	}
	w.ShowStatus(ch, root.TS, c.arg("status"))
	if utf8.RuneCountInString(c.arg("status")) > maxStatus {
		return store.Object{"warning": "status_too_long"}, nil
	}
	return nil, nil
}

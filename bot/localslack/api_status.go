package localslack

import (
	"time"
	"unicode/utf8"

	"the-loop/bot/localslack/slackerr"
)

const (
	maxStatus = 50              // a longer one has a warning in its answer
	statusTTL = 2 * time.Minute // until Slack takes a status away by itself
)

// assistantStatus shows below a thread what the app does, until the app posts there.
func assistantStatus(c *call) (jsonObject, error) {
	w := c.w
	if w.opts.NoAssistant {
		return nil, slackerr.New("feature_disabled")
	}
	if _, given := c.args["status"]; !given {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: status")
	}
	ch, err := c.visibleChannel(c.arg("channel_id"))
	switch {
	case err != nil:
		return nil, err
	case ch.archived:
		return nil, slackerr.New("is_archived")
	case !ch.hasMember(w.botUser):
		return nil, slackerr.New("not_in_channel")
	}
	root := ch.byTS[c.arg("thread_ts")]
	if root == nil || root.IsReply() || root.Subtype == "tombstone" {
		return nil, slackerr.New("invalid_thread_ts")
	}
	w.showStatus(ch, root.TS, c.arg("status"))
	if utf8.RuneCountInString(c.arg("status")) > maxStatus {
		return jsonObject{"warning": "status_too_long"}, nil
	}
	return nil, nil
}

// showStatus changes the status of a thread; an empty one is none. The caller holds mu.
func (w *Store) showStatus(ch *channelState, thread, text string) {
	key := ch.id + "/" + thread
	if end := w.cancelStatusExpiry[key]; end != nil {
		end()
	}
	delete(w.cancelStatusExpiry, key)
	if text == "" && w.statuses[key] == "" {
		return
	}
	delete(w.statuses, key)
	if text != "" {
		w.statuses[key] = text
		w.cancelStatusExpiry[key] = w.sched.After(statusTTL, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.showStatus(ch, thread, "")
		})
	}
	w.recordChange(change{kind: statusChanged, channel: ch.id, ts: thread})
	w.notify()
}

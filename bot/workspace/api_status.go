package workspace

import (
	"time"
	"unicode/utf8"
)

const (
	maxStatus  = 50              // a longer one has a warning in its answer
	statusLife = 2 * time.Minute // until Slack takes a status away by itself
)

// assistantStatus shows below a thread what the app does, until the app posts there.
func assistantStatus(c *call) (reply, error) {
	w := c.w
	if w.opts.NoAssistant {
		return nil, fail("feature_disabled")
	}
	if _, given := c.args["status"]; !given {
		return nil, failArg("invalid_arguments", "[ERROR] missing required field: status")
	}
	ch, err := c.visible(c.arg("channel_id"))
	switch {
	case err != nil:
		return nil, err
	case ch.archived:
		return nil, fail("is_archived")
	case !ch.has(w.botUser):
		return nil, fail("not_in_channel")
	}
	root := ch.byTS[c.arg("thread_ts")]
	if root == nil || root.IsReply() || root.Subtype == "tombstone" {
		return nil, fail("invalid_thread_ts")
	}
	w.showStatus(ch, root.TS, c.arg("status"))
	if utf8.RuneCountInString(c.arg("status")) > maxStatus {
		return reply{"warning": "status_too_long"}, nil
	}
	return nil, nil
}

// showStatus changes the status of a thread; an empty one is none. The caller holds mu.
func (w *Workspace) showStatus(ch *channelState, thread, text string) {
	key := ch.id + "/" + thread
	if end := w.statusEnds[key]; end != nil {
		end()
	}
	delete(w.statusEnds, key)
	if text == "" && w.statuses[key] == "" {
		return
	}
	delete(w.statuses, key)
	if text != "" {
		w.statuses[key] = text
		w.statusEnds[key] = w.sched.after(statusLife, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.showStatus(ch, thread, "")
		})
	}
	w.touch(change{kind: statusChanged, channel: ch.id, ts: thread})
	w.notify()
}

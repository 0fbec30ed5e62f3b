package events

import "the-loop/bot/localslack/slackerr"

// DeleteMessage removes anybody's message, as an admin does.
func (w *Feed) DeleteMessage(channel, ts string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil || ch.ByTS[ts] == nil {
		return slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	w.Delete(ch, ch.ByTS[ts])
	return nil
}

// Unfurl adds a link preview to a message: message_changed with the same text.
func (w *Feed) Unfurl(channel, ts string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil || ch.ByTS[ts] == nil {
		return slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	w.AddPreview(ch, ch.ByTS[ts])
	return nil
}

// SendMessageReplied sends the hidden message_replied event of a thread.
func (w *Feed) SendMessageReplied(channel, ts string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if ch := w.FindChannel(channel); ch != nil && ch.ByTS[ts] != nil {
		w.emitReplied(ch, ch.ByTS[ts])
	}
}

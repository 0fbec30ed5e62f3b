package workspace

import "context"

// ClickSeen presses a button of a message as the person's client still shows it: the app may have changed the message since.
func (p *Person) ClickSeen(ctx context.Context, channel string, seen Message, actionID string) error {
	w := p.w
	w.mu.Lock()
	pl, err := p.seenPayload(channel, seen, actionID)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.interaction(ctx, &delivery{kind: "interactive", payload: w.encode(pl)})
	return err
}

func (p *Person) seenPayload(channel string, seen Message, actionID string) (reply, error) {
	w := p.w
	ch, m, err := p.message(channel, seen.TS)
	if err != nil {
		return nil, err
	}
	action, err := findAction(seen.Blocks, pressed{action: actionID})
	if err != nil {
		return nil, err
	}
	pl := w.interactive("block_actions", p)
	pl["container"] = reply{"type": "message", "message_ts": m.TS, "channel_id": ch.id, "is_ephemeral": false}
	pl["message"], pl["channel"] = m.clone(), reply{"id": ch.id, "name": ch.name}
	pl["response_url"] = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID, ts: m.TS, replace: true})
	return w.withAction(pl, p, action), nil
}

package localslack

import (
	"context"

	"the-loop/bot/localslack/blockkit"
)

// ClickStale presses a button of a message as the person's client still shows it: the app may have changed the message since.
func (p *Person) ClickStale(ctx context.Context, channel string, seen Message, actionID string) error {
	w := p.w
	w.mu.Lock()
	pl, err := p.staleClickPayload(channel, seen, actionID)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}

func (p *Person) staleClickPayload(channel string, seen Message, actionID string) (jsonObject, error) {
	w := p.w
	ch, m, err := p.visibleMessage(channel, seen.TS)
	if err != nil {
		return nil, err
	}
	action, err := blockkit.FindAction(seen.Blocks, blockkit.ElementAction{Action: actionID})
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	pl["container"] = jsonObject{"type": "message", "message_ts": m.TS, "channel_id": ch.id, "is_ephemeral": false}
	pl["message"], pl["channel"] = m.clone(), jsonObject{"id": ch.id, "name": ch.name}
	pl["response_url"] = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID, ts: m.TS, replace: true})
	return w.withAction(pl, p, action), nil
}

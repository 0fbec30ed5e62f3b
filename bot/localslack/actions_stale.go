package localslack

import (
	"context"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

// ClickStale presses a button of a message as the person's client still shows it: the app may have changed the message since.
func (p *Person) ClickStale(ctx context.Context, channel string, seen store.Message, actionID string) error {
	w := p.w
	w.Mu.Lock()
	pl, err := p.staleClickPayload(channel, seen, actionID)
	w.Mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl)})
	return err
}

func (p *Person) staleClickPayload(channel string, seen store.Message, actionID string) (store.Object, error) {
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
	pl["container"] = store.Object{"type": "message", "message_ts": m.TS, "channel_id": ch.ID, "is_ephemeral": false}
	pl["message"], pl["channel"] = m.Clone(), store.Object{"id": ch.ID, "name": ch.Name}
	pl["response_url"] = w.NewResponseURL(&store.ResponseURL{Channel: ch.ID, User: p.ID, TS: m.TS, Replace: true})
	return w.withAction(pl, p, action), nil
}

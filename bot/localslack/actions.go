package localslack

import (
	"context"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

// Click presses a button or chooses in a menu of a message that the app posted, also of an ephemeral one. value is
// what is chosen in a menu; a button has its own. A button may be in a modal too: then channel is "" and ts the view's
// id. It returns when the app acked.
func (p *Person) Click(ctx context.Context, channel, ts, actionID string, value ...string) error {
	return p.ClickIn(ctx, channel, ts, "", actionID, value...)
}

// ClickIn is Click in one block, by its id: where several have an element with that action, as a Home tab may.
func (p *Person) ClickIn(ctx context.Context, channel, ts, blockID, actionID string, value ...string) error {
	w := p.w
	w.Mu.Lock()
	pl, err := p.clickPayload(channel, ts, blockkit.ElementAction{Block: blockID, Action: actionID, Value: value})
	w.Mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl)})
	return err
}

func (p *Person) clickPayload(channel, ts string, on blockkit.ElementAction) (store.Object, error) {
	if channel == "" {
		return p.viewClickPayload(ts, on)
	}
	w := p.w
	if e := w.FindEphemeral(p.ID, ts); e != nil {
		return p.ephemeralClickPayload(e, on)
	}
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return nil, err
	}
	if m.BotID != w.BotID() {
		return nil, slackerr.Refusedf("the message is not the app's")
	}
	action, err := blockkit.FindAction(m.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	container := store.Object{"type": "message", "message_ts": m.TS, "channel_id": ch.ID, "is_ephemeral": false}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	pl["container"], pl["message"] = container, m.Clone()
	pl["channel"] = store.Object{"id": ch.ID, "name": ch.Name}
	pl["response_url"] = w.NewResponseURL(&store.ResponseURL{Channel: ch.ID, User: p.ID, TS: m.TS, Replace: true})
	return w.withAction(pl, p, action), nil
}

func (w *Workspace) withAction(pl store.Object, p *Person, action blockkit.Block) store.Object {
	action["action_ts"] = w.NewTS()
	pl["actions"], pl["trigger_id"] = []blockkit.Block{action}, w.NewTrigger(p.ID, "")
	if pl["state"] == nil {
		pl["state"] = store.Object{"values": store.Object{}}
	}
	return pl
}

func (p *Person) ephemeralClickPayload(e *store.Ephemeral, on blockkit.ElementAction) (store.Object, error) {
	w := p.w
	action, err := blockkit.FindAction(e.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	container := store.Object{"type": "message", "message_ts": e.TS, "channel_id": e.Channel, "is_ephemeral": true}
	if e.ThreadTS != "" {
		container["thread_ts"] = e.ThreadTS
	}
	pl["container"] = container
	pl["channel"] = store.Object{"id": e.Channel, "name": w.ChannelsByID[e.Channel].Name}
	pl["response_url"] = w.NewResponseURL(&store.ResponseURL{Channel: e.Channel, User: p.ID, TS: e.TS, Ephemeral: true, Replace: true})
	return w.withAction(pl, p, action), nil
}

func (p *Person) viewClickPayload(id string, on blockkit.ElementAction) (store.Object, error) {
	w := p.w
	v := w.ViewsByID[id]
	if v == nil || v.User != p.ID {
		return nil, slackerr.Refusedf("there is no view %s open", id)
	}
	action, err := blockkit.FindAction(v.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	pl["container"], pl["view"] = store.Object{"type": "view", "view_id": v.ID}, v.Payload(w.Store)
	pl = w.withAction(pl, p, action)
	w.Triggers[pl["trigger_id"].(string)].ViewID = v.ID
	return pl, nil
}

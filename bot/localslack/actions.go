package localslack

import (
	"context"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
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
	w.mu.Lock()
	pl, err := p.clickPayload(channel, ts, blockkit.ElementAction{Block: blockID, Action: actionID, Value: value})
	w.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}

func (p *Person) clickPayload(channel, ts string, on blockkit.ElementAction) (jsonObject, error) {
	if channel == "" {
		return p.viewClickPayload(ts, on)
	}
	w := p.w
	if e := w.findEphemeral(p.ID, ts); e != nil {
		return p.ephemeralClickPayload(e, on)
	}
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return nil, err
	}
	if m.BotID != w.botID {
		return nil, slackerr.Refusedf("the message is not the app's")
	}
	action, err := blockkit.FindAction(m.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	container := jsonObject{"type": "message", "message_ts": m.TS, "channel_id": ch.id, "is_ephemeral": false}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	pl["container"], pl["message"] = container, m.clone()
	pl["channel"] = jsonObject{"id": ch.id, "name": ch.name}
	pl["response_url"] = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID, ts: m.TS, replace: true})
	return w.withAction(pl, p, action), nil
}

func (w *Workspace) withAction(pl jsonObject, p *Person, action blockkit.Block) jsonObject {
	action["action_ts"] = w.newTS()
	pl["actions"], pl["trigger_id"] = []blockkit.Block{action}, w.newTrigger(p.ID, "")
	if pl["state"] == nil {
		pl["state"] = jsonObject{"values": jsonObject{}}
	}
	return pl
}

func (w *Store) findEphemeral(user, ts string) *Ephemeral {
	list := w.ephemerals[user]
	for i := range list {
		if list[i].TS == ts && !list[i].Deleted {
			return &list[i]
		}
	}
	return nil
}

func (p *Person) ephemeralClickPayload(e *Ephemeral, on blockkit.ElementAction) (jsonObject, error) {
	w := p.w
	action, err := blockkit.FindAction(e.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	container := jsonObject{"type": "message", "message_ts": e.TS, "channel_id": e.Channel, "is_ephemeral": true}
	if e.ThreadTS != "" {
		container["thread_ts"] = e.ThreadTS
	}
	pl["container"] = container
	pl["channel"] = jsonObject{"id": e.Channel, "name": w.channels[e.Channel].name}
	pl["response_url"] = w.newResponseURL(&responseURL{channel: e.Channel, user: p.ID, ts: e.TS, ephemeral: true, replace: true})
	return w.withAction(pl, p, action), nil
}

func (p *Person) viewClickPayload(id string, on blockkit.ElementAction) (jsonObject, error) {
	w := p.w
	v := w.views[id]
	if v == nil || v.User != p.ID {
		return nil, slackerr.Refusedf("there is no view %s open", id)
	}
	action, err := blockkit.FindAction(v.Blocks, on)
	if err != nil {
		return nil, err
	}
	pl := w.newInteraction("block_actions", p)
	pl["container"], pl["view"] = jsonObject{"type": "view", "view_id": v.ID}, v.payload(w.Store)
	pl = w.withAction(pl, p, action)
	w.triggers[pl["trigger_id"].(string)].viewID = v.ID
	return pl, nil
}

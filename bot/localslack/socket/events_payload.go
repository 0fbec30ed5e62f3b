package socket

import (
	"encoding/json"

	"the-loop/bot/localslack/store"
)

// eventPayload is the wrapper around an inner event.
func (w *Hub) eventPayload(d *Delivery, inner json.RawMessage) store.Object {
	channel, shared := "", false
	if d.Channel != nil {
		channel, shared = d.Channel.ID, d.Channel.ExtShared
	}
	p := store.Object{"token": "verification", "team_id": w.Opts.TeamID, "context_team_id": w.Opts.TeamID,
		"context_enterprise_id": nil, "api_app_id": w.AppID(), "event": inner,
		"type": "event_callback", "event_id": d.EventID, "event_time": d.HappenedAt.Unix(),
		"authorizations": []store.Object{{"enterprise_id": nil, "team_id": w.Opts.TeamID, "user_id": w.BotUser, "is_bot": true,
			"is_enterprise_install": false}},
		"is_ext_shared_channel": shared, "event_context": "4-" + d.Name + "-" + w.Opts.TeamID + "-" + channel}
	return p
}

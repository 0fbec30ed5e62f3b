package localslack

import (
	"encoding/json"
	"slices"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

// view is a modal or Home tab with what only the workspace needs. The workspace's mu guards it.
type view struct {
	View
	body          blockkit.Block
	state         blockkit.Block
	notifyOnClose bool // notify_on_close
}

// wire is the view object of Slack's payloads.
func (v *view) payload(w *Store) jsonObject {
	out := jsonObject{}
	for k, e := range v.body {
		out[k] = e
	}
	state := v.state
	if state == nil {
		state = blockkit.Block{}
	}
	out["id"], out["team_id"], out["app_id"], out["bot_id"] = v.ID, w.opts.TeamID, w.appID, w.botID
	out["app_installed_team_id"], out["state"], out["hash"] = w.opts.TeamID, jsonObject{"values": state}, v.Hash
	out["root_view_id"], out["previous_view_id"], out["external_id"] = v.RootID, nullable(v.PreviousID), v.ExternalID
	out["private_metadata"], out["callback_id"] = v.PrivateMetadata, v.CallbackID
	out["blocks"] = v.Blocks
	for _, k := range []string{"clear_on_close", "notify_on_close"} {
		out[k] = v.body[k] == true
	}
	for _, k := range []string{"title", "submit", "close"} {
		out[k] = v.body[k]
	}
	return out
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// setBody takes over what the app sent.
func (v *view) setBody(body blockkit.Block, raw json.RawMessage) {
	blocks, _ := json.Marshal(body["blocks"])
	title, _ := body["title"].(blockkit.Block)
	v.body, v.Raw, v.state = body, raw, nil
	v.Type, v.Title, v.Blocks = blockkit.Str(body["type"]), blockkit.Str(title["text"]), blockkit.FillIDs(string(blocks))
	v.CallbackID, v.PrivateMetadata, v.ExternalID = blockkit.Str(body["callback_id"]), blockkit.Str(body["private_metadata"]), blockkit.Str(body["external_id"])
	v.notifyOnClose = body["notify_on_close"] == true
	v.Hash = slackid.Hex(8)
	if v.Blocks == nil {
		v.Blocks = json.RawMessage("[]")
	}
}

// redeemTrigger uses a trigger_id up.
func (c *call) redeemTrigger() (*trigger, error) {
	t := c.w.triggers[c.arg("trigger_id")]
	switch {
	case t == nil:
		return nil, slackerr.New("invalid_trigger_id")
	case t.used:
		return nil, slackerr.New("exchanged_trigger_id")
	case c.w.clock.Now().After(t.expires):
		return nil, slackerr.New("expired_trigger_id")
	}
	t.used = true
	return t, nil
}

func (w *Store) isExternalIDTaken(id, except string) bool {
	for _, v := range w.views {
		if id != "" && v.ExternalID == id && v.ID != except {
			return true
		}
	}
	return false
}

// newView opens a view for somebody on top of what is open. The caller holds mu.
func (w *Store) newView(user string, body blockkit.Block, raw json.RawMessage, below *view) (*view, error) {
	if w.isExternalIDTaken(blockkit.Str(body["external_id"]), "") {
		return nil, slackerr.New("duplicate_external_id")
	}
	v := &view{View: View{ID: w.newID("V"), User: user}}
	v.setBody(body, raw)
	v.RootID = v.ID
	if below != nil {
		v.RootID, v.PreviousID = below.RootID, below.ID
	}
	w.views[v.ID] = v
	w.viewStacks[user] = append(w.viewStacks[user], v.ID)
	w.recordChange(change{kind: viewsChanged, user: user})
	w.notify()
	return v, nil
}

func viewsOpen(c *call) (jsonObject, error) {
	raw := json.RawMessage(c.arg("view"))
	body, err := blockkit.ParseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	c.w.closeViewsFrom(t.user, 0)
	v, err := c.w.newView(t.user, body, raw, nil)
	if err != nil {
		return nil, err
	}
	return jsonObject{"view": v.payload(c.w.Store)}, nil
}

func viewsPush(c *call) (jsonObject, error) {
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	below := c.w.views[t.viewID]
	if below == nil {
		return nil, slackerr.New("view_not_found")
	}
	v, err := c.w.pushView(t.user, json.RawMessage(c.arg("view")), below)
	if err != nil {
		return nil, err
	}
	return jsonObject{"view": v.payload(c.w.Store)}, nil
}

func (w *Store) pushView(user string, raw json.RawMessage, below *view) (*view, error) {
	body, err := blockkit.ParseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	if len(w.viewStacks[user]) >= blockkit.MaxViewStack {
		return nil, slackerr.New("push_limit_reached")
	}
	return w.newView(user, body, raw, below)
}

func (w *Store) changeView(v *view, raw json.RawMessage) error {
	body, err := blockkit.ParseView(raw, v.Type)
	if err != nil {
		return err
	}
	if w.isExternalIDTaken(blockkit.Str(body["external_id"]), v.ID) {
		return slackerr.New("duplicate_external_id")
	}
	v.setBody(body, raw)
	kind := viewsChanged
	if v.Type == "home" {
		kind = homeChanged
	}
	w.recordChange(change{kind: kind, user: v.User})
	w.notify()
	return nil
}

func viewsUpdate(c *call) (jsonObject, error) {
	w := c.w
	v := w.views[c.arg("view_id")]
	for _, o := range w.views {
		if ext := c.arg("external_id"); ext != "" && o.ExternalID == ext {
			v = o
		}
	}
	if v == nil {
		return nil, slackerr.New("not_found")
	}
	if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, slackerr.New("hash_conflict")
	}
	if err := w.changeView(v, json.RawMessage(c.arg("view"))); err != nil {
		return nil, err
	}
	return jsonObject{"view": v.payload(w.Store)}, nil
}

func viewsPublish(c *call) (jsonObject, error) {
	w := c.w
	if w.opts.NoHome {
		return nil, slackerr.New("not_enabled")
	}
	raw := json.RawMessage(c.arg("view"))
	body, err := blockkit.ParseView(raw, "home")
	if err != nil {
		return nil, err
	}
	p := w.people[c.arg("user_id")]
	if p == nil || p.deleted {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] invalid user_id")
	}
	v := w.homes[p.ID]
	if v == nil {
		v = &view{View: View{ID: w.newID("V"), User: p.ID}}
		v.RootID = v.ID
	} else if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, slackerr.New("hash_conflict")
	}
	v.setBody(body, raw)
	w.homes[p.ID] = v
	w.views[v.ID] = v
	w.recordChange(change{kind: homeChanged, user: p.ID})
	w.notify()
	return jsonObject{"view": v.payload(w.Store)}, nil
}

// closeViewsFrom closes somebody's modals from position keep upwards. The caller holds mu.
func (w *Store) closeViewsFrom(user string, keep int) {
	stack := w.viewStacks[user]
	if keep < 0 || keep >= len(stack) {
		return
	}
	for _, id := range stack[keep:] {
		delete(w.views, id)
	}
	w.viewStacks[user] = slices.Clone(stack[:keep])
	w.recordChange(change{kind: viewsChanged, user: user})
}

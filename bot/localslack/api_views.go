package localslack

import (
	"encoding/json"
	"slices"
)

const (
	maxViewTitle       = 24
	maxPrivateMetadata = 3_000
	maxViewBytes       = 250_000
	maxViewStack       = 3
)

// view is a modal or Home tab with what only the workspace needs. The workspace's mu guards it.
type view struct {
	View
	body          block
	state         block
	notifyOnClose bool // notify_on_close
}

// wire is the view object of Slack's payloads.
func (v *view) payload(w *Workspace) jsonObject {
	out := jsonObject{}
	for k, e := range v.body {
		out[k] = e
	}
	state := v.state
	if state == nil {
		state = block{}
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

// parseView checks a view as Slack does.
func parseView(raw json.RawMessage, kind string) (block, error) {
	var b block
	if len(raw) > maxViewBytes {
		return nil, newAPIError("view_too_large")
	}
	if json.Unmarshal(raw, &b) != nil || b == nil {
		return nil, newArgError("invalid_arguments", "[ERROR] view must be an object [json-pointer:/view]")
	}
	chk := &blockCheck{view: true, ids: map[string]bool{}, pointer: "/view"}
	if got := str(b["type"]); got != kind {
		chk.addError("must be %s", kind)
	}
	chk.checkLength("private_metadata", str(b["private_metadata"]), maxPrivateMetadata)
	chk.checkLength("callback_id", str(b["callback_id"]), maxID)
	chk.checkLength("external_id", str(b["external_id"]), maxID)
	if kind == "modal" {
		chk.modal(b)
	}
	if len(chk.errors) > 0 {
		return nil, newArgError("invalid_arguments", chk.errors...)
	}
	blocks, err := json.Marshal(b["blocks"])
	if err != nil {
		return nil, err
	}
	return b, checkBlocks(string(blocks), true)
}

func (b *blockCheck) modal(v block) {
	b.textObject(v["title"], "plain_text", maxViewTitle)
	inputs := false
	list, ok := v["blocks"].([]any)
	if !ok {
		b.addError("missing required field: blocks")
	}
	for _, e := range list {
		bl, _ := e.(block)
		inputs = inputs || str(bl["type"]) == "input"
	}
	if inputs && v["submit"] == nil {
		b.addError("missing required field: submit")
	}
	for _, k := range []string{"submit", "close"} {
		if v[k] != nil {
			b.textObject(v[k], "plain_text", maxViewTitle)
		}
	}
}

// setBody takes over what the app sent.
func (v *view) setBody(body block, raw json.RawMessage) {
	blocks, _ := json.Marshal(body["blocks"])
	title, _ := body["title"].(block)
	v.body, v.Raw, v.state = body, raw, nil
	v.Type, v.Title, v.Blocks = str(body["type"]), str(title["text"]), fillBlockIDs(string(blocks))
	v.CallbackID, v.PrivateMetadata, v.ExternalID = str(body["callback_id"]), str(body["private_metadata"]), str(body["external_id"])
	v.notifyOnClose = body["notify_on_close"] == true
	v.Hash = randomHex(8)
	if v.Blocks == nil {
		v.Blocks = json.RawMessage("[]")
	}
}

// redeemTrigger uses a trigger_id up.
func (c *call) redeemTrigger() (*trigger, error) {
	t := c.w.triggers[c.arg("trigger_id")]
	switch {
	case t == nil:
		return nil, newAPIError("invalid_trigger_id")
	case t.used:
		return nil, newAPIError("exchanged_trigger_id")
	case c.w.clock.Now().After(t.expires):
		return nil, newAPIError("expired_trigger_id")
	}
	t.used = true
	return t, nil
}

func (w *Workspace) isExternalIDTaken(id, except string) bool {
	for _, v := range w.views {
		if id != "" && v.ExternalID == id && v.ID != except {
			return true
		}
	}
	return false
}

// newView opens a view for somebody on top of what is open. The caller holds mu.
func (w *Workspace) newView(user string, body block, raw json.RawMessage, below *view) (*view, error) {
	if w.isExternalIDTaken(str(body["external_id"]), "") {
		return nil, newAPIError("duplicate_external_id")
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
	body, err := parseView(raw, "modal")
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
	return jsonObject{"view": v.payload(c.w)}, nil
}

func viewsPush(c *call) (jsonObject, error) {
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	below := c.w.views[t.viewID]
	if below == nil {
		return nil, newAPIError("view_not_found")
	}
	v, err := c.w.pushView(t.user, json.RawMessage(c.arg("view")), below)
	if err != nil {
		return nil, err
	}
	return jsonObject{"view": v.payload(c.w)}, nil
}

func (w *Workspace) pushView(user string, raw json.RawMessage, below *view) (*view, error) {
	body, err := parseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	if len(w.viewStacks[user]) >= maxViewStack {
		return nil, newAPIError("push_limit_reached")
	}
	return w.newView(user, body, raw, below)
}

func (w *Workspace) changeView(v *view, raw json.RawMessage) error {
	body, err := parseView(raw, v.Type)
	if err != nil {
		return err
	}
	if w.isExternalIDTaken(str(body["external_id"]), v.ID) {
		return newAPIError("duplicate_external_id")
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
		return nil, newAPIError("not_found")
	}
	if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, newAPIError("hash_conflict")
	}
	if err := w.changeView(v, json.RawMessage(c.arg("view"))); err != nil {
		return nil, err
	}
	return jsonObject{"view": v.payload(w)}, nil
}

func viewsPublish(c *call) (jsonObject, error) {
	w := c.w
	if w.opts.NoHome {
		return nil, newAPIError("not_enabled")
	}
	raw := json.RawMessage(c.arg("view"))
	body, err := parseView(raw, "home")
	if err != nil {
		return nil, err
	}
	p := w.people[c.arg("user_id")]
	if p == nil || p.deleted {
		return nil, newArgError("invalid_arguments", "[ERROR] invalid user_id")
	}
	v := w.homes[p.ID]
	if v == nil {
		v = &view{View: View{ID: w.newID("V"), User: p.ID}}
		v.RootID = v.ID
	} else if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, newAPIError("hash_conflict")
	}
	v.setBody(body, raw)
	w.homes[p.ID] = v
	w.views[v.ID] = v
	w.recordChange(change{kind: homeChanged, user: p.ID})
	w.notify()
	return jsonObject{"view": v.payload(w)}, nil
}

// closeViewsFrom closes somebody's modals from position keep upwards. The caller holds mu.
func (w *Workspace) closeViewsFrom(user string, keep int) {
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

package workspace

import (
	"encoding/json"
	"slices"
)

const (
	maxViewTitle = 24
	maxPrivate   = 3_000
	maxViewBytes = 250_000
	maxViewStack = 3
)

// view is a modal or Home tab with what only the workspace needs. The workspace's mu guards it.
type view struct {
	View
	body   block
	state  block
	notify bool // notify_on_close
}

// wire is the view object of Slack's payloads.
func (v *view) wire(w *Workspace) reply {
	out := reply{}
	for k, e := range v.body {
		out[k] = e
	}
	state := v.state
	if state == nil {
		state = block{}
	}
	out["id"], out["team_id"], out["app_id"], out["bot_id"] = v.ID, w.opts.TeamID, w.appID, w.botID
	out["app_installed_team_id"], out["state"], out["hash"] = w.opts.TeamID, reply{"values": state}, v.Hash
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
		return nil, fail("view_too_large")
	}
	if json.Unmarshal(raw, &b) != nil || b == nil {
		return nil, failArg("invalid_arguments", "[ERROR] view must be an object [json-pointer:/view]")
	}
	chk := &blockCheck{view: true, ids: map[string]bool{}, pointer: "/view"}
	if got := str(b["type"]); got != kind {
		chk.wrong("must be %s", kind)
	}
	chk.short("private_metadata", str(b["private_metadata"]), maxPrivate)
	chk.short("callback_id", str(b["callback_id"]), maxID)
	chk.short("external_id", str(b["external_id"]), maxID)
	if kind == "modal" {
		chk.modal(b)
	}
	if len(chk.errors) > 0 {
		return nil, failArg("invalid_arguments", chk.errors...)
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
		b.wrong("missing required field: blocks")
	}
	for _, e := range list {
		bl, _ := e.(block)
		inputs = inputs || str(bl["type"]) == "input"
	}
	if inputs && v["submit"] == nil {
		b.wrong("missing required field: submit")
	}
	for _, k := range []string{"submit", "close"} {
		if v[k] != nil {
			b.textObject(v[k], "plain_text", maxViewTitle)
		}
	}
}

// set takes over what the app sent.
func (v *view) set(body block, raw json.RawMessage) {
	blocks, _ := json.Marshal(body["blocks"])
	title, _ := body["title"].(block)
	v.body, v.Raw, v.state = body, raw, nil
	v.Type, v.Title, v.Blocks = str(body["type"]), str(title["text"]), finishBlocks(string(blocks))
	v.CallbackID, v.PrivateMetadata, v.ExternalID = str(body["callback_id"]), str(body["private_metadata"]), str(body["external_id"])
	v.notify = body["notify_on_close"] == true
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
		return nil, fail("invalid_trigger_id")
	case t.used:
		return nil, fail("exchanged_trigger_id")
	case c.w.clock.Now().After(t.until):
		return nil, fail("expired_trigger_id")
	}
	t.used = true
	return t, nil
}

func (w *Workspace) externalTaken(id, except string) bool {
	for _, v := range w.views {
		if id != "" && v.ExternalID == id && v.ID != except {
			return true
		}
	}
	return false
}

// newView opens a view for somebody on top of what is open. The caller holds mu.
func (w *Workspace) newView(user string, body block, raw json.RawMessage, below *view) (*view, error) {
	if w.externalTaken(str(body["external_id"]), "") {
		return nil, fail("duplicate_external_id")
	}
	v := &view{View: View{ID: w.newID("V"), User: user}}
	v.set(body, raw)
	v.RootID = v.ID
	if below != nil {
		v.RootID, v.PreviousID = below.RootID, below.ID
	}
	w.views[v.ID] = v
	w.viewStacks[user] = append(w.viewStacks[user], v.ID)
	w.touch(change{kind: viewsChanged, user: user})
	w.notify()
	return v, nil
}

func viewsOpen(c *call) (reply, error) {
	raw := json.RawMessage(c.arg("view"))
	body, err := parseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	c.w.closeViews(t.user, 0)
	v, err := c.w.newView(t.user, body, raw, nil)
	if err != nil {
		return nil, err
	}
	return reply{"view": v.wire(c.w)}, nil
}

func viewsPush(c *call) (reply, error) {
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	below := c.w.views[t.viewID]
	if below == nil {
		return nil, fail("view_not_found")
	}
	v, err := c.w.pushView(t.user, json.RawMessage(c.arg("view")), below)
	if err != nil {
		return nil, err
	}
	return reply{"view": v.wire(c.w)}, nil
}

func (w *Workspace) pushView(user string, raw json.RawMessage, below *view) (*view, error) {
	body, err := parseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	if len(w.viewStacks[user]) >= maxViewStack {
		return nil, fail("push_limit_reached")
	}
	return w.newView(user, body, raw, below)
}

func (w *Workspace) changeView(v *view, raw json.RawMessage) error {
	body, err := parseView(raw, v.Type)
	if err != nil {
		return err
	}
	if w.externalTaken(str(body["external_id"]), v.ID) {
		return fail("duplicate_external_id")
	}
	v.set(body, raw)
	kind := viewsChanged
	if v.Type == "home" {
		kind = homeChanged
	}
	w.touch(change{kind: kind, user: v.User})
	w.notify()
	return nil
}

func viewsUpdate(c *call) (reply, error) {
	w := c.w
	v := w.views[c.arg("view_id")]
	for _, o := range w.views {
		if ext := c.arg("external_id"); ext != "" && o.ExternalID == ext {
			v = o
		}
	}
	if v == nil {
		return nil, fail("not_found")
	}
	if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, fail("hash_conflict")
	}
	if err := w.changeView(v, json.RawMessage(c.arg("view"))); err != nil {
		return nil, err
	}
	return reply{"view": v.wire(w)}, nil
}

func viewsPublish(c *call) (reply, error) {
	w := c.w
	if w.opts.NoHome {
		return nil, fail("not_enabled")
	}
	raw := json.RawMessage(c.arg("view"))
	body, err := parseView(raw, "home")
	if err != nil {
		return nil, err
	}
	p := w.people[c.arg("user_id")]
	if p == nil || p.deleted {
		return nil, failArg("invalid_arguments", "[ERROR] invalid user_id")
	}
	v := w.homes[p.ID]
	if v == nil {
		v = &view{View: View{ID: w.newID("V"), User: p.ID}}
		v.RootID = v.ID
	} else if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, fail("hash_conflict")
	}
	v.set(body, raw)
	w.homes[p.ID] = v
	w.views[v.ID] = v
	w.touch(change{kind: homeChanged, user: p.ID})
	w.notify()
	return reply{"view": v.wire(w)}, nil
}

// closeViews closes somebody's modals from position keep upwards. The caller holds mu.
func (w *Workspace) closeViews(user string, keep int) {
	stack := w.viewStacks[user]
	if keep < 0 || keep >= len(stack) {
		return
	}
	for _, id := range stack[keep:] {
		delete(w.views, id)
	}
	w.viewStacks[user] = slices.Clone(stack[:keep])
	w.touch(change{kind: viewsChanged, user: user})
}

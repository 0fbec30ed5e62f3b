package webapi

import (
	"encoding/json"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

// redeemTrigger uses a trigger_id up.
func (c *call) redeemTrigger() (*store.Trigger, error) {
	t := c.w.Triggers[c.arg("trigger_id")]
	switch {
	case t == nil:
		return nil, slackerr.New("invalid_trigger_id")
	case t.Used:
		return nil, slackerr.New("exchanged_trigger_id")
	case c.w.Clock.Now().After(t.Expires):
		return nil, slackerr.New("expired_trigger_id")
	}
	t.Used = true
	return t, nil
}

func viewsOpen(c *call) (store.Object, error) {
	raw := json.RawMessage(c.arg("view"))
	body, err := blockkit.ParseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	c.w.CloseViewsFrom(t.User, 0)
	v, err := c.w.NewView(t.User, body, raw, nil)
	if err != nil {
		return nil, err
	}
	return store.Object{"view": v.Payload(c.w.Store)}, nil
}

func viewsPush(c *call) (store.Object, error) {
	t, err := c.redeemTrigger()
	if err != nil {
		return nil, err
	}
	below := c.w.ViewsByID[t.ViewID]
	if below == nil {
		return nil, slackerr.New("view_not_found")
	}
	v, err := c.w.PushView(t.User, json.RawMessage(c.arg("view")), below)
	if err != nil {
		return nil, err
	}
	return store.Object{"view": v.Payload(c.w.Store)}, nil
}

func viewsUpdate(c *call) (store.Object, error) {
	w := c.w
	v := w.ViewsByID[c.arg("view_id")]
	for _, o := range w.ViewsByID {
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
	if err := w.ChangeView(v, json.RawMessage(c.arg("view"))); err != nil {
		return nil, err
	}
	return store.Object{"view": v.Payload(w.Store)}, nil
}

func viewsPublish(c *call) (store.Object, error) {
	w := c.w
	if w.Opts.NoHome {
		return nil, slackerr.New("not_enabled")
	}
	raw := json.RawMessage(c.arg("view"))
	body, err := blockkit.ParseView(raw, "home")
	if err != nil {
		return nil, err
	}
	p := w.MembersByID[c.arg("user_id")]
	if p == nil || p.Deleted {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] invalid user_id")
	}
	v := w.Homes[p.ID]
	if v == nil {
		v = &store.OpenView{View: store.View{ID: w.NewID("V"), User: p.ID}}
		v.RootID = v.ID
	} else if h := c.arg("hash"); h != "" && h != v.Hash {
		return nil, slackerr.New("hash_conflict")
	}
	v.SetBody(body, raw)
	w.Homes[p.ID] = v
	w.ViewsByID[v.ID] = v
	w.RecordChange(store.Change{Kind: store.HomeChanged, User: p.ID})
	w.Notify()
	return store.Object{"view": v.Payload(w.Store)}, nil
}

package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

// OpenView is a modal or Home tab with what only the workspace needs. The store's Mu guards it.
type OpenView struct {
	View
	Body          blockkit.Block
	State         blockkit.Block
	NotifyOnClose bool // notify_on_close
}

// Payload is the view object of Slack's payloads.
func (v *OpenView) Payload(w *Store) Object {
	out := Object{}
	for k, e := range v.Body {
		out[k] = e
	}
	state := v.State
	if state == nil {
		state = blockkit.Block{}
	}
	out["id"], out["team_id"], out["app_id"], out["bot_id"] = v.ID, w.Opts.TeamID, w.appID, w.botID
	out["app_installed_team_id"], out["state"], out["hash"] = w.Opts.TeamID, Object{"values": state}, v.Hash
	out["root_view_id"], out["previous_view_id"], out["external_id"] = v.RootID, nullable(v.PreviousID), v.ExternalID
	out["private_metadata"], out["callback_id"] = v.PrivateMetadata, v.CallbackID
	out["blocks"] = v.Blocks
	for _, k := range []string{"clear_on_close", "notify_on_close"} {
		out[k] = v.Body[k] == true
	}
	for _, k := range []string{"title", "submit", "close"} {
		out[k] = v.Body[k]
	}
	return out
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// SetBody takes over what the app sent.
func (v *OpenView) SetBody(body blockkit.Block, raw json.RawMessage) {
	blocks, _ := json.Marshal(body["blocks"])
	title, _ := body["title"].(blockkit.Block)
	v.Body, v.Raw, v.State = body, raw, nil
	v.Type, v.Title, v.Blocks = blockkit.Str(body["type"]), blockkit.Str(title["text"]), blockkit.FillIDs(string(blocks))
	v.CallbackID, v.PrivateMetadata, v.ExternalID = blockkit.Str(body["callback_id"]), blockkit.Str(body["private_metadata"]), blockkit.Str(body["external_id"])
	v.NotifyOnClose = body["notify_on_close"] == true
	v.Hash = slackid.Hex(8)
	if v.Blocks == nil {
		v.Blocks = json.RawMessage("[]")
	}
}

func (w *Store) isExternalIDTaken(id, except string) bool {
	for _, v := range w.ViewsByID {
		if id != "" && v.ExternalID == id && v.ID != except {
			return true
		}
	}
	return false
}

// NewView opens a view for somebody on top of what is open. The caller holds Mu.
func (w *Store) NewView(user string, body blockkit.Block, raw json.RawMessage, below *OpenView) (*OpenView, error) {
	if w.isExternalIDTaken(blockkit.Str(body["external_id"]), "") {
		return nil, slackerr.New("duplicate_external_id")
	}
	v := &OpenView{View: View{ID: w.NewID("V"), User: user}}
	v.SetBody(body, raw)
	v.RootID = v.ID
	if below != nil {
		v.RootID, v.PreviousID = below.RootID, below.ID
	}
	w.ViewsByID[v.ID] = v
	w.ViewStacks[user] = append(w.ViewStacks[user], v.ID)
	w.RecordChange(Change{Kind: ViewsChanged, User: user})
	w.Notify()
	return v, nil
}

// PushView opens a modal on top of another one. The caller holds Mu.
func (w *Store) PushView(user string, raw json.RawMessage, below *OpenView) (*OpenView, error) {
	body, err := blockkit.ParseView(raw, "modal")
	if err != nil {
		return nil, err
	}
	if len(w.ViewStacks[user]) >= blockkit.MaxViewStack {
		return nil, slackerr.New("push_limit_reached")
	}
	return w.NewView(user, body, raw, below)
}

// ChangeView replaces what a view shows. The caller holds Mu.
func (w *Store) ChangeView(v *OpenView, raw json.RawMessage) error {
	body, err := blockkit.ParseView(raw, v.Type)
	if err != nil {
		return err
	}
	if w.isExternalIDTaken(blockkit.Str(body["external_id"]), v.ID) {
		return slackerr.New("duplicate_external_id")
	}
	v.SetBody(body, raw)
	kind := ViewsChanged
	if v.Type == "home" {
		kind = HomeChanged
	}
	w.RecordChange(Change{Kind: kind, User: v.User})
	w.Notify()
	return nil
}

// CloseViewsFrom closes somebody's modals from position keep upwards. The caller holds Mu.
func (w *Store) CloseViewsFrom(user string, keep int) {
	stack := w.ViewStacks[user]
	if keep < 0 || keep >= len(stack) {
		return
	}
	for _, id := range stack[keep:] {
		delete(w.ViewsByID, id)
	}
	w.ViewStacks[user] = slices.Clone(stack[:keep])
	w.RecordChange(Change{Kind: ViewsChanged, User: user})
}

const triggerTTL = 3 * time.Second

// Trigger lets the app open a modal for somebody within three seconds, once.
type Trigger struct {
	User    string
	Expires time.Time
	Used    bool
	ViewID  string // the modal it came from
}

// NewTrigger makes a trigger id. The caller holds Mu.
func (w *Store) NewTrigger(user, viewID string) string {
	if len(w.Triggers) > 4096 {
		maps.DeleteFunc(w.Triggers, func(_ string, t *Trigger) bool { return w.Clock.Now().Sub(t.Expires) > time.Minute })
	}
	id := fmt.Sprintf("%d.%d.%s", w.Clock.Now().UnixMilli(), w.lastID, slackid.Hex(16))
	w.Triggers[id] = &Trigger{User: user, Expires: w.Clock.Now().Add(triggerTTL), ViewID: viewID}
	return id
}

// Views returns the modals that a member has open, the topmost last.
func (w *Store) Views(user string) []View {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if p := w.FindMember(user); p != nil {
		user = p.ID
	}
	var out []View
	for _, id := range w.ViewStacks[user] {
		out = append(out, w.ViewsByID[id].View)
	}
	return out
}

// Home returns the Home tab that the app published to a member.
func (w *Store) Home(user string) (v View, ok bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if p := w.FindMember(user); p != nil {
		user = p.ID
	}
	if h := w.Homes[user]; h != nil {
		return h.View, true
	}
	return View{}, false
}

package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
)

// pageAction is what somebody does on the page.
type pageAction struct {
	As       string            `json:"as"` // member id
	Channel  string            `json:"channel"`
	Thread   string            `json:"thread"` // ts of the root
	TS       string            `json:"ts"`     // of the message
	Text     string            `json:"text"`
	Name     string            `json:"name"` // of an emoji, a command, a shortcut or a control
	View     string            `json:"view"`
	Block    string            `json:"block"`
	Action   string            `json:"action"`
	Value    *string           `json:"value"`
	Values   map[string]string `json:"values"`
	AlsoSend bool              `json:"alsoSend"` // a reply goes to the channel as well
}

// actionTimeout bounds what somebody does: Slack gives the app three seconds to answer.
const actionTimeout = 20 * time.Second

// actions are what can be done on the page. What comes back is shown to who did it.
func (p *Page) actions() map[string]func(context.Context, *localslack.Person, pageAction) (any, error) {
	return map[string]func(context.Context, *localslack.Person, pageAction) (any, error){
		"post": p.post,
		"edit": func(_ context.Context, me *localslack.Person, a pageAction) (any, error) {
			return nil, me.Edit(a.Channel, a.TS, a.Text)
		},
		"delete": func(_ context.Context, me *localslack.Person, a pageAction) (any, error) {
			return nil, me.Delete(a.Channel, a.TS)
		},
		"react":  p.react,
		"click":  p.click,
		"submit": p.submit,
		"close": func(ctx context.Context, me *localslack.Person, a pageAction) (any, error) {
			return nil, me.CloseView(ctx, a.View)
		},
		"slash": p.slash,
		"shortcut": func(ctx context.Context, me *localslack.Person, a pageAction) (any, error) {
			return nil, me.Shortcut(ctx, a.Channel, a.TS, a.Name)
		},
		"home": func(ctx context.Context, me *localslack.Person, _ pageAction) (any, error) {
			return nil, me.OpenHome(ctx)
		},
		"play": p.runControl,
	}
}

func (p *Page) serveAction(rw http.ResponseWriter, r *http.Request) {
	do := p.actions()[r.PathValue("act")]
	if do == nil {
		http.NotFound(rw, r)
		return
	}
	var a pageAction
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(rw, "what is asked for cannot be read", http.StatusBadRequest)
		return
	}
	me, err := p.persona(a.As)
	if err != nil {
		writeFailure(rw, err)
		return
	}
	limit := actionTimeout
	if r.PathValue("act") == "play" {
		limit = controlTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	out, err := do(ctx, me, a)
	if err != nil {
		writeFailure(rw, err)
		return
	}
	webapi.WriteJSON(rw, http.StatusOK, store.Object{"ok": true, "result": out})
}

// writeFailure says why something did not happen, in the words that a person is shown.
func writeFailure(rw http.ResponseWriter, err error) {
	status, text := http.StatusConflict, err.Error()
	var refusal *slackerr.Error
	switch {
	case errors.Is(err, slackerr.ErrRefused):
		text = text[len(slackerr.ErrRefused.Error())+2:]
	case errors.Is(err, slackerr.ErrNoAnswer):
		status = http.StatusBadGateway
	case errors.As(err, &refusal):
		text = refusal.Code
	}
	webapi.WriteJSON(rw, status, store.Object{"ok": false, "error": text})
}

func (p *Page) post(_ context.Context, me *localslack.Person, a pageAction) (any, error) {
	var opts []localslack.PostOption
	if a.AlsoSend {
		opts = append(opts, localslack.Broadcast())
	}
	ts, err := send(me, a.Channel, a.Thread, a.Text, opts...)
	return store.Object{"ts": ts}, err
}

// react puts an emoji on a message, or takes one's own off again.
func (p *Page) react(_ context.Context, me *localslack.Person, a pageAction) (any, error) {
	err := me.React(a.Channel, a.TS, a.Name)
	var refusal *slackerr.Error
	if errors.As(err, &refusal) && refusal.Code == "already_reacted" {
		err = me.Unreact(a.Channel, a.TS, a.Name)
	}
	return nil, err
}

func (p *Page) click(ctx context.Context, me *localslack.Person, a pageAction) (any, error) {
	var value []string
	if a.Value != nil {
		value = []string{*a.Value}
	}
	ts := a.TS
	if a.View != "" {
		a.Channel, ts = "", a.View
	}
	return nil, me.ClickIn(ctx, a.Channel, ts, a.Block, a.Action, value...)
}

func (p *Page) submit(ctx context.Context, me *localslack.Person, a pageAction) (any, error) {
	wrong, err := me.Submit(ctx, a.View, a.Values)
	return store.Object{"errors": wrong}, err
}

func (p *Page) slash(ctx context.Context, me *localslack.Person, a pageAction) (any, error) {
	var opts []localslack.SlashOption
	if a.Thread != "" {
		opts = append(opts, localslack.InThread(a.Thread))
	}
	_, err := me.Slash(ctx, a.Channel, a.Name, a.Text, opts...)
	return nil, err
}

func (p *Page) runControl(ctx context.Context, _ *localslack.Person, a pageAction) (any, error) {
	if p.opts.Demo == nil {
		return nil, slackerr.Refusedf("there is nothing behind this page")
	}
	said, err := p.opts.Demo.RunControl(ctx, a.Name, a.Channel, a.Thread)
	return store.Object{"said": said}, err
}

// send writes a message in a channel, or in a thread of it.
func send(me *localslack.Person, channel, thread, text string, opts ...localslack.PostOption) (ts string, err error) {
	if thread == "" {
		return me.Post(channel, text, opts...)
	}
	return me.Reply(channel, thread, text, opts...)
}

package localslack

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

// SlashOption changes where a command is typed.
type SlashOption func(*slashOptions)

type slashOptions struct{ thread string }

// InThread types the command in a thread, where Slack refuses it.
func InThread(ts string) SlashOption { return func(s *slashOptions) { s.thread = ts } }

// SlashResult is what came of a command.
type SlashResult struct {
	Ack       json.RawMessage // the ack's payload, if any
	TriggerID string
	// ResponseURL takes later answers.
	ResponseURL string
}

// Slash types a command. It returns when the app acked it; a text in the ack is shown as an ephemeral message, or
// posted when it says in_channel. Slack's refusals are [slackerr.ErrRefused], an app that is silent is [slackerr.ErrNoAnswer].
func (p *Person) Slash(ctx context.Context, channel, command, text string, opts ...SlashOption) (SlashResult, error) {
	var s slashOptions
	for _, o := range opts {
		o(&s)
	}
	w := p.w
	w.Mu.Lock()
	ch, err := p.commandChannel(channel, command, s)
	if err != nil {
		w.Mu.Unlock()
		return SlashResult{}, err
	}
	res, payload := p.slashPayload(ch, command, text)
	w.Mu.Unlock()
	ack, err := w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "slash_commands", Payload: w.EncodeJSON(payload), AcceptsPayload: true})
	if err != nil {
		w.Mu.Lock()
		w.ShowEphemeral(store.Ephemeral{Channel: ch.ID, User: p.ID, Source: "slackbot",
			Text: command + " failed with the error \"" + slashErrorCode(err) + "\""})
		w.Mu.Unlock()
		return res, err
	}
	res.Ack = ack
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return res, w.ShowAck(ch, p.ID, "", "ack", ack)
}

func slashErrorCode(err error) string {
	if strings.Contains(err.Error(), "no connection") {
		return "dispatch_failed"
	}
	return "operation_timeout"
}

func (p *Person) commandChannel(channel, command string, s slashOptions) (*store.ChannelState, error) {
	ch, err := p.writableChannel(channel)
	switch {
	case err != nil:
		return nil, err
	case s.thread != "":
		return nil, slackerr.Refusedf("%s is not supported in threads. Sorry!", command)
	case p.w.Opts.Commands != nil && !slices.Contains(p.w.Opts.Commands, command):
		return nil, slackerr.Refusedf("%s is not a valid command. In Slack, all messages that start with the \"/\" character are interpreted as commands.", command)
	}
	return ch, nil
}

func (p *Person) slashPayload(ch *store.ChannelState, command, text string) (SlashResult, store.Object) {
	w := p.w
	if !w.Opts.RawCommands {
		text = w.escapeCommand(text)
	}
	res := SlashResult{TriggerID: w.NewTrigger(p.ID, "")}
	res.ResponseURL = w.NewResponseURL(&store.ResponseURL{Channel: ch.ID, User: p.ID})
	name := ch.Name
	if ch.Kind == store.DirectMessage {
		name = "directmessage"
	}
	domain := w.Opts.TeamDomain
	if p.IsStranger() {
		domain = "elsewhere"
	}
	return res, store.Object{"token": "verification", "team_id": p.TeamID, "team_domain": domain,
		"channel_id": ch.ID, "channel_name": name, "user_id": p.ID, "user_name": p.Name, "command": command, "text": text,
		"api_app_id": w.AppID(), "is_enterprise_install": "false", "response_url": res.ResponseURL, "trigger_id": res.TriggerID}
}

// escapeCommand writes names and URLs in a command's text as tokens, and escapes the rest, as should_escape asks for.
func (w *Workspace) escapeCommand(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		words[i] = w.escapeWord(word)
	}
	return strings.Join(words, " ")
}

func (w *Workspace) escapeWord(word string) string {
	if word == "" || word[0] != '@' && word[0] != '#' && !strings.Contains(word, "://") {
		return store.Escape(word)
	}
	el, used := w.ParseToken(word)
	switch {
	case el == nil:
		return store.Escape(word)
	case el["type"] == "user":
		id := blockkit.Str(el["user_id"])
		return "<@" + id + "|" + w.MembersByID[id].Name + ">" + store.Escape(word[used:])
	case el["type"] == "link" && !strings.HasPrefix(word, "http"):
		return store.Escape(word)
	}
	return w.RenderElement(el) + store.Escape(word[used:])
}

// userPayload is a person as payloads of interactions name them.
func (p *Person) userPayload() store.Object {
	return store.Object{"id": p.ID, "username": p.Name, "name": p.Name, "team_id": p.TeamID}
}

func (w *Workspace) newInteraction(kind string, p *Person) store.Object {
	return store.Object{"type": kind, "user": p.userPayload(), "api_app_id": w.AppID(), "token": "verification",
		"team": store.Object{"id": w.Opts.TeamID, "domain": w.Opts.TeamDomain}, "enterprise": nil, "is_enterprise_install": false}
}

// Shortcut picks the app's shortcut in a message's menu.
func (p *Person) Shortcut(ctx context.Context, channel, ts, callbackID string) error {
	w := p.w
	w.Mu.Lock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err == nil && w.Opts.Shortcuts != nil && !slices.Contains(w.Opts.Shortcuts, callbackID) {
		err = slackerr.Refusedf("the app has no shortcut %s", callbackID)
	}
	if err != nil {
		w.Mu.Unlock()
		return err
	}
	pl := w.newInteraction("message_action", p)
	delete(pl, "api_app_id") // shortcuts come without
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.NewTS(), callbackID, w.NewTrigger(p.ID, "")
	pl["channel"] = store.Object{"id": ch.ID, "name": ch.Name}
	pl["message_ts"], pl["message"] = m.TS, m.Clone()
	pl["response_url"] = w.NewResponseURL(&store.ResponseURL{Channel: ch.ID, User: p.ID, TS: m.TS})
	w.Mu.Unlock()
	_, err = w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl)})
	return err
}

// GlobalShortcut picks the app's shortcut in the composer's menu.
func (p *Person) GlobalShortcut(ctx context.Context, callbackID string) error {
	w := p.w
	w.Mu.Lock()
	pl := w.newInteraction("shortcut", p)
	delete(pl, "api_app_id")
	pl["user"] = store.Object{"id": p.ID, "username": p.Name, "team_id": p.TeamID}
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.NewTS(), callbackID, w.NewTrigger(p.ID, "")
	w.Mu.Unlock()
	_, err := w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl)})
	return err
}

// OpenHome opens the app's Home tab: an app_home_opened event.
func (p *Person) OpenHome(context.Context) error {
	w := p.w
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ev := store.Object{"type": "app_home_opened", "user": p.ID, "channel": w.Im(p.ID).ID, "tab": "home", "event_ts": w.NewTS()}
	if h := w.Homes[p.ID]; h != nil {
		ev["view"] = h.Payload(w.Store)
	}
	w.EmitEvent("app_home_opened", ev, nil)
	return nil
}

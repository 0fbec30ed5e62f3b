package localslack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

const triggerTTL = 3 * time.Second

// trigger lets the app open a modal for somebody within three seconds, once.
type trigger struct {
	user    string
	expires time.Time
	used    bool
	viewID  string // the modal it came from
}

// newTrigger makes a trigger id. The caller holds mu.
func (w *Store) newTrigger(user, viewID string) string {
	if len(w.triggers) > 4096 {
		maps.DeleteFunc(w.triggers, func(_ string, t *trigger) bool { return w.clock.Now().Sub(t.expires) > time.Minute })
	}
	id := fmt.Sprintf("%d.%d.%s", w.clock.Now().UnixMilli(), w.lastID, slackid.Hex(16))
	w.triggers[id] = &trigger{user: user, expires: w.clock.Now().Add(triggerTTL), viewID: viewID}
	return id
}

// sendAndAwaitAck sends a payload and waits for its ack.
func (w *Hub) sendAndAwaitAck(ctx context.Context, d *envelopeDelivery) (json.RawMessage, error) {
	type answer struct {
		payload json.RawMessage
		failure string
	}
	if d.kind == "interactive" && w.opts.NoInteractivity {
		return nil, slackerr.Refusedf("This app is not configured to handle interactive responses.")
	}
	got := make(chan answer, 1)
	d.onAck = func(p json.RawMessage) { got <- answer{payload: p} }
	d.onFail = func(reason string) { got <- answer{failure: reason} }
	w.mu.Lock()
	w.startDelivery(d)
	w.mu.Unlock()
	select {
	case a := <-got:
		if a.failure != "" {
			return nil, fmt.Errorf("%w: %s", slackerr.ErrNoAnswer, a.failure)
		}
		return a.payload, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.ctx.Done():
		return nil, fmt.Errorf("%w: the workspace closed", slackerr.ErrNoAnswer)
	}
}

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
// posted when it says in_channel. Slack's refusals are [ErrRefused], an app that is silent is [ErrNoAnswer].
func (p *Person) Slash(ctx context.Context, channel, command, text string, opts ...SlashOption) (SlashResult, error) {
	var s slashOptions
	for _, o := range opts {
		o(&s)
	}
	w := p.w
	w.mu.Lock()
	ch, err := p.commandChannel(channel, command, s)
	if err != nil {
		w.mu.Unlock()
		return SlashResult{}, err
	}
	res, payload := p.slashPayload(ch, command, text)
	w.mu.Unlock()
	ack, err := w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "slash_commands", payload: w.encodeJSON(payload), acceptsPayload: true})
	if err != nil {
		w.mu.Lock()
		w.showEphemeral(Ephemeral{Channel: ch.id, User: p.ID, Source: "slackbot",
			Text: command + " failed with the error \"" + slashErrorCode(err) + "\""})
		w.mu.Unlock()
		return res, err
	}
	res.Ack = ack
	w.mu.Lock()
	defer w.mu.Unlock()
	return res, w.showAck(ch, p.ID, "", "ack", ack)
}

func slashErrorCode(err error) string {
	if strings.Contains(err.Error(), "no connection") {
		return "dispatch_failed"
	}
	return "operation_timeout"
}

func (p *Person) commandChannel(channel, command string, s slashOptions) (*channelState, error) {
	ch, err := p.writableChannel(channel)
	switch {
	case err != nil:
		return nil, err
	case s.thread != "":
		return nil, slackerr.Refusedf("%s is not supported in threads. Sorry!", command)
	case p.w.opts.Commands != nil && !slices.Contains(p.w.opts.Commands, command):
		return nil, slackerr.Refusedf("%s is not a valid command. In Slack, all messages that start with the \"/\" character are interpreted as commands.", command)
	}
	return ch, nil
}

func (p *Person) slashPayload(ch *channelState, command, text string) (SlashResult, jsonObject) {
	w := p.w
	if !w.opts.RawCommands {
		text = w.escapeCommand(text)
	}
	res := SlashResult{TriggerID: w.newTrigger(p.ID, "")}
	res.ResponseURL = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID})
	name := ch.name
	if ch.kind == DirectMessage {
		name = "directmessage"
	}
	domain := w.opts.TeamDomain
	if p.IsStranger() {
		domain = "elsewhere"
	}
	return res, jsonObject{"token": "verification", "team_id": p.TeamID, "team_domain": domain,
		"channel_id": ch.id, "channel_name": name, "user_id": p.ID, "user_name": p.Name, "command": command, "text": text,
		"api_app_id": w.appID, "is_enterprise_install": "false", "response_url": res.ResponseURL, "trigger_id": res.TriggerID}
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
		return escape(word)
	}
	el, used := w.parseToken(word)
	switch {
	case el == nil:
		return escape(word)
	case el["type"] == "user":
		id := blockkit.Str(el["user_id"])
		return "<@" + id + "|" + w.people[id].Name + ">" + escape(word[used:])
	case el["type"] == "link" && !strings.HasPrefix(word, "http"):
		return escape(word)
	}
	return w.renderElement(el) + escape(word[used:])
}

// person as payloads of interactions name them.
func (p *Person) userPayload() jsonObject {
	return jsonObject{"id": p.ID, "username": p.Name, "name": p.Name, "team_id": p.TeamID}
}

func (w *Workspace) newInteraction(kind string, p *Person) jsonObject {
	return jsonObject{"type": kind, "user": p.userPayload(), "api_app_id": w.appID, "token": "verification",
		"team": jsonObject{"id": w.opts.TeamID, "domain": w.opts.TeamDomain}, "enterprise": nil, "is_enterprise_install": false}
}

// Shortcut picks the app's shortcut in a message's menu.
func (p *Person) Shortcut(ctx context.Context, channel, ts, callbackID string) error {
	w := p.w
	w.mu.Lock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err == nil && w.opts.Shortcuts != nil && !slices.Contains(w.opts.Shortcuts, callbackID) {
		err = slackerr.Refusedf("the app has no shortcut %s", callbackID)
	}
	if err != nil {
		w.mu.Unlock()
		return err
	}
	pl := w.newInteraction("message_action", p)
	delete(pl, "api_app_id") // shortcuts come without
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.newTS(), callbackID, w.newTrigger(p.ID, "")
	pl["channel"] = jsonObject{"id": ch.id, "name": ch.name}
	pl["message_ts"], pl["message"] = m.TS, m.clone()
	pl["response_url"] = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID, ts: m.TS})
	w.mu.Unlock()
	_, err = w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}

// GlobalShortcut picks the app's shortcut in the composer's menu.
func (p *Person) GlobalShortcut(ctx context.Context, callbackID string) error {
	w := p.w
	w.mu.Lock()
	pl := w.newInteraction("shortcut", p)
	delete(pl, "api_app_id")
	pl["user"] = jsonObject{"id": p.ID, "username": p.Name, "team_id": p.TeamID}
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.newTS(), callbackID, w.newTrigger(p.ID, "")
	w.mu.Unlock()
	_, err := w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}

// OpenHome opens the app's Home tab: an app_home_opened event.
func (p *Person) OpenHome(context.Context) error {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	ev := jsonObject{"type": "app_home_opened", "user": p.ID, "channel": w.im(p.ID).id, "tab": "home", "event_ts": w.newTS()}
	if h := w.homes[p.ID]; h != nil {
		ev["view"] = h.payload(w.Store)
	}
	w.emitEvent("app_home_opened", ev, nil)
	return nil
}

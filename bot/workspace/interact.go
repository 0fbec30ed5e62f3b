package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrNoAnswer is what a person sees when the app did not ack a command, a click or a modal in time, or was not
// connected: Slack tries once, and never again.
var ErrNoAnswer = errors.New("the app did not respond")

const triggerLife = 3 * time.Second

// trigger lets the app open a modal for somebody within three seconds, once.
type trigger struct {
	user   string
	until  time.Time
	used   bool
	viewID string // the modal it came from
}

// newTrigger makes a trigger id. The caller holds mu.
func (w *Workspace) newTrigger(user, viewID string) string {
	if len(w.triggers) > 4096 {
		maps.DeleteFunc(w.triggers, func(_ string, t *trigger) bool { return w.clock.Now().Sub(t.until) > time.Minute })
	}
	id := fmt.Sprintf("%d.%d.%s", w.clock.Now().UnixMilli(), w.lastID, randomHex(16))
	w.triggers[id] = &trigger{user: user, until: w.clock.Now().Add(triggerLife), viewID: viewID}
	return id
}

// interaction sends a payload and waits for its ack.
func (w *Workspace) interaction(ctx context.Context, d *delivery) (json.RawMessage, error) {
	type answer struct {
		payload json.RawMessage
		failure string
	}
	if d.kind == "interactive" && w.opts.NoInteractivity {
		return nil, refused("This app is not configured to handle interactive responses.")
	}
	got := make(chan answer, 1)
	d.onAck = func(p json.RawMessage) { got <- answer{payload: p} }
	d.onFail = func(reason string) { got <- answer{failure: reason} }
	w.mu.Lock()
	w.send(d)
	w.mu.Unlock()
	select {
	case a := <-got:
		if a.failure != "" {
			return nil, fmt.Errorf("%w: %s", ErrNoAnswer, a.failure)
		}
		return a.payload, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.ctx.Done():
		return nil, fmt.Errorf("%w: the workspace closed", ErrNoAnswer)
	}
}

// SlashOption changes where a command is typed.
type SlashOption func(*slash)

type slash struct{ thread string }

// InThread types the command in a thread, where Slack refuses it.
func InThread(ts string) SlashOption { return func(s *slash) { s.thread = ts } }

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
	var s slash
	for _, o := range opts {
		o(&s)
	}
	w := p.w
	w.mu.Lock()
	ch, err := p.commandable(channel, command, s)
	if err != nil {
		w.mu.Unlock()
		return SlashResult{}, err
	}
	res, payload := p.slashPayload(ch, command, text)
	w.mu.Unlock()
	ack, err := w.interaction(ctx, &delivery{kind: "slash_commands", payload: w.encode(payload), accepts: true})
	if err != nil {
		w.mu.Lock()
		w.showEphemeral(Ephemeral{Channel: ch.id, User: p.ID, Source: "slackbot",
			Text: command + " failed with the error \"" + slashFailure(err) + "\""})
		w.mu.Unlock()
		return res, err
	}
	res.Ack = ack
	w.mu.Lock()
	defer w.mu.Unlock()
	return res, w.say(ch, p.ID, "", "ack", ack)
}

func slashFailure(err error) string {
	if strings.Contains(err.Error(), "no connection") {
		return "dispatch_failed"
	}
	return "operation_timeout"
}

func (p *Person) commandable(channel, command string, s slash) (*channelState, error) {
	ch, err := p.writable(channel)
	switch {
	case err != nil:
		return nil, err
	case s.thread != "":
		return nil, refused("%s is not supported in threads. Sorry!", command)
	case p.w.opts.Commands != nil && !slices.Contains(p.w.opts.Commands, command):
		return nil, refused("%s is not a valid command. In Slack, all messages that start with the \"/\" character are interpreted as commands.", command)
	}
	return ch, nil
}

func (p *Person) slashPayload(ch *channelState, command, text string) (SlashResult, reply) {
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
	if p.stranger() {
		domain = "elsewhere"
	}
	return res, reply{"token": "verification", "team_id": p.TeamID, "team_domain": domain,
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
	el, used := w.token(word)
	switch {
	case el == nil:
		return escape(word)
	case el["type"] == "user":
		id := str(el["user_id"])
		return "<@" + id + "|" + w.people[id].Name + ">" + escape(word[used:])
	case el["type"] == "link" && !strings.HasPrefix(word, "http"):
		return escape(word)
	}
	return w.wireElement(el) + escape(word[used:])
}

// person as payloads of interactions name them.
func (p *Person) ref() reply {
	return reply{"id": p.ID, "username": p.Name, "name": p.Name, "team_id": p.TeamID}
}

func (w *Workspace) interactive(kind string, p *Person) reply {
	return reply{"type": kind, "user": p.ref(), "api_app_id": w.appID, "token": "verification",
		"team": reply{"id": w.opts.TeamID, "domain": w.opts.TeamDomain}, "enterprise": nil, "is_enterprise_install": false}
}

// Shortcut picks the app's shortcut in a message's menu.
func (p *Person) Shortcut(ctx context.Context, channel, ts, callbackID string) error {
	w := p.w
	w.mu.Lock()
	ch, m, err := p.message(channel, ts)
	if err == nil && w.opts.Shortcuts != nil && !slices.Contains(w.opts.Shortcuts, callbackID) {
		err = refused("the app has no shortcut %s", callbackID)
	}
	if err != nil {
		w.mu.Unlock()
		return err
	}
	pl := w.interactive("message_action", p)
	delete(pl, "api_app_id") // shortcuts come without
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.newTS(), callbackID, w.newTrigger(p.ID, "")
	pl["channel"] = reply{"id": ch.id, "name": ch.name}
	pl["message_ts"], pl["message"] = m.TS, m.clone()
	pl["response_url"] = w.newResponseURL(&responseURL{channel: ch.id, user: p.ID, ts: m.TS})
	w.mu.Unlock()
	_, err = w.interaction(ctx, &delivery{kind: "interactive", payload: w.encode(pl)})
	return err
}

// GlobalShortcut picks the app's shortcut in the composer's menu.
func (p *Person) GlobalShortcut(ctx context.Context, callbackID string) error {
	w := p.w
	w.mu.Lock()
	pl := w.interactive("shortcut", p)
	delete(pl, "api_app_id")
	pl["user"] = reply{"id": p.ID, "username": p.Name, "team_id": p.TeamID}
	pl["action_ts"], pl["callback_id"], pl["trigger_id"] = w.newTS(), callbackID, w.newTrigger(p.ID, "")
	w.mu.Unlock()
	_, err := w.interaction(ctx, &delivery{kind: "interactive", payload: w.encode(pl)})
	return err
}

// OpenHome opens the app's Home tab: an app_home_opened event.
func (p *Person) OpenHome(context.Context) error {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	ev := reply{"type": "app_home_opened", "user": p.ID, "channel": w.im(p.ID).id, "tab": "home", "event_ts": w.newTS()}
	if h := w.homes[p.ID]; h != nil {
		ev["view"] = h.wire(w)
	}
	w.emitEvent("app_home_opened", ev, nil)
	return nil
}

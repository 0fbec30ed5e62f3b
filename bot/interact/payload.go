package interact

import (
	"cmp"

	"the-loop/authz"
	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
)

// parseInteraction reads the payload of an interaction or a slash command.
func parseInteraction(c Slack, e slack.Envelope, p lenientjson.Object) Interaction {
	self := c.Self()
	if e.Type == slack.EnvelopeCommand {
		return parseCommandInteraction(c, e, p)
	}
	button := lenientjson.Object{}
	if actions := p.Objects("actions"); len(actions) > 0 {
		button = actions[0]
	}
	container, msg, view := p.Obj("container"), p.Obj("message"), p.Obj("view")
	a := Interaction{
		Actor:       parseActor(self, p.Obj("user")),
		Name:        cmp.Or(button.Str("action_id"), p.Str("callback_id"), view.Str("callback_id")),
		Value:       button.Str("value"),
		Channel:     cmp.Or(p.Obj("channel").Str("id"), container.Str("channel_id")),
		Root:        cmp.Or(container.Str("thread_ts"), msg.Str("thread_ts")),
		TS:          cmp.Or(container.Str("message_ts"), p.Str("message_ts"), msg.Str("ts")),
		TriggerID:   p.Str("trigger_id"),
		ResponseURL: p.Str("response_url"),
		Payload:     e.Payload,
		View:        View{ID: view.Str("id"), Kind: view.Str("type"), Meta: view.Str("private_metadata")},
	}
	return a
}

// parseActor reads the member. Only the member's own team counts, never that of the workspace in which it happened.
func parseActor(self slack.Self, user lenientjson.Object) authz.Actor {
	team := user.Str("team_id")
	if self.Enterprise != "" && team != self.Team {
		team = ""
	}
	return authz.Actor{User: user.Str("id"), Team: team, Bot: user.IsTrue("is_bot")}
}

func parseCommandInteraction(c Slack, e slack.Envelope, p lenientjson.Object) Interaction {
	self := c.Self()
	user := lenientjson.Object{"id": p["user_id"], "team_id": p["team_id"]}
	return Interaction{Actor: parseActor(self, user), Name: p.Str("command"), Text: c.DecodeText(p.Str("text")),
		Channel: p.Str("channel_id"), TriggerID: p.Str("trigger_id"), ResponseURL: p.Str("response_url"), Payload: e.Payload}
}

package slack

import (
	"strings"

	"the-loop/authz"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// Subtypes of messages that mean something here.
const (
	subtypeChanged   = "message_changed"
	subtypeDeleted   = "message_deleted"
	subtypeReplied   = "message_replied"
	subtypeTombstone = "tombstone"
	subtypeBot       = "bot_message"
)

// slackbot is the member id of Slack's own messages, which have no bot_id.
const slackbot = "USLACKBOT"

// personSubtypes are the subtypes of what a person wrote. thread_broadcast (a reply that was also sent to the channel) comes
// instead of the plain event.
var personSubtypes = map[string]bool{"": true, "file_share": true, "thread_broadcast": true, "me_message": true}

// Reasons for which a message goes no further, as the event log has them.
const (
	DropBot           = "bot-authored"
	DropTopLevel      = "top-level"
	DropUnfurl        = "unfurl"   // the message was changed, but not its text
	DropSubtype       = "not-said" // a join, a topic or another message that no person wrote
	DropNoAuthor      = "no-author"
	DropUnauthorized  = "unauthorized-actor"
	DropConfigInvalid = "config-invalid" // the configuration does not validate, so nobody is authorized
	DropUnreadable    = "unreadable"
)

// message is one message as Slack wrote it.
type message struct {
	lenientjson.Object
	channel string
}

func (m message) ts() string      { return m.Str("ts") }
func (m message) subtype() string { return m.Str("subtype") }
func (m message) thread() string  { return m.Str("thread_ts") }
func (m message) isReply() bool   { return m.thread() != "" && m.thread() != m.ts() }

// isFrom reports whether the message is our own.
func (m message) isFrom(self Self) bool {
	return self.User != "" && m.Str("user") == self.User || self.Bot != "" && m.Str("bot_id") == self.Bot
}

// isAutomated reports whether a bot or an app wrote the message, also one that used a person's token: then only these fields
// tell.
func (m message) isAutomated(self Self) bool {
	return m.subtype() == subtypeBot || m.Str("user") == slackbot || m.Str("bot_id") != "" || m.Str("app_id") != "" || m.Has("bot_profile") || m.isFrom(self)
}

// dropReason is the reason for which the message is not a person's reply in a thread, or empty.
func (m message) dropReason(self Self) string {
	switch {
	case m.isAutomated(self):
		return DropBot
	case !personSubtypes[m.subtype()] || m.ts() == "":
		return DropSubtype
	case !m.isReply():
		return DropTopLevel
	case m.Str("user") == "":
		return DropNoAuthor
	}
	return ""
}

// actor is the author as far as the message tells. In a shared channel the fields may name different teams: one that
// is not ours counts. In an organisation the team alone does not tell whether somebody is a stranger, so another team is left
// empty, to be looked up.
func (m message) actor(self Self) authz.Actor {
	team := homeTeam(self, m.Str("user_team"), m.Str("source_team"), m.Str("team"))
	if self.Enterprise != "" && team != self.Team {
		team = ""
	}
	return authz.Actor{User: m.Str("user"), Team: team, Bot: m.isAutomated(self)}
}

// homeTeam is the first team that is not ours, else ours if it is among them, else empty.
func homeTeam(self Self, teams ...string) string {
	home := ""
	for _, team := range teams {
		switch {
		case team == "":
		case team != self.Team:
			return team
		default:
			home = team
		}
	}
	return home
}

// mentionCommand reads the command of a message that begins with a mention of the bot; nil when it does not.
func (m message) mentionCommand(self Self, l nameLookup) *chat.Command {
	text := strings.TrimLeft(m.Str("text"), " \t\r\n\u00a0\u200b")
	inner, ok := strings.CutPrefix(text, "<@"+self.User)
	if !ok || self.User == "" {
		return nil
	}
	label, rest, ok := strings.Cut(inner, ">")
	if !ok || label != "" && label[0] != '|' {
		return nil
	}
	return chat.ParseCommand(decodeText(rest, l))
}

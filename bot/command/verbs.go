package command

import (
	"context"
	"slices"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// Role is what a member must be to use a verb. Whoever calls [Commands.Run] has authorized the member.
type Role int

// The roles.
const (
	Nobody Role = iota // not authorized
	Member             // on the list of the configuration
)

// verb is one command.
type verb struct {
	name     string
	slash    *usage          // as a slash command; nil: it does not exist there
	thread   *usage          // after a mention in a session's thread, on that session; nil: it does not exist there
	who      Role            // who may use it
	flags    map[string]bool // its flags, and whether each takes a value
	freeText bool            // what follows is a text and not arguments
	run      func(c *Commands, ctx context.Context, in invocation) (Answer, error)
}

// usage is how a verb is used in one place.
type usage struct{ args, help string }

// verbs are all commands, in the order of the help.
func verbs() []verb {
	return []verb{
		{name: "help", who: Member, run: (*Commands).help,
			slash: &usage{"", "this text"}},
		{name: "status", who: Member, run: (*Commands).status,
			slash:  &usage{"", "post the state of the bot and the sessions in the channel"},
			thread: &usage{"", "show this session's state"}},
		{name: "list", who: Member, run: (*Commands).list,
			slash: &usage{"", "list the sessions"}},
		{name: "create", who: Member, run: (*Commands).create, flags: map[string]bool{"harness": true, "cwd": true, "no-start": false},
			slash: &usage{"[NAME [--harness HARNESS] [--cwd FOLDER] [--no-start] [-- BRIEF]]", "create a session; without a name a form opens"}},
		{name: "delete", who: Member, run: (*Commands).delete,
			slash:  &usage{"NAME", "stop a created session and delete it, after a confirmation"},
			thread: &usage{"", "stop a created session and delete it, after a confirmation"}},
		{name: VerbStart, who: Member, run: (*Commands).changeState,
			slash:  &usage{"NAME", "start a session and continue its conversation"},
			thread: &usage{"", "start the session and continue its conversation"}},
		{name: VerbStop, who: Member, run: (*Commands).changeState,
			slash:  &usage{"NAME", "stop a session; its conversation is kept"},
			thread: &usage{"", "stop the session; its conversation is kept"}},
		{name: VerbRestart, who: Member, run: (*Commands).restart, flags: map[string]bool{"all": false, "dry-run": false},
			slash:  &usage{"NAME | --all [--dry-run]", "restart a session in its terminal and conversation, with the current env file; --all restarts every running session"},
			thread: &usage{"[--all [--dry-run]]", "restart the session in its terminal and conversation, with the current env file; --all restarts every running session"}},
		{name: "say", who: Member, run: (*Commands).say, freeText: true,
			slash: &usage{"NAME TEXT", "send a text to a session, like a reply in its thread"}},
		{name: "peek", who: Member, run: (*Commands).peek, flags: map[string]bool{"share": false},
			slash:  &usage{"NAME [--share]", "show a session's terminal to you, or with --share to its thread"},
			thread: &usage{"[--share]", "show the terminal to you, or with --share to the thread"}},
		{name: "interrupt", who: Member, run: (*Commands).interrupt,
			thread: &usage{"", "interrupt what the agent is doing"}},
		{name: "keys", who: Member, run: (*Commands).keys, freeText: true,
			thread: &usage{"KEY …", "press keys in the terminal at once, ahead of replies that wait"}},
		{name: chat.VerbRaw, who: Member, // package threads queues it like a reply
			thread: &usage{"/COMMAND", "send the agent a command of its own, in turn like a reply"}},
	}
}

// find returns the verb of that name which exists in the place; nil when there is none.
func find(name string, p place) *verb {
	for _, v := range verbs() {
		if v.name == name && v.usage(p) != nil {
			return &v
		}
	}
	return nil
}

// place is where a command is given.
type place int

const (
	inSlash place = iota
	inThread
)

// usage is how the verb is used in a place; nil: it does not exist there.
func (v verb) usage(p place) *usage {
	if p == inThread {
		return v.thread
	}
	return v.slash
}

// Usage is a verb of the slash command, as its help has it.
type Usage struct{ Verb, Args, Description string }

// Usages are the verbs of the slash command, in the order of its help.
func Usages() (all []Usage) {
	for _, v := range verbs() {
		if v.slash != nil {
			all = append(all, Usage{Verb: v.name, Args: v.slash.args, Description: v.slash.help})
		}
	}
	return all
}

// UsageHint is what Slack shows beside the slash command: at most 1,000 characters.
func UsageHint() string {
	var names []string
	for _, u := range Usages() {
		names = append(names, u.Verb)
	}
	return strings.Join(names, " | ")
}

// helpText explains the verbs of a place. prefix stands before each: the slash command.
func helpText(prefix string, p place) string {
	lines := []string{"Commands:"}
	if p == inThread {
		lines[0] = "Commands in this thread, after a mention of me:"
	}
	for _, v := range verbs() {
		if u := v.usage(p); u != nil {
			lines = append(lines, "• "+render.InlineCode(line(prefix, v.name, u.args))+" – "+u.help)
		}
	}
	if p == inThread {
		return strings.Join(append(lines, "Anything that does not begin with a mention of me goes to the agent."), "\n")
	}
	return strings.Join(append(lines, "To talk to a session, reply in the thread under its announcement. In a thread, mention me instead of "+
		render.InlineCode(prefix)+", use the buttons, or the shortcut “Session” in a message's menu."), "\n")
}

// usageText is how one verb is used in a place.
func (v verb) usageText(prefix string, p place) string {
	return "Usage: " + render.InlineCode(line(prefix, v.name, v.usage(p).args))
}

// line joins the parts of a command line that are there.
func line(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// The verbs that change a session's state.
const (
	VerbStart   = "start"
	VerbStop    = "stop"
	VerbRestart = "restart"
)

// parseRef reads a session's name, or its ref.
func parseRef(name string) (sessions.Ref, error) {
	if sessions.ValidName(name) {
		return sessions.StandingRef(name), nil
	}
	return sessions.ParseRef(name)
}

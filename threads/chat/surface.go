package chat

import (
	"context"
	"errors"
	"time"

	"the-loop/authz"
)

// History reads bound threads.
type History interface {
	// Replies reads one page of the thread under root: the replies after oldest (exclusive), oldest first. It is
	// lenient: a message with a malformed part is still returned. What bots wrote is left out. Errors:
	// [*RateLimitedError], [ErrThreadGone] when the root was deleted, [ErrUnavailable] when the bot may not read there or
	// there is no such channel (Slack says the same of both).
	Replies(ctx context.Context, channel, root, oldest, cursor string) (Page, error)
	// Reply reads the one reply ts of the thread anew. [ErrReplyGone] when it was deleted.
	Reply(ctx context.Context, channel, root, ts string) (Reply, error)
	// FindPost looks for a message of ours that carries the nonce, posted at or after since (by Slack's clock; zero: at any
	// time): in the thread under root, or with an empty root among the channel's own messages of a few minutes from
	// since. Empty ts: there is none.
	FindPost(ctx context.Context, channel, root, nonce string, since time.Time) (ts string, err error)
}

// Page is a part of a thread.
type Page struct {
	Replies []Reply
	Next    string    // cursor of the next page; empty: this was the last
	Now     time.Time // Slack's clock: the Date of the response
}

// ReactionWriter adds and removes our reactions on replies. Adding one that is there, and removing one that is not, is no error.
// Errors as for [History], with [ErrReplyGone].
type ReactionWriter interface {
	AddReaction(ctx context.Context, channel, ts, emoji string) error
	RemoveReaction(ctx context.Context, channel, ts, emoji string) error
}

// Poster posts and edits messages of ours.
type Poster interface {
	// Post posts and returns the message's ts. [ErrOutcomeUnknown] when Slack may have it and did not say so.
	Post(ctx context.Context, p Post) (ts string, err error)
	// Update replaces the content of a message of ours. [ErrReplyGone] when it was deleted.
	Update(ctx context.Context, ts string, p Post) error
}

// Post is a message of ours. The surface renders it.
type Post struct {
	Channel string   `json:"channel"`
	Root    string   `json:"root,omitempty"` // ts of the thread's root; empty: a message of the channel itself
	Text    string   `json:"text"`           // plain text with Slack's mrkdwn marks; not yet escaped parts are escaped by who wrote it
	Buttons []Button `json:"buttons,omitempty"`
	Nonce   string   `json:"nonce"`             // travels as message metadata, so that the message is found again
	Session string   `json:"session,omitempty"` // Record.ID, travels as message metadata
	Plain   bool     `json:"plain,omitempty"`   // Slack refused it as it should be: a short text, and nothing else
}

// Button is a choice under a post.
type Button struct {
	Label  string `json:"label"`
	Action string `json:"action"` // one of the Action… constants
	Value  string `json:"value"`  // opaque; names the question
	Style  string `json:"style,omitempty"`
}

// The actions of buttons, as they travel in Slack's action_id.
const (
	ActionSend = "reply_send" // type a reply that is in doubt, or replies that are offered
	ActionSkip = "reply_skip" // leave them untyped

	ActionAllow  = "ask_allow"  // what an agent asks permission for
	ActionDeny   = "ask_deny"   // the same
	ActionReason = "ask_reason" // deny it, with a reason that is asked for first

	ActionApproveEdits = "ask_allow_edits" // allow a plan, and edits without asking
	ActionAnswer       = "ask_answer"      // answer questions in a form
	ActionChoose       = "ask_choose_"     // and the number of an option, from 1: choose it, the answer to a single question
)

// Reply is one message of a bound thread, or of one that may be.
type Reply struct {
	Channel     string
	Root        string // ts of the thread's root
	TS          string // of the message: identity and order
	Edited      string // edited.ts of this version; empty: as it was written first
	Redelivered bool   // Slack sent its event again: it is not new, and its age counts
	Actor       authz.Actor
	Command     *Command // set when the text begins with a mention of the bot
	// Load completes the reply: it may ask Slack for the people named in it. A reply that holds no text for a person to
	// read has an empty text.
	Load func(ctx context.Context) (Content, error)
}

// Content is what a reply says.
type Content struct {
	Actor      authz.Actor // with the team looked up when the event did not tell it
	Speaker    string      // the author's display name, see [sessions.DisplayName]
	Text       string      // as the person typed it: tokens resolved, entities decoded once
	Unreadable []string    // what people see in it and the text can only name
	Files      []File      // that came with it
}

// Command is a reply that speaks to the bot and not to the agent.
type Command struct {
	Verb string   // lower case; empty: a bare mention
	Args []string // the words after it
	Rest string   // the text after the verb, as typed
}

// Errors of the surface that this package branches on, beside what [FailureOf] makes of them.
var (
	ErrThreadGone       = errors.New("the thread is gone")
	ErrReplyGone        = errors.New("the message is gone")
	ErrUnavailable      = errors.New("the bot cannot read or write in this channel")
	ErrRefused          = errors.New("the surface refuses this for good")
	ErrTooManyReactions = errors.New("the message has no room for another reaction") // beside ErrRefused
	ErrDisabled         = errors.New("the app may not do this")
	ErrOutcomeUnknown   = errors.New("no word from Slack whether it was done")
)

// RateLimitedError says how long Slack wants us to wait.
type RateLimitedError struct{ After time.Duration }

func (e *RateLimitedError) Error() string {
	return "Slack asks to wait " + e.After.String()
}

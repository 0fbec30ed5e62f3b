package bot

import (
	"slices"

	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/bot/slack/app"
	"the-loop/sessions"
)

// NewClient returns a client that renders and cleans texts as the bot does. Renderer, text rules and scopes are set here.
func NewClient(o slack.ClientOptions) (*slack.Client, error) {
	o.Renderer = render.Renderer{}
	o.Text = slack.TextRules{DisplayName: sessions.DisplayName, Handle: sessions.Handle, Clean: sessions.Clean}
	o.Scopes = app.RequiredScopes()
	return slack.NewClient(o)
}

// scrubber removes secrets with a function for texts.
type scrubber func(text string) string

// Scrub implements [slack.Scrubber].
func (s scrubber) Scrub(text string) string { return s(text) }

// ScrubJSON implements [slack.Scrubber].
func (s scrubber) ScrubJSON(data []byte, isMachineField func(key string) bool) []byte {
	return sessions.ScrubJSON(data, s, isMachineField)
}

// clientHooks are what the client asks and tells the bot.
func (b *Bot) clientHooks() slack.Hooks {
	h := slack.Hooks{CheckPost: b.sharing.Check, OnTokenChange: b.onTokenChange,
		IsListed: func(id string) bool { return slices.Contains(b.o.Config().Users, id) }}
	if b.o.Scrub != nil {
		h.Scrubber = scrubber(b.o.Scrub)
	}
	return h
}

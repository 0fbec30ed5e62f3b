package store

import "time"

// APIURL is the base of the Web API, with the trailing slash that clients want.
func (w *Base) APIURL() string { return w.BaseURL + "/api/" }

// URL is the base of everything the workspace serves, without a trailing slash.
func (w *Base) URL() string { return w.BaseURL }

// BotToken is the token of the installed app, xoxb-….
func (w *Base) BotToken() string { return w.Opts.BotToken }

// AppToken is the app-level token, xapp-1-A….
func (w *Base) AppToken() string { return w.Opts.AppToken }

// BotUserID is the bot's member id, U….
func (w *Base) BotUserID() string { return w.BotUser }

// BotID is the bot's id in messages, B….
func (w *Base) BotID() string { return w.botID }

// BotName is what people type after the @ to mention the bot.
func (w *Base) BotName() string { return w.Opts.BotName }

// AppID is the app's id, A….
func (w *Base) AppID() string { return w.appID }

// TeamID is the workspace's id, T….
func (w *Base) TeamID() string { return w.Opts.TeamID }

// Now is the workspace's time.
func (w *Base) Now() time.Time { return w.Clock.Now() }

// Package render turns what the bot says into Slack's Block Kit and text: messages, answers in markdown as Slack shows them,
// and pictures of terminals. It is pure: no clock, no network, no state.
package render

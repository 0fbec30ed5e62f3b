// Package render turns what the bot says into Slack's Block Kit and text. It is pure: no clock, no network, no state.
//
// text.go escapes, splits and tames text; post.go makes messages of it; screen.go reads what a terminal shows, and
// picture.go draws it. markdown.go and the files beside it show what agents write the way Slack shows things.
package render

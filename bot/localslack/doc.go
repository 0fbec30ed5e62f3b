// Package localslack is a local Slack workspace, as strict as Slack: the Web API methods that a bot uses with Slack's
// errors and limits, Socket Mode with its pings, acks and retries, response URLs, files, modals and several people.
// Tests and the demo drive it through its Go API; a bot sees nothing but HTTP and a WebSocket on loopback.
//
// Each part is a package that knows only those below it: the store has the state, socket delivers over Socket Mode,
// events sends what happens in channels, webapi answers the app's calls. A [Workspace] embeds them and is served here.
//
// Time comes from a [Clock] that a test can move; it rules timestamps, rates, ack deadlines, retries, the age of
// triggers and of response URLs. Only WebSocket pings follow the real clock, because clients time them with theirs.
//
// The page package shows all of it in a browser, to one person who writes as several.
//
// A [Workspace.Faults] script makes the workspace misbehave as Slack and networks do. What a Slack workspace would not say,
// this one does not say either: a bot that is not in a channel hears nothing from it.
package localslack

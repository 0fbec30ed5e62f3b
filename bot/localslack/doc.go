// Package workspace is a local Slack workspace, as strict as Slack: the Web InjectAPI methods that a bot uses with Slack's
// errors and limits, Socket Mode with its pings, acks and retries, response URLs, files, modals and several people.
// Tests and the demo drive it through its Go InjectAPI; a bot sees nothing but HTTP and a WebSocket on loopback.
//
// Time comes from a [Clock] that a test can move; it rules timestamps, rates, ack deadlines, retries, the age of
// triggers and of response URLs. Only WebSocket pings follow the real clock, because clients time them with theirs.
//
// A [Page] shows all of it in a browser, to one person who writes as several.
//
// A [Faults] script makes the workspace misbehave as Slack and networks do. What a Slack workspace would not say,
// this one does not say either: a bot that is not in a channel hears nothing from it.
package localslack

// Package slack calls Slack's Web API and decodes what Slack sends. [Client] implements the ports of package chat: it reads and
// writes threads, fetches and uploads files, and knows who is who. [EventRouter] makes replies and channel events of envelopes.
//
// Messages of people are read from the raw JSON and never through the structs of the Slack library: there one malformed block
// makes a whole page or event unreadable.
package slack

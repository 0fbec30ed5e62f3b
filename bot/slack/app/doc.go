// Package app knows what the-loop's Slack app must be: its scopes and events, the manifest that creates it, and the check of a
// set-up.
package app

// Package bot is the Slack surface: it wires Slack to packages threads and sessions.
package bot

// Package chat says what a chat service is to the-loop: the ids of messages, posts with their buttons, replies and files, the
// errors that callers branch on, and the ports that a service implements. Package bot/slack implements them for Slack.
package chat

// Package socket keeps a Socket Mode connection to Slack: it connects and connects again, acks envelopes at once, and hands them on
// in order.
package socket

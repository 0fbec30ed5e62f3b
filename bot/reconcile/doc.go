// Package reconcile keeps the chat service in line with the sessions: announcements, what agents say and show, and the message that
// tells of sessions with a stale environment.
package reconcile

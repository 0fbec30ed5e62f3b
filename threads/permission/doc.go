// Package permission is the life of an agent's permission request, as a state machine without any effect of its own: an event
// changes a [Request], and [Effects] say what is left to do. Package threads does it.
package permission

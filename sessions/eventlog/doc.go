// Package eventlog keeps the event log: one JSON object a line, appended by every process that works on a state root,
// and read by "the-loop events" and by scripts.
//
// A line has time (RFC 3339, UTC), event, level, and where they are known ref and id; then come the event's own fields
// in the order of their names. A field that has one of those five names gets a '_' at its end.
//
// Writers exclude each other by a flock lock on the file itself, taken for one write, so that no line is torn and none
// is written into a file that was rotated away. A log that would grow above its size becomes <path>.1, that one .2,
// and so on; [MaxRotatedFiles] are kept.
package eventlog

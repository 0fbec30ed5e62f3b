// Package envstate answers what the operator's env file declares now and what a running process holds, and is the only
// place that handles the values.
//
// A value leaves it in three ways only: to start a pane with ([File.Values]), as a [Fingerprint], or replaced by its
// name ([Scrubber]). The types that hold values print, log and marshal as a count. Nothing is stored.
//
// # The env file
//
// One variable a line, read without a shell; there is no expansion and no value that spans lines:
//
//	NAME=value               blanks around the name and the value do not count
//	export NAME=value        the same
//	NAME=value # comment     a # after a blank begins a comment; NAME=a#b keeps it
//	NAME='as it stands'      nothing is special up to the next single quote
//	NAME="with \"escapes\""  \" \\ \$ \` \n \r \t; any other backslash stands for itself
//	# comment
//
// A name matches [A-Za-z_][A-Za-z0-9_]*. Lines end with LF or CRLF, the last one may end without; a byte order mark is
// skipped. Of two lines with one name the later one counts. A line of any other shape, or with a NUL, is malformed: it
// is reported by its number, never by its text, and the others are used.
package envstate

// Package envstate answers what the operator's env file declares now and what a running process holds, and is the only
// place that handles the values.
//
// A value leaves it in three ways only: to start a pane with ([File.Values]), as a [Fingerprint], or replaced by its
// name ([Scrubber]). The types that hold values print, log and marshal as a count. Nothing is stored.
//
// # The env file
//
// Assignments as dotenv files have them, read without a shell and without expansion:
//
//	NAME=value               blanks around the name and the value do not count
//	export NAME=value        the same
//	NAME=value # comment     a # after a blank begins a comment; NAME=a#b keeps it
//	NAME='as it stands'      nothing is special up to the next single quote
//	NAME="with \"escapes\""  \" \\ \$ \` \n \r \t; any other backslash stands for itself
//	# comment
//
// A quoted value may go on over several lines; their ends are part of it, CRLF as LF. A name matches
// [A-Za-z_][A-Za-z0-9_]* and has at most 256 characters. Lines end with LF or CRLF, the last one may end without; a byte
// order mark is skipped. Of two assignments with one name the later one counts.
//
// Lines of any other shape, or with a NUL, are malformed: they are reported by their numbers, never by their text, and
// the others are used. Where a quote is never closed, or more follows a value of several lines, nobody can tell what is
// a name and what is part of a value: every line from there on is malformed.
//
// # Scrubbing
//
// A [Scrubber] finds a value in a text as it is, and as it is written down: wrapped over lines, also indented and bordered
// ones, as a terminal shows them; in the escapes of JSON, programming languages, URLs (%2F) and HTML, and in escapes of
// escapes; with the quotes and backslashes of shells and Markdown; in hexadecimal and in Base64, wherever in it the value
// begins. Of a value of several lines each line is looked for too. It does not find what is shorter than six characters
// (blanks, quotes and the like do not count in the forms other than the text as it is), a part of a value, as where a screen
// or a file's name is cut, what was compressed or encrypted, Base64 of Base64, other alphabets, and a value that somebody
// spells or takes apart in a way of his own. So it guards against what happens by itself, not against an agent that wants
// to give a value away.
package envstate

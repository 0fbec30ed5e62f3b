// Package statefile keeps state as JSON files that outlive the program that wrote them.
//
// A [Format] reads and writes one kind of file. A file is replaced whole: a temporary file beside it is written and synced,
// renamed over it, and the folder synced, so that a reader or a crash at any moment finds the old one or the new one. Files
// are 0600 and folders 0700; they are made when they are first needed.
//
// A file has its version under "version"; one without it has version 0. Older versions are migrated as they are read, and
// written as the present one. Fields that the program does not know are kept when it writes the file again, so that a field
// may be added without a new version, and is not lost when an older program had the file in between. A new version is
// for a change that an older program must not miss: it refuses the file with an [*UnreadableError].
//
// A file that cannot be read is named in the error and left as it is.
package statefile

// Package report keeps what agents report through their hooks: lines in a file of the session, which are appended without a running
// bot and read by several readers, each from an offset of its own.
package report

// Package permission carries permission requests between an agent's hook, which waits for the decision, and whoever decides. Each
// waiting hook listens at a socket of its own; a token that cannot be guessed names the request.
package permission

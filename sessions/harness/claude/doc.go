// Package claude is Claude Code as a harness. Versions in comments are those that a fact was measured with.
package claude

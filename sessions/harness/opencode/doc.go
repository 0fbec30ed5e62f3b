// Package opencode is OpenCode as a harness. Versions in comments are those that a fact was measured with.
package opencode

// Package codex is OpenAI's Codex as a harness. Versions in comments are those that a fact was measured with.
package codex

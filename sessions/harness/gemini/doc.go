// Package gemini is Google's Gemini CLI as a harness. Versions in comments are those that a fact was measured with.
package gemini

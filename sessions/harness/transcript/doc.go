// Package transcript has what the agents' transcripts have in common: offsets that may be stored, lines of growing files, and
// texts of which only a later line says whether they end a turn.
package transcript

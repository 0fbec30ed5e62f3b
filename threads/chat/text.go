package chat

import (
	"fmt"
	"strings"
)

// Escape makes a text safe in a message: only these three characters mean something there.
func Escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// EscapeCode is Escape for a text between backquotes.
func EscapeCode(text string) string { return strings.ReplaceAll(Escape(text), "`", "ˋ") }

// DateText is the moment of a message, which each reader sees in their own time zone.
func DateText(ts string) string {
	at := TSTime(ts)
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time_secs}|%s>", at.Unix(), at.UTC().Format("2006-01-02 15:04:05 UTC"))
}

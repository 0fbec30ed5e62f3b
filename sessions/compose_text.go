package sessions

import (
	"slices"
	"strings"
	"unicode"
)

// ComposeText returns the text that is typed into the pane: cleaned, and with the sender's name in front where the agent would take it
// for a command.
func ComposeText(q SubmitRequest, t Capabilities) (string, error) {
	text := Clean(q.Text)
	bare := strings.TrimLeftFunc(text, unicode.IsSpace)
	switch {
	case bare == "":
		return "", &Refusal{Cause: ErrEmptyText, What: "there is no text in it that could be typed"}
	case q.Raw && (!strings.HasPrefix(bare, "/") || strings.Contains(bare, "\n")):
		return "", &Refusal{Cause: ErrRefused, What: "a raw command is one line that begins with /"}
	case q.Raw:
		return bare, nil
	case isCommand(bare, t):
		return withSender(q.Sender, bare), nil
	}
	return text, nil
}

// withSender puts the sender's name in front of a text. It begins with a word that no agent takes for a command, and the name,
// which holds no quotation mark, cannot be taken for a part of the text.
func withSender(sender, text string) string {
	name := DisplayName(sender)
	if _, err := ParseRef(sender); err == nil {
		name = sender
	}
	if name == "" {
		name = "operator"
	}
	return `From "` + name + `": ` + text
}

// WithTrailer appends what must follow a text, see [Capabilities]. A raw command without arguments needs nothing.
func WithTrailer(text string, raw bool, t Capabilities) string {
	if raw && len(strings.Fields(text)) == 1 {
		return text
	}
	return text + t.Trailer
}

func isCommand(bare string, t Capabilities) bool {
	for _, p := range t.CommandPrefixes {
		if strings.HasPrefix(bare, p) {
			return true
		}
	}
	return slices.Contains(t.CommandWords, strings.TrimSpace(bare))
}

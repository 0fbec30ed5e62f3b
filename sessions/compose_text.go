package sessions

import (
	"slices"
	"strings"
	"unicode"
)

// composeText is the text that goes into the pane.
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

// withSender is a text with who says it in front. It begins with a word that no agent takes for a command, and the name,
// which holds no quotation mark, cannot be taken for a part of the text.
func withSender(speaker, text string) string {
	name := DisplayName(speaker)
	if _, err := ParseRef(speaker); err == nil {
		name = speaker
	}
	if name == "" {
		name = "operator"
	}
	return `From "` + name + `": ` + text
}

// withTrailer is the text with what has to follow it. A command without arguments needs nothing.
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

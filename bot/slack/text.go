package slack

import (
	"cmp"
	"regexp"
	"strings"
)

// TextRules make safe what people chose: so a name cannot be mistaken for text. All are required.
type TextRules struct {
	DisplayName func(string) string // of a person: one short line of letters and digits
	Handle      func(string) string // of a channel or a group, or an id: one word
	Clean       func(string) string // without control and invisible characters
}

func (t TextRules) oneLine(text string) string {
	return strings.Join(strings.Fields(t.Clean(text)), " ")
}

// prefixedHandle is an id or a handle behind its mark; empty when it is.
func (t TextRules) prefixedHandle(mark, id string) string {
	if id = t.Handle(id); id == "" {
		return ""
	}
	return mark + id
}

func (t TextRules) groupName(id, label string) string {
	return "@" + cmp.Or(t.Handle(strings.TrimPrefix(label, "@")), t.Handle(id))
}

// nameLookup finds the names behind ids. A lookup returns the empty string for an unknown id, and may be nil.
type nameLookup struct {
	TextRules
	member  func(id string) string // of those whose names may be shown; others are shown by their ids
	channel func(id string) string
}

func (l nameLookup) memberName(id string) string {
	return "@" + cmp.Or(l.DisplayName(lookUp(l.member, id)), l.Handle(id))
}

func (l nameLookup) channelName(id, label string) string {
	return "#" + cmp.Or(l.Handle(label), l.Handle(lookUp(l.channel, id)), l.Handle(id))
}

func lookUp(names func(string) string, id string) string {
	if names == nil || id == "" {
		return ""
	}
	return names(id)
}

// maxFileName is how much of a file's name is shown, in characters.
const maxFileName = 200

// textWithFiles is the message as its author typed it, with a line for each attached file.
func (m message) textWithFiles(l nameLookup) string {
	text, lines := m.fullText(l), m.fileLines(l)
	if strings.TrimSpace(text) != "" {
		lines = append([]string{text}, lines...)
	}
	return strings.Join(lines, "\n")
}

// fileLines names the files of a message. Their content is not fetched.
func (m message) fileLines(l nameLookup) []string {
	var lines []string
	for _, f := range m.files() {
		name := []rune(cmp.Or(l.oneLine(f.Name), "a file"))
		if len(name) > maxFileName {
			name = append(name[:maxFileName-1], '…')
		}
		lines = append(lines, "[attached in Slack: "+string(name)+"]")
	}
	return lines
}

var (
	tokenPattern     = regexp.MustCompile(`<[^<>]*>`)
	unescapeEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// decodeText undoes what Slack did to a text: first the tokens between < and > become what was typed, then the
// entities are decoded, once. A < that a person typed is an entity, so every bare one opens a token.
func decodeText(text string, l nameLookup) string {
	var b strings.Builder
	for {
		at := tokenPattern.FindStringIndex(text)
		if at == nil {
			b.WriteString(unescapeEntities.Replace(text))
			return b.String()
		}
		b.WriteString(unescapeEntities.Replace(text[:at[0]]))
		b.WriteString(decodeToken(text[at[0]+1:at[1]-1], l))
		text = text[at[1]:]
	}
}

// decodeToken resolves what stood between < and >.
func decodeToken(inner string, l nameLookup) string {
	id, label, _ := strings.Cut(inner, "|")
	label = unescapeEntities.Replace(label)
	switch {
	case strings.HasPrefix(id, "@"):
		return l.memberName(id[1:])
	case strings.HasPrefix(id, "#"):
		return l.channelName(id[1:], label)
	case strings.HasPrefix(id, "!"):
		return decodeSpecial(id[1:], label, l)
	case strings.Contains(id, ":"):
		return decodeLink(unescapeEntities.Replace(id), label)
	}
	return "<" + unescapeEntities.Replace(inner) + ">"
}

// decodeSpecial resolves <!here>, <!subteam^S1|@group>, <!date^…|fallback> and their like.
func decodeSpecial(name, label string, l nameLookup) string {
	kind, arg, _ := strings.Cut(name, "^")
	switch kind {
	case "here", "channel", "everyone":
		return "@" + kind
	case "subteam":
		return l.groupName(arg, label)
	}
	return cmp.Or(label, "@"+kind)
}

// decodeLink is a link as it was typed: Slack wraps bare addresses and completes them, so a label that is the address
// without its scheme stands for what was typed. Any other label was put on the link by its author, and both are shown
// the way Slack's composer takes them, [label](address): a label alone could hide where a link goes.
func decodeLink(address, label string) string {
	if label == "" {
		label = strings.TrimPrefix(strings.TrimPrefix(address, "mailto:"), "tel:")
		return label
	}
	for _, scheme := range []string{"", "http://", "https://", "mailto:", "tel:"} {
		if full := scheme + label; full == address || full+"/" == address {
			return label
		}
	}
	return "[" + label + "](" + address + ")"
}

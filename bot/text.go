package bot

import (
	"regexp"
	"strings"

	"the-loop/sessions"
)

// nameLookup finds the names behind ids; empty when there is none to be had. Either function may be nil. Names are what people
// chose, and come out of it so that they cannot be taken for text.
type nameLookup struct {
	member  func(id string) string // of those whose names may be shown; others are shown by their ids
	channel func(id string) string
}

func (l nameLookup) memberName(id string) string {
	return "@" + firstNonEmpty(sessions.DisplayName(resolve(l.member, id)), sessions.Handle(id))
}

func (l nameLookup) channelName(id, label string) string {
	return "#" + firstNonEmpty(sessions.Handle(label), sessions.Handle(resolve(l.channel, id)), sessions.Handle(id))
}

func resolve(f func(string) string, id string) string {
	if f == nil || id == "" {
		return ""
	}
	return f(id)
}

// prefixedHandle is an id or a handle behind its mark; empty: there is none.
func prefixedHandle(mark, id string) string {
	if id = sessions.Handle(id); id == "" {
		return ""
	}
	return mark + id
}

// told is the message as its author typed it, with a line for each attached file.
func (m message) textWithFiles(l nameLookup) string {
	text, lines := m.fullText(l), m.fileLines()
	if strings.TrimSpace(text) != "" {
		lines = append([]string{text}, lines...)
	}
	return strings.Join(lines, "\n")
}

// fileLines names the files of a message. Their content is not fetched.
func (m message) fileLines() []string {
	var lines []string
	for _, f := range m.files() {
		lines = append(lines, "[attached in Slack: "+sessions.Truncate(firstNonEmpty(oneLine(f.Name), "a file"), 200)+"]")
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
		return decodeSpecial(id[1:], label)
	case strings.Contains(id, ":"):
		return decodeLink(unescapeEntities.Replace(id), label)
	}
	return "<" + unescapeEntities.Replace(inner) + ">"
}

// decodeSpecial resolves <!here>, <!subteam^S1|@group>, <!date^…|fallback> and their like.
func decodeSpecial(name, label string) string {
	kind, arg, _ := strings.Cut(name, "^")
	switch kind {
	case "here", "channel", "everyone":
		return "@" + kind
	case "subteam":
		return groupName(arg, label)
	}
	return firstNonEmpty(label, "@"+kind)
}

func groupName(id, label string) string {
	return "@" + firstNonEmpty(sessions.Handle(strings.TrimPrefix(label, "@")), sessions.Handle(id))
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

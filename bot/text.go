package bot

import (
	"regexp"
	"strings"

	"the-loop/sessions"
)

// lookup finds the names behind ids; empty when there is none to be had. Either function may be nil.
type lookup struct {
	member  func(id string) string
	channel func(id string) string
}

func (l lookup) memberName(id, label string) string {
	return "@" + first(ask(l.member, id), label, id)
}

func (l lookup) channelName(id, label string) string {
	return "#" + first(label, ask(l.channel, id), id)
}

func ask(f func(string) string, id string) string {
	if f == nil || id == "" {
		return ""
	}
	return f(id)
}

// typed is the message as its author typed it. It comes from the rich text when that is complete, else from the text
// field.
func (m message) typed(l lookup) string {
	if text, ok := m.typedFromBlocks(l); ok {
		return text
	}
	return typedFromText(m.str("text"), l)
}

// told is the message as its author typed it, with a line for each attached file.
func (m message) told(l lookup) string {
	text, lines := m.typed(l), m.fileLines()
	if strings.TrimSpace(text) != "" {
		lines = append([]string{text}, lines...)
	}
	return strings.Join(lines, "\n")
}

// fileLines names the files of a message. Their content is not fetched.
func (m message) fileLines() []string {
	var lines []string
	for _, f := range m.objects("files") {
		name := strings.Join(strings.Fields(sessions.Clean(first(f.str("name"), f.str("title"), "a file"))), " ")
		lines = append(lines, "[attached in Slack: "+sessions.Sized(name, 200)+"]")
	}
	return lines
}

var (
	token    = regexp.MustCompile(`<[^<>]*>`)
	entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// typedFromText undoes what Slack did to a text: first the tokens between < and > become what was typed, then the
// entities are decoded, once. A < that a person typed is an entity, so every bare one opens a token.
func typedFromText(text string, l lookup) string {
	var b strings.Builder
	for {
		at := token.FindStringIndex(text)
		if at == nil {
			b.WriteString(entities.Replace(text))
			return b.String()
		}
		b.WriteString(entities.Replace(text[:at[0]]))
		b.WriteString(typedToken(text[at[0]+1:at[1]-1], l))
		text = text[at[1]:]
	}
}

// typedToken resolves what stood between < and >.
func typedToken(inner string, l lookup) string {
	id, label, _ := strings.Cut(inner, "|")
	label = entities.Replace(label)
	switch {
	case strings.HasPrefix(id, "@"):
		return l.memberName(id[1:], label)
	case strings.HasPrefix(id, "#"):
		return l.channelName(id[1:], label)
	case strings.HasPrefix(id, "!"):
		return typedSpecial(id[1:], label)
	case strings.Contains(id, ":"):
		return typedLink(entities.Replace(id), label)
	}
	return "<" + entities.Replace(inner) + ">"
}

// typedSpecial resolves <!here>, <!subteam^S1|@group>, <!date^…|fallback> and their like.
func typedSpecial(name, label string) string {
	kind, arg, _ := strings.Cut(name, "^")
	switch kind {
	case "here", "channel", "everyone":
		return "@" + kind
	case "subteam":
		return groupName(arg, label)
	}
	return first(label, "@"+kind)
}

func groupName(id, label string) string {
	return "@" + first(strings.TrimPrefix(label, "@"), id)
}

// typedLink is a link as it was typed: Slack wraps bare addresses and completes them, so a label that is the address
// without its scheme stands for what was typed. Any other label was put on the link by its author, and both are shown
// the way Slack's composer takes them, [label](address): a label alone could hide where a link goes.
func typedLink(address, label string) string {
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

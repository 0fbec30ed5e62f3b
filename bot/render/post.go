package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// Slack's limits on one message.
const (
	MaxSection  = 3000  // characters of one section
	MaxText     = 4000  // characters of the text field: chat.update refuses more
	MaxMessage  = 12000 // characters of all blocks together, below the 13,200 at which Slack says msg_blocks_too_long
	maxButtons  = 25    // of one actions block
	maxLabel    = 75
	maxValue    = 2000
	maxActionID = 255
)

// Post is what a message says: text with Slack's marks, and choices under it.
type Post struct {
	Text    string
	Buttons []Button
}

// Button is a choice under a message. Style is "", "primary" or "danger".
type Button = chat.Button

// Message is a post in Slack's terms.
type Message struct {
	Fallback string // what notifications and screen readers show
	Blocks   []slack.Block
}

// Renderer renders posts and ephemeral messages for the client of Slack's Web API.
type Renderer struct{}

// RenderPost returns the fallback text and the blocks of a post.
func (Renderer) RenderPost(p chat.Post) (text string, blocks []slack.Block, err error) {
	post := Post{Text: p.Text, Buttons: p.Buttons}
	render := post.Render
	if p.Plain {
		render = post.Plain
	}
	m, err := render()
	return m.Fallback, m.Blocks, err
}

// RenderEphemeral returns the text and the blocks of a message that one member sees. It has blocks only where a text alone would
// not do.
func (Renderer) RenderEphemeral(text string, buttons []Button) (string, []slack.Block, error) {
	if len(buttons) == 0 && Truncate(text, MaxText) == text {
		return text, nil, nil
	}
	m, err := Post{Text: text, Buttons: buttons}.Render()
	return m.Fallback, m.Blocks, err
}

// Render makes a message of a post. A text of more than MaxMessage characters is cut, and says so: whoever has that
// much to say splits it first, with [Split]. It is an error when there is no text or a button does not fit.
func (p Post) Render() (Message, error) {
	if strings.TrimSpace(p.Text) == "" {
		return Message{}, errors.New("a message without text")
	}
	m := Message{Fallback: Truncate(p.Text, MaxText)}
	for _, part := range sections(p.Text) {
		block := slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, part, false, true), nil, nil)
		block.Expand = true // Slack folds long ones otherwise (NousResearch/hermes-agent#95565)
		m.Blocks = append(m.Blocks, block)
	}
	actions, err := actionBlock(p.Buttons)
	if err != nil {
		return Message{}, err
	}
	if actions != nil {
		m.Blocks = append(m.Blocks, actions)
	}
	return m, nil
}

// maxPlain is how much of a text Slack is sure to take.
const maxPlain = 3000

// Plain makes the least of a post that still says what it says: a short text without blocks. It is for a post that Slack
// refuses as [Post.Render] makes it.
func (p Post) Plain() (Message, error) {
	text := strings.TrimSpace(p.Text)
	if text == "" {
		return Message{}, errors.New("a message without text")
	}
	if utf16Len(text) > maxPlain {
		text = Truncate(text, maxPlain) + "\n… (cut: Slack refused the whole message)"
	}
	if len(p.Buttons) > 0 {
		text += "\n(Slack refused this message with its buttons.)"
	}
	return Message{Fallback: text}, nil
}

const cutNote = "\n… (cut: the message is longer than Slack shows)"

func sections(text string) []string {
	if utf16Len(text) > MaxMessage {
		text = Split(text, MaxMessage-len(cutNote))[0] + cutNote
	}
	var parts []string
	for _, part := range Split(text, MaxSection) {
		if strings.TrimSpace(part) != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func actionBlock(buttons []Button) (slack.Block, error) {
	if len(buttons) == 0 {
		return nil, nil
	}
	if len(buttons) > maxButtons {
		return nil, fmt.Errorf("%d buttons: Slack shows at most %d", len(buttons), maxButtons)
	}
	elements := make([]slack.BlockElement, 0, len(buttons))
	for _, b := range buttons {
		if b.Label == "" || b.Action == "" || utf16Len(b.Value) > maxValue || utf16Len(b.Action) > maxActionID {
			return nil, fmt.Errorf("the button %q (%s) does not fit Slack's limits", b.Label, b.Action)
		}
		element := slack.NewButtonBlockElement(b.Action, b.Value, slack.NewTextBlockObject(slack.PlainTextType, Truncate(b.Label, maxLabel), false, false))
		elements = append(elements, element.WithStyle(slack.Style(b.Style)))
	}
	return slack.NewActionBlock("", elements...), nil
}

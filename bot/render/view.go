package render

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"the-loop/sessions"
)

// Slack's limits on views.
const (
	maxTitle    = 24
	maxHomeRows = 45 // two blocks a session, of at most 100
	maxChoices  = 100
	maxBrief    = 3000
)

// The callback ids of modals.
const (
	ViewCreate = "session_create"
	ViewDelete = "session_delete"
	ViewReason = "ask_reason"
	ViewAnswer = "ask_answer"
)

// The block ids of the form that creates a session. What is wrong with a field is shown at its block.
const (
	FieldName    = "name"
	FieldHarness = "harness"
	FieldCwd     = "cwd"
	FieldBrief   = "brief"
	FieldChannel = "channel"
	FieldStart   = "start"
	FieldReason  = "reason"
	// FieldValue is the action id of every field's element.
	FieldValue = "value"
	// StartNow is the one option of FieldStart.
	StartNow = "now"
)

func plainTextObject(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

func mrkdwnBlocks(text string) []slack.Block {
	var blocks []slack.Block
	for _, part := range sections(text) {
		blocks = append(blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, part, false, false), nil, nil))
	}
	return blocks
}

// TextModal is a modal that says something, with choices under it.
func TextModal(title, text string, buttons ...Button) (slack.ModalViewRequest, error) {
	blocks := mrkdwnBlocks(text)
	actions, err := actionBlock(buttons)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if actions != nil {
		blocks = append(blocks, actions)
	}
	return slack.ModalViewRequest{Type: slack.VTModal, Title: plainTextObject(Truncate(title, maxTitle)), Close: plainTextObject("Close"), Blocks: slack.Blocks{BlockSet: blocks}}, nil
}

// DeleteModal is a modal that asks before a session is deleted. handle travels with it.
func DeleteModal(r sessions.Row, handle string) slack.ModalViewRequest {
	do := deleteVerb(r)
	return slack.ModalViewRequest{Type: slack.VTModal, Title: plainTextObject(do + " a session"), Submit: plainTextObject(do), Close: plainTextObject("Keep it"),
		CallbackID: ViewDelete, PrivateMetadata: handle, Blocks: slack.Blocks{BlockSet: mrkdwnBlocks(DeletePrompt(r))}}
}

// maxReason is how long a reason may be.
const maxReason = 2000

// ReasonModal is a modal that asks why a question of an agent's is denied, or what to change in its plan. token travels with it.
func ReasonModal(token string, plan bool) slack.ModalViewRequest {
	title, do := "Deny with a reason", "Deny"
	if plan {
		title, do = "Keep planning", "Send back"
	}
	why := slack.NewPlainTextInputBlockElement(plainTextObject("What it should do instead, or why not"), FieldValue)
	why.Multiline, why.MaxLength = true, maxReason
	return slack.ModalViewRequest{Type: slack.VTModal, Title: plainTextObject(title), Submit: plainTextObject(do), Close: plainTextObject("Cancel"),
		CallbackID: ViewReason, PrivateMetadata: token, Blocks: slack.Blocks{BlockSet: []slack.Block{
			input(FieldReason, "Reason", "The agent is told it", why, false),
		}}}
}

// deleteVerb is what is done to a session that is not to come back.
func deleteVerb(r sessions.Row) string {
	if r.Kind == sessions.KindWorkItem {
		return "Close"
	}
	return "Delete"
}

// DeletePrompt asks before a session is deleted or closed.
func DeletePrompt(r sessions.Row) string {
	text := fmt.Sprintf("%s *%s*? ", deleteVerb(r), EscapeName(r.Name))
	if r.Running {
		text += "It is stopped first. "
	}
	return text + "It does not come back, and its thread ends."
}

// CreateForm is what the form that creates a session offers.
type CreateForm struct {
	Harnesses []string // to choose from; one at least
	Harness   string   // chosen at first
	Cwd       string   // used when the field is left empty; shown as a hint
	Channel   string   // chosen at first; may be empty
	Metadata  string   // travels with the form
}

// View is the form as a modal.
func (f CreateForm) View() slack.ModalViewRequest {
	name := slack.NewPlainTextInputBlockElement(plainTextObject("supervisor"), FieldValue)
	name.MaxLength = 40
	brief := slack.NewPlainTextInputBlockElement(plainTextObject("What it is for, in your words"), FieldValue)
	brief.Multiline, brief.MaxLength = true, maxBrief
	cwd := slack.NewPlainTextInputBlockElement(plainTextObject(Truncate(orElse(f.Cwd, "/home/me/project"), 150)), FieldValue)
	now := slack.NewOptionBlockObject(StartNow, plainTextObject("Start it now"), nil)
	start := slack.NewCheckboxGroupsBlockElement(FieldValue, now)
	start.InitialOptions = []*slack.OptionBlockObject{now}
	return slack.ModalViewRequest{Type: slack.VTModal, Title: plainTextObject("Create a session"), Submit: plainTextObject("Create"), Close: plainTextObject("Cancel"),
		CallbackID: ViewCreate, PrivateMetadata: f.Metadata, Blocks: slack.Blocks{BlockSet: []slack.Block{
			input(FieldName, "Name", "Lower case letters, digits and hyphens", name, false),
			input(FieldHarness, "Harness", "", f.harnesses(), false),
			input(FieldCwd, "Folder", "The whole path, on the machine where it runs. Empty: the one that is shown", cwd, true),
			input(FieldBrief, "Brief", "Comes after what every session is told of itself", brief, true),
			input(FieldChannel, "Announce it in", "I must be in that channel", f.channels(), true),
			input(FieldStart, "Start", "", start, true),
		}}}
}

func input(id, label, hint string, element slack.BlockElement, optional bool) slack.Block {
	var h *slack.TextBlockObject
	if hint != "" {
		h = plainTextObject(hint)
	}
	return slack.NewInputBlock(id, plainTextObject(label), h, element).WithOptional(optional)
}

func (f CreateForm) harnesses() slack.BlockElement {
	var options []*slack.OptionBlockObject
	var chosen *slack.OptionBlockObject
	for _, name := range f.Harnesses[:min(len(f.Harnesses), maxChoices)] {
		option := slack.NewOptionBlockObject(name, plainTextObject(Truncate(name, maxLabel)), nil)
		if options = append(options, option); name == f.Harness {
			chosen = option
		}
	}
	element := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainTextObject("Choose"), FieldValue, options...)
	element.InitialOption = chosen
	return element
}

func (f CreateForm) channels() slack.BlockElement {
	element := slack.NewOptionsSelectBlockElement(slack.OptTypeConversations, plainTextObject("Choose"), FieldValue)
	element.InitialConversation = f.Channel
	element.Filter = &slack.SelectBlockElementFilter{Include: []string{"public", "private"}, ExcludeBotUsers: true}
	return element
}

// Home is the app's Home tab for who is let in: the sessions with their buttons, what is wrong, and what came of the last
// press.
func Home(rows []sessions.Row, problem, notice string) (slack.HomeTabViewRequest, error) {
	var blocks []slack.Block
	if notice != "" {
		blocks = append(blocks, mrkdwnBlocks(Truncate(notice, MaxSection))...)
		blocks = append(blocks, slack.NewDividerBlock())
	}
	if problem != "" {
		blocks = append(blocks, mrkdwnBlocks(":warning: "+Truncate(Escape(problem), MaxSection-20))...)
	}
	if len(rows) == 0 {
		blocks = append(blocks, mrkdwnBlocks(SessionList(nil))...)
	}
	for _, r := range rows[:min(len(rows), maxHomeRows)] {
		blocks = append(blocks, mrkdwnBlocks(homeLine(r))...)
		actions, err := actionBlock(SessionButtons(r))
		if err != nil {
			return slack.HomeTabViewRequest{}, err
		}
		if actions != nil {
			blocks = append(blocks, actions)
		}
	}
	if more := len(rows) - maxHomeRows; more > 0 {
		blocks = append(blocks, mrkdwnBlocks(fmt.Sprintf("… and %d more", more))...)
	}
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks}}, nil
}

func homeLine(r sessions.Row) string {
	line := SessionLine(r)
	if r.Cwd != "" {
		line += " · " + InlineCode(r.Cwd)
	}
	if r.Description != "" {
		line += "\n" + Escape(oneLine(r.Description))
	}
	return Truncate(strings.TrimSpace(line), MaxSection)
}

// HomeMessage is a Home tab that says one thing.
func HomeMessage(text string) slack.HomeTabViewRequest {
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: mrkdwnBlocks(text)}}
}

package render

import (
	"fmt"
	"strconv"

	"github.com/slack-go/slack"

	"the-loop/bot/render/visible"
	"the-loop/sessions"
)

// Slack's limits on the options of a form, in characters.
const (
	maxOptionText = 75
	maxFieldLabel = 2000
	maxOptions    = 10 // of radio buttons and checkboxes
)

// QuestionField is the block id of the options of a question, by its index.
func QuestionField(i int) string { return fmt.Sprintf("question%d", i) }

// QuestionWordsField is the block id of the field for a person's own answer to a question, by its index.
func QuestionWordsField(i int) string { return fmt.Sprintf("words%d", i) }

// AnswerModal is a form with the questions of an agent: the options of each, and a field for another answer. token travels with it. The
// value of an option is its index. Texts that are cut here are whole in the message that the form belongs to.
func AnswerModal(token string, questions []sessions.Question) slack.ModalViewRequest {
	var blocks []slack.Block
	for i, q := range questions {
		label := Truncate(visible.Show(q.Text, true), maxFieldLabel)
		blocks = append(blocks, input(QuestionField(i), label, "", optionsElement(q), true),
			input(QuestionWordsField(i), "Another answer", "", wordsElement(), true))
	}
	return slack.ModalViewRequest{Type: slack.VTModal, Title: plainTextObject("Answer the agent"), Submit: plainTextObject("Answer"), Close: plainTextObject("Cancel"),
		CallbackID: ViewAnswer, PrivateMetadata: token, Blocks: slack.Blocks{BlockSet: blocks}}
}

func wordsElement() slack.BlockElement {
	words := slack.NewPlainTextInputBlockElement(nil, FieldValue)
	words.Multiline, words.MaxLength = true, maxReason
	return words
}

// optionsElement shows the options of a question.
func optionsElement(q sessions.Question) slack.BlockElement {
	var options []*slack.OptionBlockObject
	for i, o := range q.Options {
		option := slack.NewOptionBlockObject(strconv.Itoa(i), plainTextObject(Truncate(visible.Show(o.Label, true), maxOptionText)), nil)
		if o.Description != "" {
			option.Description = plainTextObject(Truncate(visible.Show(o.Description, true), maxOptionText))
		}
		options = append(options, option)
	}
	switch {
	case len(options) > maxOptions && q.Multiple:
		return slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, nil, FieldValue, options...)
	case len(options) > maxOptions:
		return slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, FieldValue, options...)
	case q.Multiple:
		return slack.NewCheckboxGroupsBlockElement(FieldValue, options...)
	}
	return slack.NewRadioButtonsBlockElement(FieldValue, options...)
}

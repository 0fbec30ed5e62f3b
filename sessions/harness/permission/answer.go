package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"the-loop/sessions"
)

// questionsInput is the input of the tool that asks questions (Claude Code 2.1.197 and 2.1.332 have the same).
type questionsInput struct {
	Questions []struct {
		Question    string `json:"question"`
		Header      string `json:"header"`
		MultiSelect bool   `json:"multiSelect"`
		Options     []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

// How much a form can show. Agents ask up to four questions of four options.
const (
	maxQuestions = 10
	maxOptions   = 100
)

// parseQuestions returns the questions of a tool's input. It reports false unless each has a text of its own and options: answers go
// by the text.
func parseQuestions(data json.RawMessage) ([]sessions.Question, bool) {
	var in questionsInput
	if json.Unmarshal(data, &in) != nil || len(in.Questions) == 0 || len(in.Questions) > maxQuestions {
		return nil, false
	}
	var all []sessions.Question
	seen := map[string]bool{}
	for _, q := range in.Questions {
		if strings.TrimSpace(q.Question) == "" || seen[q.Question] || len(q.Options) == 0 || len(q.Options) > maxOptions {
			return nil, false
		}
		seen[q.Question] = true
		question := sessions.Question{Text: q.Question, Header: q.Header, Multiple: q.MultiSelect}
		for _, o := range q.Options {
			if strings.TrimSpace(o.Label) == "" {
				return nil, false
			}
			question.Options = append(question.Options, sessions.QuestionOption{Label: o.Label, Description: strings.TrimSpace(o.Description)})
		}
		all = append(all, question)
	}
	return all, true
}

// parsePlan returns the plan of a tool's input; empty: there is none that could be read.
func parsePlan(data json.RawMessage) string {
	var in struct {
		Plan string `json:"plan"`
	}
	if json.Unmarshal(data, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Plan)
}

// errAnswersMismatch says that a decision does not fit its request.
var errAnswersMismatch = errors.New("the answers do not fit the questions")

// addAnswers adds to a decision what the tools want that ask for more than a yes. Both versions that were tried take the answers by the
// text of their questions, beside the input as it was; 2.1.332 ignores a yes to either tool without an input.
func addAnswers(decision map[string]any, m message, request json.RawMessage) error {
	var p payload
	if err := json.Unmarshal(request, &p); err != nil && len(request) > 0 {
		return fmt.Errorf("read the request again: %w", err)
	}
	if p.Tool != toolQuestions && p.Tool != toolPlan {
		return nil
	}
	input := map[string]any{}
	if err := json.Unmarshal(p.Input, &input); err != nil {
		return fmt.Errorf("read the request again: %w", err)
	}
	if p.Tool == toolPlan {
		mode := "default" // which asks before each edit, whatever the mode was before
		if m.Edits {
			mode = "acceptEdits"
		}
		decision["updatedPermissions"] = []any{map[string]string{"type": "setMode", "mode": mode, "destination": "session"}}
	} else {
		questions, ok := parseQuestions(p.Input)
		if !ok || len(questions) != len(m.Answers) {
			return errAnswersMismatch
		}
		answers := map[string]string{}
		for i, q := range questions {
			answers[q.Text] = m.Answers[i]
		}
		input["answers"] = answers
	}
	decision["updatedInput"] = input
	return nil
}

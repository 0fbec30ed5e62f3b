package permission

import (
	"encoding/json"
	"strings"
	"testing"

	"the-loop/sessions"
)

const twoQuestions = `{"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"a?","header":"A","multiSelect":true,"options":[{"label":"x","description":" d "}]},` +
	`{"question":"b?","options":[{"label":"y"}]}],"metadata":{"kept":1}}}`

func TestQuestionsAreParsedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	r, ok := ParseRequest(json.RawMessage(twoQuestions))
	if !ok || !r.Decidable || len(r.Questions) != 2 || !r.Questions[0].Multiple || r.Questions[0].Options[0].Description != "d" || r.Input != "" {
		t.Errorf("%+v", r)
	}
	for _, input := range []string{`{}`, `{"questions":[]}`, `{"questions":[{"question":" ","options":[{"label":"x"}]}]}`, `{"questions":[{"question":"a?","options":[]}]}`,
		`{"questions":[{"question":"a?","options":[{"label":""}]}]}`, `{"questions":[{"question":"a?","options":[{"label":"x"}]},{"question":"a?","options":[{"label":"y"}]}]}`,
		`{"questions":"many"}`, `[1]`, `{"questions":[` + strings.Repeat(`{"question":"a?","options":[{"label":"x"}]},`, 10) + `{"question":"b?","options":[{"label":"x"}]}]}`} {
		r, ok := ParseRequest(json.RawMessage(`{"tool_name":"AskUserQuestion","tool_input":` + input + `}`))
		if !ok || r.Decidable || r.Questions != nil {
			t.Errorf("%s: %+v", input, r)
		}
	}
	for input, plan := range map[string]string{`{"plan":" # A\n1. b\n "}`: "# A\n1. b", `{"plan":"  "}`: "", `{}`: "", `{"plan":7}`: "", `7`: ""} {
		if r, ok := ParseRequest(json.RawMessage(`{"tool_name":"ExitPlanMode","tool_input":` + input + `}`)); !ok || r.Plan != plan || r.Decidable != (plan != "") {
			t.Errorf("%s: %+v", input, r)
		}
	}
}

func TestADecisionIsEncodedAsTheToolTakesIt(t *testing.T) {
	t.Parallel()
	allow := func(m message) message { m.Verdict = sessions.VerdictAllow; return m }
	plan := `{"tool_name":"ExitPlanMode","tool_input":{"plan":"p","planFilePath":"/f"}}`
	for want, c := range map[string]struct {
		message message
		request string
	}{
		`{"behavior":"allow"}`: {allow(message{}), `{"tool_name":"Bash","tool_input":{"command":"x"}}`},
		`{"behavior":"allow","updatedInput":{"answers":{"a?":"x, z","b?":"\"own\""},"metadata":{"kept":1},"questions":[{"header":"A","multiSelect":true,"options":[{"description":" d ","label":"x"}],"question":"a?"},{"options":[{"label":"y"}],"question":"b?"}]}}`: {allow(message{Answers: []string{"x, z", `"own"`}}), twoQuestions},
		`{"behavior":"allow","updatedInput":{"plan":"p","planFilePath":"/f"},"updatedPermissions":[{"destination":"session","mode":"default","type":"setMode"}]}`:                                                                                                      {allow(message{}), plan},
		`{"behavior":"allow","updatedInput":{"plan":"p","planFilePath":"/f"},"updatedPermissions":[{"destination":"session","mode":"acceptEdits","type":"setMode"}]}`:                                                                                                  {allow(message{Edits: true}), plan},
		`{"behavior":"deny","message":"no"}`: {message{Verdict: sessions.VerdictDeny, Reason: "no"}, twoQuestions},
	} {
		line, err := encodeDecision(c.message, json.RawMessage(c.request))
		var got struct {
			Output struct{ Decision json.RawMessage } `json:"hookSpecificOutput"`
		}
		if err != nil || json.Unmarshal(line, &got) != nil || string(got.Output.Decision) != want {
			t.Errorf("got  %s\nwant %s (%v)", got.Output.Decision, want, err)
		}
	}
	for _, m := range []message{allow(message{}), allow(message{Answers: []string{"x"}}), allow(message{Answers: []string{"x", "y", "z"}})} {
		if line, err := encodeDecision(m, json.RawMessage(twoQuestions)); err == nil {
			t.Errorf("%v is encoded as %s", m.Answers, line)
		}
	}
}

package permission

import (
	"errors"
	"slices"
	"testing"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

func options(labels ...string) (all []sessions.QuestionOption) {
	for _, label := range labels {
		all = append(all, sessions.QuestionOption{Label: label})
	}
	return all
}

func TestAnswersAreWhatTheQuestionsTake(t *testing.T) {
	t.Parallel()
	r := Request{State: Open, Decidable: true, Questions: []sessions.Question{{Text: "one?", Options: options("A", "B <b>`\u202e")}, {Text: "many?", Options: options("C", "D"), Multiple: true}}}
	for name, c := range map[string]struct {
		answers []Answer
		texts   []string
		shown   string
		missing int // -1: none
	}{
		"one of each":         {[]Answer{{Options: []int{1}}, {Options: []int{0}}}, []string{"B <b>`\u202e", "C"}, "`B &lt;b&gt;'`; `C`", -1},
		"several and words":   {[]Answer{{Words: " my *own* "}, {Options: []int{0, 1}, Words: "E"}}, []string{"my *own*", "C, D, E"}, "in their own words; `C`, `D`, in their own words", -1},
		"nothing":             {[]Answer{{}, {Options: []int{0}}}, nil, "", 0},
		"blank words":         {[]Answer{{Options: []int{0}}, {Words: " \n"}}, nil, "", 1},
		"two where one":       {[]Answer{{Options: []int{0, 1}}, {Options: []int{0}}}, nil, "", 0},
		"an option and words": {[]Answer{{Options: []int{0}, Words: "x"}, {Options: []int{0}}}, nil, "", 0},
		"no such option":      {[]Answer{{Options: []int{2}}, {Options: []int{0}}}, nil, "", 0},
		"a negative option":   {[]Answer{{Options: []int{0}}, {Options: []int{-1}}}, nil, "", 1},
		"too few":             {[]Answer{{Options: []int{0}}}, nil, "", 1},
	} {
		texts, shown, err := r.Choose(c.answers)
		var missing *NoAnswerError
		if errors.As(err, &missing) != (c.missing >= 0) || missing != nil && missing.Question != c.missing {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(texts, c.texts) || shown != c.shown {
			t.Errorf("%s: %q, shown as %q", name, texts, shown)
		}
	}
}

func TestAnOptionThatNobodySeesIsNotOffered(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]bool{"A": true, "\u200b": false, "\u202e\n": false, "  \u200b ": false, "\u200bB": true} {
		r := FromAsk(sessions.PermissionRequest{Token: "t", Decidable: true, Questions: []sessions.Question{{Text: "q?", Options: options("x", label)}}}, "q?", true)
		if r.Decidable != want || (len(r.Questions) > 0) != want {
			t.Errorf("%q: decidable %t with %d questions", label, r.Decidable, len(r.Questions))
		}
	}
}

func TestAQuestionHasButtonsForItsOptions(t *testing.T) {
	t.Parallel()
	one := sessions.Question{Text: "one?", Options: options("A", "B\u200bC\nD")}
	many := sessions.Question{Text: "many?", Options: options("A", "B"), Multiple: true}
	long := sessions.Question{Text: "long?", Options: options("1", "2", "3", "4", "5", "6", "7", "8", "9")}
	for name, c := range map[string]struct {
		questions []sessions.Question
		want      []string
	}{
		"one":          {[]sessions.Question{one}, []string{"A", "B C D", "Other…", "Decline"}},
		"several":      {[]sessions.Question{many}, []string{"Answer…", "Decline"}},
		"too many":     {[]sessions.Question{long}, []string{"Answer…", "Decline"}},
		"two of these": {[]sessions.Question{one, one}, []string{"Answer…", "Decline"}},
	} {
		r := Request{State: Open, Decidable: true, Questions: c.questions}
		var labels []string
		actions := map[string]bool{}
		_, buttons := r.Message("name")
		for _, b := range buttons {
			labels = append(labels, b.Label)
			actions[b.Action] = true
		}
		if !slices.Equal(labels, c.want) || len(actions) != len(buttons) {
			t.Errorf("%s: %q with the actions %v", name, labels, actions)
		}
	}
	if _, buttons := (Request{State: Open, Decidable: true, Plan: true}).Message("name"); len(buttons) != 3 || buttons[1].Action != chat.ActionApproveEdits {
		t.Errorf("a plan has %v", buttons)
	}
	if _, buttons := (Request{State: Open, Plan: true}).Message("name"); len(buttons) != 0 {
		t.Errorf("a plan that is not shown whole has %v", buttons)
	}
}

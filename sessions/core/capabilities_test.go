package core_test

import (
	"context"
	"slices"
	"testing"

	"the-loop/sessions"
)

// fakeHarness is a harness with given capabilities.
type fakeHarness struct{ can sessions.Capabilities }

func (f fakeHarness) Name() string                        { return "fake" }
func (f fakeHarness) Capabilities() sessions.Capabilities { return f.can }
func (f fakeHarness) Command(sessions.Launch) (sessions.Command, error) {
	return sessions.Command{}, nil
}

type fakeVerifier struct{}

func (fakeVerifier) Offset(context.Context, sessions.Conversation) (sessions.Offset, error) {
	return "", nil
}
func (fakeVerifier) Accepted(context.Context, sessions.Conversation, sessions.Offset, sessions.Sum) (bool, error) {
	return false, nil
}

func TestLimitationsSayWhatAHarnessCannotDo(t *testing.T) {
	t.Parallel()
	all := sessions.Capabilities{CanResume: true, ReportsPermissions: true, Input: fakeVerifier{},
		ParseScreen: func(sessions.Screen) sessions.View { return sessions.View{} },
		ReadTranscript: func(context.Context, sessions.Conversation, sessions.Offset) (sessions.TranscriptBatch, error) {
			return sessions.TranscriptBatch{}, nil
		}}
	noReports, readOnly := all, all
	noReports.ReportsPermissions = false
	readOnly.ParseScreen, readOnly.Input = nil, nil
	for _, c := range []struct {
		can  sessions.Capabilities
		want []string
	}{
		{all, nil},
		{noReports, []string{"its questions are answered in the terminal alone"}},
		{readOnly, []string{"its screen is not read, so a reply may answer a question that it asks", "nothing proves that it took a reply"}},
		{sessions.Capabilities{}, []string{"its screen is not read, so a reply may answer a question that it asks", "what it says is not posted",
			"nothing proves that it took a reply", "its questions are answered in the terminal alone", "its conversation is not resumed"}},
	} {
		if got := sessions.Limitations(fakeHarness{c.can}); !slices.Equal(got, c.want) {
			t.Errorf("limitations %q; want %q", got, c.want)
		}
	}
}

package sessions_test

import (
	"context"
	"slices"
	"testing"

	"the-loop/sessions"
)

// bareHarness is a harness that can do nothing but start; the others add what there is to add.
type bareHarness struct{ traits sessions.Capabilities }

func (b bareHarness) Name() string                        { return "bare" }
func (b bareHarness) Capabilities() sessions.Capabilities { return b.traits }
func (b bareHarness) Command(sessions.Launch) (sessions.Command, error) {
	return sessions.Command{}, nil
}

type transcriptHarness struct{ bareHarness }

func (transcriptHarness) ReadTranscript(context.Context, sessions.Conversation, string) (sessions.TranscriptBatch, error) {
	return sessions.TranscriptBatch{}, nil
}

type fullHarness struct{ transcriptHarness }

func (fullHarness) Offset(context.Context, sessions.Conversation) (string, error) { return "", nil }
func (fullHarness) Accepted(context.Context, sessions.Conversation, string, sessions.Sum) (bool, error) {
	return false, nil
}
func (fullHarness) ParseScreen(sessions.Screen) sessions.View { return sessions.View{} }

func TestLimitationsSayWhatAHarnessCannotDo(t *testing.T) {
	t.Parallel()
	all := sessions.Capabilities{CanResume: true, ReportsPermissions: true}
	for _, c := range []struct {
		h    sessions.Harness
		want []string
	}{
		{fullHarness{transcriptHarness{bareHarness{all}}}, nil},
		{fullHarness{transcriptHarness{bareHarness{sessions.Capabilities{CanResume: true}}}}, []string{"its questions are answered in the terminal alone"}},
		{transcriptHarness{bareHarness{all}}, []string{"its screen is not read, so a reply may answer a question that it asks", "nothing proves that it took a reply"}},
		{bareHarness{}, []string{"its screen is not read, so a reply may answer a question that it asks", "what it says is not posted",
			"nothing proves that it took a reply", "its questions are answered in the terminal alone", "its conversation is not resumed"}},
	} {
		if got := sessions.Limitations(c.h); !slices.Equal(got, c.want) {
			t.Errorf("%T lacks %q; want %q", c.h, got, c.want)
		}
	}
}

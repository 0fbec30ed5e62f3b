package sessions_test

import (
	"context"
	"slices"
	"testing"

	"the-loop/sessions"
)

// bare is a harness that can do nothing but start; the others add what there is to add.
type bare struct{ traits sessions.Traits }

func (b bare) Name() string                                      { return "bare" }
func (b bare) Traits() sessions.Traits                           { return b.traits }
func (b bare) Command(sessions.Launch) (sessions.Command, error) { return sessions.Command{}, nil }

type telling struct{ bare }

func (telling) Told(context.Context, sessions.Conversation, string) (sessions.Told, error) {
	return sessions.Told{}, nil
}

type complete struct{ telling }

func (complete) Place(context.Context, sessions.Conversation) (string, error) { return "", nil }
func (complete) Taken(context.Context, sessions.Conversation, string, sessions.Sum) (bool, error) {
	return false, nil
}
func (complete) Look(sessions.Screen) sessions.View { return sessions.View{} }

func TestWhatAHarnessCannotDoIsSaid(t *testing.T) {
	t.Parallel()
	all := sessions.Traits{Resumes: true, Asks: true}
	for _, c := range []struct {
		h    sessions.Harness
		want []string
	}{
		{complete{telling{bare{all}}}, nil},
		{complete{telling{bare{sessions.Traits{Resumes: true}}}}, []string{"its questions are answered in the terminal alone"}},
		{telling{bare{all}}, []string{"its screen is not read, so a reply may answer a question that it asks", "nothing proves that it took a reply"}},
		{bare{}, []string{"its screen is not read, so a reply may answer a question that it asks", "what it says is not posted",
			"nothing proves that it took a reply", "its questions are answered in the terminal alone", "its conversation is not resumed"}},
	} {
		if got := sessions.Lacks(c.h); !slices.Equal(got, c.want) {
			t.Errorf("%T lacks %q; want %q", c.h, got, c.want)
		}
	}
}

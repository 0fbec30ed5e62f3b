package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// DefaultSubmitDelay lies between the paste and the submit key where the configuration says nothing. Some agents lose a submit that
// comes with the paste: one lost all of 8 at 0 ms, and none at 80 ms.
const DefaultSubmitDelay = 100 * time.Millisecond

// Template is an agent program that the configuration describes: an argv with the placeholders {sessionId} and {prompt},
// one argument each, and {harnessArgs}, any number of them. Nothing proves that it accepted a text, and its screen is not read.
type Template struct {
	Title           string // its name in the configuration
	Binary          string // a path, or a name that is looked up in the pane's PATH
	Args            []string
	ResumeArgs      []string // nil: it cannot resume
	CommandPrefixes []string
	SubmitDelay     time.Duration
}

// Name returns the name in the configuration.
func (t Template) Name() string { return t.Title }

// Capabilities are what the configuration says of it.
func (t Template) Capabilities() sessions.Capabilities {
	return sessions.Capabilities{
		Submit:           "\r",
		SubmitDelay:      t.SubmitDelay,
		CommandPrefixes:  slices.Clone(t.CommandPrefixes),
		CanResume:        t.ResumeArgs != nil,
		NoPromptOnStart:  !slices.Contains(t.Args, "{prompt}"),
		NoPromptOnResume: !slices.Contains(t.ResumeArgs, "{prompt}"),
	}
}

// Command fills the template in. Without a prompt the argument {prompt} is left out. Neither the prompt nor the conversation's id can
// be read as a flag, see [plainArgument].
func (t Template) Command(l sessions.Launch) (sessions.Command, error) {
	args := t.Args
	if l.Resume {
		if t.ResumeArgs == nil {
			return sessions.Command{}, sessions.ErrCannotResume
		}
		args = t.ResumeArgs
	}
	argv := []string{t.Binary}
	for _, a := range args {
		switch a {
		case "{harnessArgs}":
			argv = append(argv, l.Args...)
		case "{sessionId}":
			if !sessions.ValidConversation(l.Conversation) {
				return sessions.Command{}, fmt.Errorf("%s: %q is no id of a conversation", t.Title, l.Conversation)
			}
			argv = append(argv, l.Conversation)
		case "{prompt}":
			if l.Prompt != "" {
				argv = append(argv, plainArgument(l.Prompt))
			}
		default:
			argv = append(argv, a)
		}
	}
	return sessions.Command{Argv: argv}, nil
}

// plainArgument returns a text as an argument that no program takes for a flag, or for the name of a file with more arguments: it puts
// a blank in front. How the program ends its flags is not known. White space does not count where texts are compared, see
// [sessions.Fingerprint].
func plainArgument(text string) string {
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "@") {
		return " " + text
	}
	return text
}

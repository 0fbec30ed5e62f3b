package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Harness is one kind of agent program.
type Harness interface {
	// Name is the key under which the configuration knows it.
	Name() string
	// Capabilities say what the program can do and prove, and what typing into it depends on.
	Capabilities() Capabilities
	// Command is the program and its arguments for a new conversation, or with l.Resume for a recorded one.
	// [ErrCannotResume] when the program has no way to continue one.
	Command(l Launch) (Command, error)
}

// Offset is a position in what an agent records or reports. Only the harness that made it can read it; it may be stored. The
// empty offset stands for no position.
type Offset string

// InputVerifier proves from an agent's own record that it accepted a text.
type InputVerifier interface {
	// Offset is the end of the record now: evidence counts from there, so that an equal earlier text proves nothing. Without
	// c.Started no agent runs yet that could have begun to start.
	Offset(ctx context.Context, c Conversation) (Offset, error)
	// Accepted reports whether the record shows, after the offset, a text with that sum.
	Accepted(ctx context.Context, c Conversation, since Offset, sum Sum) (bool, error)
}

// SessionVariable is the environment variable that holds Record.ID in every process of a pane.
const SessionVariable = "THE_LOOP_SESSION"

// Launch is what a harness's argv is made of.
type Launch struct {
	Session      string // Record.ID
	Conversation string // its id; pre-assigned for a new one
	Resume       bool
	Args         []string // the operator's
	Prompt       string   // the first message; may be empty
	Cwd          string
	Env          map[string]string // what the pane will have beside the clean environment, e.g. HOME and the agent's own settings
}

// RefuseArgs refuses arguments of the operator's that would choose the conversation, which is ours to choose.
func (l Launch) RefuseArgs(harness string, flags ...string) error {
	for _, a := range l.Args {
		if name, _, _ := strings.Cut(a, "="); slices.Contains(flags, name) {
			return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("harnessArgs of %s hold %s", harness, name),
				Remedy: "take it out: the-loop chooses the conversation itself"}
		}
	}
	return nil
}

// Command is a program with its arguments and the variables that it needs beside the operator's.
type Command struct {
	Argv []string
	Env  map[string]string
}

// Conversation is an agent's conversation in one run of its program.
type Conversation struct {
	Session string // Record.ID
	ID      string
	Cwd     string
	Started time.Time // of the run

	// IsIdle reports whether the screen waits for text, or the agent has ended. Transcripts that do not show when a turn ends
	// need it; nil: the screen cannot be read.
	IsIdle func(context.Context) (bool, error)
}

// Capabilities say what an agent program can do and prove, and what typing into it depends on. A function or an interface that
// is nil is something that the program cannot do, or that it does not need.
type Capabilities struct {
	// ParseScreen reads the program's screen.
	ParseScreen func(s Screen) View
	// Input proves that a text was accepted.
	Input InputVerifier
	// ReadTranscript reads what the agent said after an offset; from c.Started on where that is empty. It follows the
	// conversation into those that it was left for, and across resumes.
	ReadTranscript func(ctx context.Context, c Conversation, since Offset) (TranscriptBatch, error)
	// TrackConversation returns the id of the conversation that the pane is in now, for programs that choose it themselves or
	// change it while they run. Empty: it is not known yet.
	TrackConversation func(ctx context.Context, c Conversation) (id string, err error)
	// Prepare puts in place what an unattended start needs, e.g. the folder's trust. It widens nothing that the operator did
	// not ask for; a file that does not parse is reported and left alone.
	Prepare func(ctx context.Context, l Launch) error
	// SubmitKey is the submit key of a session where it depends on how that was started. It goes before Submit and SubmitDelay.
	SubmitKey func(ctx context.Context, c Conversation) (bytes string, delay time.Duration, err error)
	// Normalize returns what is the same of a text as it was typed and as the record shows it. A [Sum] is of that.
	Normalize func(text string) string
	// Quote writes a text so that the program takes nothing in it for more than text.
	Quote func(text string) string

	Submit             string        // bytes of the submit key
	SubmitDelay        time.Duration // between paste and submit
	CommandPrefixes    []string      // a text that begins so (after white space) is a command of the program
	CommandWords       []string      // a text that is just this word is a command of the program
	Interrupt          string        // bytes that stop a running turn; empty: Escape
	ClearLine          string        // bytes that take the line with the cursor out of the input box, and do nothing else; empty: none
	CanResume          bool
	ReportsPermissions bool          // it reports its permission requests, and a hook of it waits for the decision: see [Reports]
	AcceptTimeout      time.Duration // how long evidence may take before the box is looked at; 0: DefaultAcceptTimeout

	// MoveKeys, DenyKeys and ModeKeys are names of keys, see [KeyNames]. While a dialog or a menu is open, MoveKeys answer
	// nothing, and DenyKeys decline or close it and never say yes. ModeKeys switch, while the box waits for text, what the
	// program may do without asking. Each was tried; a key in none of them is not known to be harmless.
	MoveKeys, DenyKeys, ModeKeys []string

	// Trailer goes after every text, so that the submit key submits and does nothing else: it would take a word from the list
	// that "@" opens, and break the line after a backslash. The program drops it; empty: none is needed.
	Trailer string
	// QueuesUnrecorded says that the program's record shows a text that it queues only when the turn ends: until then
	// nothing proves it, and it is better held while a turn runs.
	QueuesUnrecorded bool
	// NoPromptOnStart and NoPromptOnResume say that the program takes no first message when it begins or resumes a conversation:
	// the message is typed then.
	NoPromptOnStart, NoPromptOnResume bool
	// CommandsUnrecorded says that its record shows no commands, so that none is ever proved.
	CommandsUnrecorded bool
}

// DefaultAcceptTimeout is how long evidence may take for one attempt, unless the harness says otherwise.
const DefaultAcceptTimeout = 2 * time.Second

// EvidenceTimeout is how long evidence may take for one attempt.
func (c Capabilities) EvidenceTimeout() time.Duration {
	return cmp.Or(c.AcceptTimeout, DefaultAcceptTimeout)
}

// Normalized returns what is compared of a text.
func (c Capabilities) Normalized(text string) string {
	if c.Normalize == nil {
		return text
	}
	return c.Normalize(text)
}

// ViewState says what an agent's screen is good for.
type ViewState string

// The states of a screen. Only Ready and Working take text; a paste into the others is lost or answers a question.
const (
	ViewUnknown  ViewState = "unknown"  // cannot be read: nothing is concluded from it
	ViewReady    ViewState = "ready"    // the box waits for text
	ViewWorking  ViewState = "working"  // a turn runs; what is submitted is queued by the agent
	ViewStarting ViewState = "starting" // text lands, the submit key is lost
	ViewDialog   ViewState = "dialog"   // a question is open: Enter would answer it
	ViewMenu     ViewState = "menu"     // a menu or a viewer is open: pastes are dropped
)

// View is a screen as its harness reads it.
type View struct {
	State       ViewState
	Box         string   // what stands unsubmitted in the input box
	FoldedLines int      // line feeds in a pasted text that alone stands in the box, as a mark; 0: something else does
	Lines       []string // of the dialog, when there is one
}

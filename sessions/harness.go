package sessions

import (
	"context"
	"time"
)

// Harness is one kind of agent program. An implementation may also be a [InputVerifier] and a [ScreenParser].
type Harness interface {
	// Name is the key under which the configuration knows it.
	Name() string
	// Capabilities are the facts of the program that typing into it depends on.
	Capabilities() Capabilities
	// Command is the program and its arguments for a new conversation, or with l.Resume for a recorded one.
	// [ErrCannotResume] when the program has no way to continue one.
	Command(l Launch) (Command, error)
}

// InputVerifier is a harness that can show that a text was taken.
type InputVerifier interface {
	// Offset is the end of the agent's record now: evidence counts from there, so that an equal earlier text proves
	// nothing. It is an opaque string that may be stored. Without c.Started no agent runs yet that could have begun to start.
	Offset(ctx context.Context, c Conversation) (string, error)
	// Accepted reports whether the record shows, after place, a text with that sum.
	Accepted(ctx context.Context, c Conversation, place string, sum Sum) (bool, error)
}

// Normalizer is a harness whose program rewrites what it takes.
type Normalizer interface {
	// Normalize is what is the same of a text as it was typed and as the program's record shows it. A [Sum] is of that.
	Normalize(text string) string
}

// Quoter is a harness whose program takes something inside of a text for more than text, and has a way to write it.
type Quoter interface {
	// Quote writes a text so that it is nothing but text.
	Quote(text string) string
}

// normalize is what is compared of a text.
func normalize(h Harness, text string) string {
	if n, ok := h.(Normalizer); ok {
		return n.Normalize(text)
	}
	return text
}

// ScreenParser is a harness whose screen can be read.
type ScreenParser interface {
	ParseScreen(s Screen) View
}

// Preparer is a harness that needs something in place before it can start without a person: the folder's trust, say.
// Nothing is widened that the operator did not ask for, and a file that does not parse is reported and left alone.
type Preparer interface {
	Prepare(ctx context.Context, l Launch) error
}

// ConversationTracker is a harness whose conversation id cannot be given in advance, or changes while it runs.
type ConversationTracker interface {
	// TrackConversation returns the id of the conversation that the pane is in now. Empty: it cannot be told yet.
	TrackConversation(ctx context.Context, c Conversation) (id string, err error)
}

// SubmitKeyProvider is a harness whose submit key depends on how the session was started. Key and delay go before those of [Capabilities].
type SubmitKeyProvider interface {
	SubmitKey(ctx context.Context, c Conversation) (bytes string, delay time.Duration, err error)
}

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

// Command is a program with its arguments and the variables that it needs beside the operator's.
type Command struct {
	Argv []string
	Env  map[string]string
}

// Conversation is where a witness looks.
type Conversation struct {
	Session string // Record.ID
	ID      string
	Cwd     string
	Started time.Time // of the run that is looked at

	// IsIdle reports whether the screen waits for text, or the agent has ended. It is there for a [TranscriptReader] whose record does
	// not tell when a turn ends; nil: nobody can look.
	IsIdle func(context.Context) (bool, error)
}

// Capabilities are facts of an agent program.
type Capabilities struct {
	Submit             string        // bytes of the submit key
	SubmitDelay        time.Duration // between paste and submit
	CommandPrefixes    []string      // a text that begins so (after white space) is a command of the program
	CommandWords       []string      // a text that is just this word is a command of the program
	Interrupt          string        // bytes that stop a running turn; empty: Escape
	ClearLine          string        // bytes that take the line with the cursor out of the input box, and do nothing else; empty: none
	CanResume          bool
	ReportsPermissions bool          // its questions are reported, and a hook of it waits for the answer: see [UsesReports]
	AcceptTimeout      time.Duration // how long evidence may take before the box is looked at; 0: DefaultAcceptTimeout

	// MoveKeys are the names of keys, see [KeyNames], that answer nothing while a question or a menu is open: they move a
	// pointer at most. DenyKeys turn the question down or close the menu, and never say yes. ModeKeys switch, while the box
	// waits for text, what the program may do without asking. Each was tried; a key in none of them is not known to be harmless.
	MoveKeys, DenyKeys, ModeKeys []string

	// Trailer goes after every text, so that the submit key submits and does nothing else: it would take a word from the list
	// that "@" opens, and break the line after a backslash. The program drops it; empty: none is needed.
	Trailer string
	// QueuesUnrecorded says that the program's record shows a text that it queues only when the turn ends: until then
	// nothing proves it, and it is better held while a turn runs.
	QueuesUnrecorded bool
	// NoPromptOnStart and NoPromptOnResume say that the program takes no first message when it begins or resumes a conversation: what it
	// is to be told is typed into it.
	NoPromptOnStart, NoPromptOnResume bool
	// CommandsUnrecorded says that its record shows no commands: one that is sent on purpose is typed, at best.
	CommandsUnrecorded bool
}

// DefaultAcceptTimeout is how long a witness is given for one attempt.
const DefaultAcceptTimeout = 2 * time.Second

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

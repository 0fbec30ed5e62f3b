package sessions

import (
	"context"
	"time"
)

// Terminal is what the core needs of tmux. Every call has a deadline of its own below ctx; one that ends without an
// answer returns an error for which errors.Is(err, [ErrTerminalTimeout]) holds, and silence is never read as absence.
type Terminal interface {
	Spawner
	PaneWriter
	PaneReader
}

// Spawner starts and ends agents in panes.
type Spawner interface {
	// Spawn makes a detached tmux session of its own around one pane, marks the pane, and runs the command in it; with
	// s.Session it makes the pane in a window of its own in that tmux session. [ErrNameTaken] when a tmux session of that name
	// exists; nothing was started then.
	Spawn(ctx context.Context, s Spawn) (Pane, error)
	// Respawn ends the pane's process tree as End does, and runs another command in the same pane: its tmux session, its
	// window, its mark and those who look at it stay. [ErrPaneGone] when there is no such pane.
	Respawn(ctx context.Context, r Respawn) (Pane, error)
	// End ends the pane's process tree (TERM, grace, KILL) and then the pane. A pane that is gone is no error.
	End(ctx context.Context, t Target, grace time.Duration) error
}

// PaneWriter types into panes. Each call is one guarded tmux invocation: the pane must carry the target's mark and be
// alive at the very moment, or nothing is typed.
type PaneWriter interface {
	// Paste pastes the text, bracketed and whole, and submits it. Errors: [ErrPaneGone], [ErrPaneDead] and any
	// other error mean that nothing was typed; one that is [ErrInDoubt] means that it may have been.
	Paste(ctx context.Context, d Paste) error
	// Press pastes the bytes of keys, unbracketed, e.g. "\r" or "\x1b". Errors as for Paste.
	Press(ctx context.Context, t Target, keys string) error
}

// PaneReader looks at panes.
type PaneReader interface {
	// Panes lists every pane of the server with one invocation. No server is an empty list; no answer is [ErrTerminalTimeout].
	Panes(ctx context.Context) ([]Pane, error)
	// Capture reads the visible screen of a pane as text. [ErrPaneGone] when there is none with the target's mark.
	Capture(ctx context.Context, t Target) (Screen, error)
	// Owner is the mark for which the pane's tmux session was made; empty: it was made by somebody else.
	Owner(ctx context.Context, p Pane) (mark string, err error)
	// AttachCommand is the argv that shows the pane's session to a person; inside says that we run inside tmux.
	AttachCommand(t Pane, readOnly, inside bool) []string
}

// Target addresses a pane: by its tmux id, and only while it carries the mark, the id of the session it belongs to.
type Target struct {
	Pane string // "%3"; empty: look it up by the mark
	Mark string // Record.ID
}

// Pane is one tmux pane.
type Pane struct {
	ID          string // "%3"; survives respawn-pane
	SessionID   string // "$1"; survives a rename
	SessionName string
	Mark        string // the pane option that carries Record.ID; empty: not ours
	PID         int    // of the pane's first process; 0 unknown
	Dead        bool   // kept by remain-on-exit after its process ended
	ExitStatus  int    // when Dead; -1 unknown or killed by a signal
	ExitSignal  string // when Dead and killed by a signal
	Server      Server
	Declared    string // as [Spawn].Declared was, for this process; separated by blanks
}

// Server identifies a tmux server: pane ids start over with each.
type Server struct {
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
	Start  int64  `json:"start"` // Unix seconds
}

// Target is the address of the pane.
func (p Pane) Target() Target { return Target{Pane: p.ID, Mark: p.Mark} }

// Spawn is a request for a new pane.
type Spawn struct {
	Name         string // of the tmux session
	Session      string // "$1": one that there is; empty: one is made
	Mark         string // Record.ID
	Argv         []string
	Cwd          string            // absolute; must exist
	Env          map[string]string // values travel on tmux's standard input, never in an argv
	Declared     []string          // the names in Env that the env file declares; tmux keeps them with the pane
	RemainOnExit bool
	Width        int // columns; 0: 200
	Height       int // lines; 0: 50
}

// Respawn is a request for another process in a pane that there is. Name, Width and Height do not count.
type Respawn struct {
	Spawn
	Pane      string        // "%3"; empty: look it up by the mark
	Grace     time.Duration // between TERM and KILL
	RemainFor time.Duration // so long the pane is kept if the new process ends, also without RemainOnExit
}

// Paste is one text for one pane.
type Paste struct {
	Target
	Text   string        // cleaned, see [Clean]
	Submit string        // the bytes of the submit key, e.g. "\r"; empty: do not submit
	Delay  time.Duration // between paste and submit; kept by the tmux server, not by us
	// Commit is called, at most once, when the way into the pane is being opened and before the text is handed over.
	// When it fails, nothing is typed, and Paste returns its error. May be nil.
	Commit func() error
}

// Screen is what a pane shows.
type Screen struct {
	Text    string // the visible lines
	CursorX int
	CursorY int
	InMode  bool // copy-mode, clock or a menu of tmux lies over the program
}

// FindPane returns the pane that carries the id of a record as its mark.
func FindPane(panes []Pane, id string) (Pane, bool) {
	for _, p := range panes {
		if p.Mark == id {
			return p, true
		}
	}
	return Pane{}, false
}

// ANSICapturer is a [Terminal] that can also read a pane's screen with its colours.
type ANSICapturer interface {
	// CaptureANSI reads the visible screen with the escape sequences of its colours. Errors as for [PaneReader.Capture].
	CaptureANSI(ctx context.Context, t Target) (string, error)
}

// PaneActivity is what a pane tells of itself without its screen being read.
type PaneActivity struct {
	LastOutput int64 // Unix seconds of the last output
	PID        int   // of the process that runs in it; 0: it has ended
}

// ActivityReader is a [Terminal] that knows when its panes wrote something last.
type ActivityReader interface {
	// ReadActivity returns the activity of every pane of ours, by its mark. Errors as for [PaneReader.Panes].
	ReadActivity(ctx context.Context) (map[string]PaneActivity, error)
}

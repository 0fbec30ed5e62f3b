package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reports is what agents report beyond what their own records hold, whatever their harness: through hooks, and with the
// program itself.
type Reports interface {
	// ReadReports reads what a session's agent reported after place, which is opaque and may be stored. An empty place is the
	// beginning: of what was reported before since, only what waits for an answer counts then.
	Noted(ctx context.Context, session, place string, since time.Time) (Noted, error)
	// Remove removes what the agent of a session reported. That there is nothing is no error.
	Remove(ctx context.Context, session string) error
	// Attend waits until an ask is over, and returns nil then. Open is called as soon as it is known to be open; nil and
	// no call of open: it was over before. It fails when ctx ends or the ask cannot be reached.
	Attend(ctx context.Context, session, token string, open func()) error
	// Answer gives an ask its one answer. [ErrAskOver] when it did not take it, [ErrInDoubt] when it may have.
	Answer(ctx context.Context, session string, a Answer) error
}

// ErrAskOver says that a question of an agent's is not open any more.
var ErrAskOver = errors.New("the agent does not ask this any more")

// ReadReports is what an agent reported, each oldest first.
type Noted struct {
	Asks     []Ask
	Answered []Answered
	Files    []NotedFile
	Cwd      string   // the folder that the session works in, for its files
	FolderID FolderID // of that folder when the agent was started
	Next     string   // the place to go on from
	Watch    []string // files: as long as none of them changes, there is nothing new
}

// NotedFile is a file that an agent would have its people see. Nothing of it was judged: an agent may report what it likes.
type NotedFile struct {
	Path    string // below the session's folder
	Comment string // may be empty
	At      time.Time
}

// Ask is a question that an agent waits for an answer to.
type Ask struct {
	Token   string    // names it; it cannot be guessed, and answers the ask once
	At      time.Time // by this machine's clock
	Tool    string    // that the agent would use, in its own word
	Command string    // that it would run; empty: none
	File    string    // that it would read or write; empty: none
	Cwd     string    // the folder that it is in
	Why     string    // in the agent's words; may be empty
	Input   string    // what else the tool would be given, as JSON; empty: nothing
	Permit  bool      // yes or no answers it; else it can only be answered in the terminal
	// CwdAt and FileAt are where Cwd and File lead to, where that is another place than they name: more than one where it
	// depends on the program. Unplaced says that it could not be found out.
	CwdAt, FileAt []string
	Unplaced      bool
}

// Verdict is what is decided about an [PermissionRequest].
type Verdict string

// The verdicts.
const (
	VerdictAllow Verdict = "allow"
	VerdictDeny  Verdict = "deny"
	VerdictLeave Verdict = "leave" // nothing is decided here: the hook need not wait any longer
)

// Answer is what somebody decided about an [PermissionRequest].
type Answer struct {
	Token   string
	Verdict Verdict
	Reason  string // of a refusal, for the agent; may be empty
}

// Answered is an [AnswerPermission] that the agent was given.
type Answered struct {
	Token string
	Allow bool
	At    time.Time
}

// NotedRequest asks what the agent of a session reported.
type NotedRequest struct {
	Ref   Ref
	ID    string    // the session that is meant; empty: whichever has the ref now
	Place string    // [ReadReports.Next] of the last time; empty: from Since on
	Since time.Time // counts without a place, but not for asks: those are open or over
}

// ReadReports reads what the agent of a session reported, also in a run that has ended. [errors.ErrUnsupported] when the core was
// made without [Options].Reports.
func (c *Core) ReadReports(ctx context.Context, q NotedRequest) (Noted, error) {
	rec, err := c.recorded(ctx, q.Ref)
	switch {
	case err != nil:
		return Noted{}, err
	case q.ID != "" && rec.ID != q.ID:
		return Noted{}, replaced(q.Ref)
	case c.o.Reports == nil:
		return Noted{}, fmt.Errorf("the reports of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	noted, err := c.o.Reports.Noted(ctx, rec.ID, q.Place, q.Since)
	if err != nil {
		return Noted{}, fmt.Errorf("read what %s reported: %w", q.Ref, err)
	}
	noted.Cwd, noted.FolderID = rec.Definition.Cwd, rec.FolderID
	for i, a := range noted.Asks {
		noted.Asks[i] = a.located()
	}
	return noted, nil
}

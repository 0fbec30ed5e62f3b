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
	// ReadReports reads what a session's agent reported after an offset. The empty offset is the beginning: of what was
	// reported before since, only what waits for an answer counts then.
	ReadReports(ctx context.Context, session string, after Offset, since time.Time) (ReportBatch, error)
	// Remove removes what the agent of a session reported. That there is nothing is no error.
	Remove(ctx context.Context, session string) error
	// WaitResolved waits until a permission request is resolved, and returns nil then. It calls open as soon as it knows that
	// the request is open; nil without that call: it was resolved before. It fails when ctx ends or the request cannot be reached.
	WaitResolved(ctx context.Context, session, token string, open func()) error
	// AnswerPermission gives a permission request its one decision. [ErrPermissionEnded] when it did not take it, [ErrInDoubt]
	// when it may have.
	AnswerPermission(ctx context.Context, session string, a PermissionDecision) error
}

// ErrPermissionEnded says that a permission request is not open any more.
var ErrPermissionEnded = errors.New("the agent does not ask this any more")

// ReportBatch is what an agent reported, each oldest first.
type ReportBatch struct {
	PermissionRequests []PermissionRequest
	Answered           []AnsweredPermission
	Files              []ReportedFile
	Cwd                string   // the folder that the session works in, for its files
	FolderID           FolderID // of that folder when the agent was started
	Next               Offset   // to go on from
	WatchFiles         []string // files: as long as none of them changes, there is nothing new
}

// ReportedFile is a file that an agent would have its people see. Nothing of it was judged: an agent may report what it likes.
type ReportedFile struct {
	Path    string // below the session's folder
	Comment string // may be empty
	At      time.Time
}

// PermissionRequest is a question that an agent waits for an answer to.
type PermissionRequest struct {
	Token       string    // names it; it cannot be guessed, and resolves the request once
	At          time.Time // by this machine's clock
	Tool        string    // that the agent would use, in its own word
	Command     string    // that it would run; empty: none
	File        string    // that it would read or write; empty: none
	Cwd         string    // the folder that it is in
	Explanation string    // in the agent's words; may be empty
	Input       string    // what else the tool would be given, as JSON; empty: nothing
	Decidable   bool      // yes or no answers it; else it can only be answered in the terminal
	// CwdTargets and FileTargets are where Cwd and File lead to, where that is another place than they name: more than one where it
	// depends on the program. Unresolved says that it could not be found out.
	CwdTargets, FileTargets []string
	Unresolved              bool
}

// Verdict is what is decided about a [PermissionRequest].
type Verdict string

// The verdicts.
const (
	VerdictAllow     Verdict = "allow"
	VerdictDeny      Verdict = "deny"
	VerdictUndecided Verdict = "leave" // nothing is decided here: the hook need not wait any longer
)

// PermissionDecision is what somebody decided about a [PermissionRequest].
type PermissionDecision struct {
	Token   string
	Verdict Verdict
	Reason  string // of a refusal, for the agent; may be empty
}

// AnsweredPermission is a decision that the agent was given.
type AnsweredPermission struct {
	Token string
	Allow bool
	At    time.Time
}

// ReportsRequest asks what the agent of a session reported.
type ReportsRequest struct {
	Ref    Ref
	ID     string    // the session that is meant; empty: whichever has the ref now
	Offset Offset    // [ReportBatch.Next] of the last time; empty: from Since on
	Since  time.Time // counts without an offset, but not for permission requests: those are open or over
}

// ReadReports reads what the agent of a session reported, also in a run that has ended. [errors.ErrUnsupported] when the core was
// made without [Options].Reports.
func (c *Core) ReadReports(ctx context.Context, q ReportsRequest) (ReportBatch, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	switch {
	case err != nil:
		return ReportBatch{}, err
	case q.ID != "" && rec.ID != q.ID:
		return ReportBatch{}, replacedError(q.Ref)
	case c.o.Reports == nil:
		return ReportBatch{}, fmt.Errorf("the reports of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	noted, err := c.o.Reports.ReadReports(ctx, rec.ID, q.Offset, q.Since)
	if err != nil {
		return ReportBatch{}, fmt.Errorf("read what %s reported: %w", q.Ref, err)
	}
	noted.Cwd, noted.FolderID = rec.Definition.Cwd, rec.FolderID
	for i, a := range noted.PermissionRequests {
		noted.PermissionRequests[i] = a.resolvePaths()
	}
	return noted, nil
}

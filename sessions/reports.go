package sessions

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"
	"unicode"
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
	Token       string     // names it; it cannot be guessed, and resolves the request once
	At          time.Time  // by this machine's clock
	Tool        string     // that the agent would use, in its own word
	Command     string     // that it would run; empty: none
	File        string     // that it would read or write; empty: none
	Cwd         string     // the folder that it is in
	Explanation string     // in the agent's words; may be empty
	Diff        string     // what it would change in the file, as a unified diff; empty: that is not known
	Input       string     // what else the tool would be given, as JSON; empty: nothing
	Questions   []Question // that are answered by choices; none: it is asked for permission
	Plan        string     // that the agent would carry out, in Markdown; empty: it is not about a plan
	Decidable   bool       // it can be answered here: with yes or no, or with a choice for each question; else only in the terminal
	// CwdTargets and FileTargets are where Cwd and File lead to, where that is another place than they name: more than one where it
	// depends on the program. Unresolved says that it could not be found out.
	CwdTargets, FileTargets []string
	Unresolved              bool
}

// Question is a question of an agent that is answered by choosing.
type Question struct {
	Text     string           `json:"text"`
	Header   string           `json:"header,omitempty"` // a word or two
	Options  []QuestionOption `json:"options"`
	Multiple bool             `json:"multiple,omitempty"` // more than one may be chosen
}

// QuestionOption is one answer that an agent offers.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
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
	// Answers are those to the request's questions, in their order: labels, or somebody's own words.
	Answers []string
	// AcceptEdits says with a plan that is allowed that the agent may edit files without asking.
	AcceptEdits bool
}

// AnsweredPermission is a decision that the agent was given.
type AnsweredPermission struct {
	Token string
	Allow bool
	At    time.Time
}

// DialogExcerpt is what the agent's dialog shows of this ask and of few others. It may be stored.
func (a PermissionRequest) DialogExcerpt() string {
	mark := a.Command
	if mark == "" && a.File != "" {
		mark = filepath.Base(a.File)
	}
	runes := []rune(StripSpace(mark))
	return string(runes[:min(len(runes), maxExcerpt)])
}

// StripSpace is text without white space, since dialogs wrap.
func StripSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// maxExcerpt is how much of what is asked is looked for on the screen.
const maxExcerpt = 40

package sessions

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Ref names a session: "standing:<name>" for a standing session, "github:OWNER/REPO#N" for that of a work item. It is for
// people and logs; the identity of a session is its [Record.ID].
type Ref string

// Kinds of session, as [Ref.Kind] returns them.
const (
	KindStanding = "standing"
	KindWorkItem = "github" // a ticket on GitHub, its pull requests included
)

// NamePattern is the shape of a standing session's name: it becomes part of a tmux target and a file name.
var NamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`) })

// workItemPattern is the shape of a ticket: GitHub's logins have up to 39 characters, names of repositories up to 100.
var workItemPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,38}/([A-Za-z0-9._-]{1,100})#[1-9][0-9]{0,9}$`)
})

// ConversationPattern is the shape of a conversation id: one that could be read as a flag is never put into an argv.
// It is slow to compile, and most runs of the program do without it.
var ConversationPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) })

// ValidName reports whether name may name a standing session: ^[a-z0-9][a-z0-9-]{0,39}$.
func ValidName(name string) bool { return NamePattern().MatchString(name) }

// ValidConversation reports whether id has the shape of a conversation id: [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func ValidConversation(id string) bool { return ConversationPattern().MatchString(id) }

// StandingRef is the ref of the standing session called name.
func StandingRef(name string) Ref { return Ref(KindStanding + ":" + name) }

// ValidWorkItem reports whether name may be the ticket of a work item: OWNER/REPO#N, as GitHub spells the parts.
func ValidWorkItem(name string) bool {
	m := workItemPattern().FindStringSubmatch(name)
	return m != nil && m[1] != "." && m[1] != ".."
}

// ParseRef reads a ref of any kind, or returns a [*RefError] that says which shapes there are.
func ParseRef(s string) (Ref, error) {
	kind, name, _ := strings.Cut(s, ":")
	if kind == KindStanding && ValidName(name) || kind == KindWorkItem && ValidWorkItem(name) {
		return Ref(s), nil
	}
	return "", &RefError{Got: s}
}

// ParseWorkItem reads the ref of a work item. No standing session has one.
func ParseWorkItem(s string) (Ref, error) {
	ref, err := ParseRef(s)
	if err != nil || ref.Kind() != KindWorkItem {
		return "", &RefError{Got: s, Want: KindWorkItem}
	}
	return ref, nil
}

// Kind is the part before the first colon, e.g. [KindStanding].
func (r Ref) Kind() string {
	kind, _, _ := strings.Cut(string(r), ":")
	return kind
}

// Name is the part after the first colon: the name of a standing session, the ticket of a work item.
func (r Ref) Name() string {
	_, name, _ := strings.Cut(string(r), ":")
	return name
}

// Key is the ref as it is compared: GitHub takes spellings of a ticket that differ in case for the same one. A session is shown
// under the ref that it was registered with.
func (r Ref) Key() Ref {
	if r.Kind() == KindWorkItem {
		return Ref(strings.ToLower(string(r)))
	}
	return r
}

// Same reports whether two refs name one session, however they are spelt.
func (r Ref) Same(other Ref) bool { return r.Key() == other.Key() }

// Slug is the ref as a file and a tmux session may be called: small letters, digits, '-' and '_'. It begins with the kind, so
// that no work item shares one with a standing session. Two work items may share one; they are never mixed, see [Collision].
func (r Ref) Slug() string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, string(r))
}

// TmuxName is the name of the session's tmux session. It has no '.' or ':', which tmux would turn into '_'.
func (r Ref) TmuxName() string { return TmuxName(r.Slug()) }

func TmuxName(slug string) string { return "loop-" + slug }

// AttachCommand is the command line that shows the session's terminal to a person.
func (r Ref) AttachCommand() string {
	if r.Kind() == KindWorkItem {
		return "the-loop sessions attach " + string(r)
	}
	return "the-loop attach " + r.Name()
}

// StartCommand is the command line that brings the session up.
func (r Ref) StartCommand() string {
	if r.Kind() == KindWorkItem {
		return "the-loop sessions deliver " + string(r) + " --text TEXT"
	}
	return "the-loop standing start " + r.Name()
}

// RefError says that a string is not a ref, and what one looks like.
type RefError struct {
	Got  string
	Want string // the only kind that was asked for; empty: any
}

func (e *RefError) Error() string {
	item := "github:OWNER/REPO#N, as in github:acme/shop#7"
	if e.Want == KindWorkItem {
		return fmt.Sprintf("%q is not a work item: use %s", e.Got, item)
	}
	return fmt.Sprintf("%q is not a session: use standing:NAME, where NAME matches %s, or %s", e.Got, NamePattern(), item)
}

// Collision is the refusal of a ref whose name in tmux and on disk another one has.
func Collision(ref, other Ref) error {
	remedy := "close the other first: the-loop sessions close " + string(other)
	if ref.Same(other) {
		remedy = "GitHub takes them for the same; use the spelling that is registered"
	}
	return &Refusal{Cause: ErrNameTaken, Remedy: remedy,
		What: fmt.Sprintf("%s and %s fall on one name, %s, and the second is registered", ref, other, ref.TmuxName())}
}

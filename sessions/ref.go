package sessions

import (
	"fmt"
	"regexp"
	"strings"
)

// Ref names a session: "standing:<name>" for a standing session. It is for people and logs; the identity of a session
// is its [Record.ID].
type Ref string

// Kinds of session, as [Ref.Kind] returns them.
const (
	KindStanding = "standing"
)

// namePattern is the shape of a standing session's name: it becomes part of a tmux target and a file name.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// conversationPattern is the shape of a conversation id: one that could be read as a flag is never put into an argv.
var conversationPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidName reports whether name may name a standing session: ^[a-z0-9][a-z0-9-]{0,39}$.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// ValidConversation reports whether id has the shape of a conversation id: [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func ValidConversation(id string) bool { return conversationPattern.MatchString(id) }

// StandingRef is the ref of the standing session called name.
func StandingRef(name string) Ref { return Ref(KindStanding + ":" + name) }

// ParseRef reads a ref, or returns a [*RefError] that says which shape is wanted.
func ParseRef(s string) (Ref, error) {
	name, ok := strings.CutPrefix(s, KindStanding+":")
	if !ok || !ValidName(name) {
		return "", &RefError{Got: s}
	}
	return Ref(s), nil
}

// Kind is the part before the first colon, e.g. [KindStanding].
func (r Ref) Kind() string {
	kind, _, _ := strings.Cut(string(r), ":")
	return kind
}

// Name is the part after the first colon: the name of a standing session.
func (r Ref) Name() string {
	_, name, _ := strings.Cut(string(r), ":")
	return name
}

// TmuxName is the name of the session's tmux session. It has no '.' or ':', which tmux would turn into '_'.
func (r Ref) TmuxName() string { return "loop-" + r.Kind() + "-" + r.Name() }

// RefError says that a string is not a ref, and what one looks like.
type RefError struct{ Got string }

func (e *RefError) Error() string {
	return fmt.Sprintf("%q is not a session: use standing:NAME, where NAME matches %s", e.Got, namePattern)
}

package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"the-loop/sessions"
)

// Set holds the harnesses that can be used, by name.
type Set map[string]sessions.Harness

// NewSet makes a set. Of two with one name the later one counts, so that the configuration's come after the built-ins.
func NewSet(all ...sessions.Harness) Set {
	s := Set{}
	for _, h := range all {
		s[h.Name()] = h
	}
	return s
}

// Get finds a harness. One that is not known is a refusal that names those that are; one that cannot be hosted is a refusal
// that says why.
func (s Set) Get(name string) (sessions.Harness, error) {
	h, ok := s[name]
	if r, refuses := h.(interface{ refusal() error }); refuses {
		return nil, r.refusal()
	}
	if ok {
		return h, nil
	}
	return nil, &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("there is no harness %q", name),
		Remedy: fmt.Sprintf("use one of %s, or describe it under harnesses in the config", strings.Join(s.Names(), ", "))}
}

// Names are the names of those that can be used, sorted.
func (s Set) Names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, refuses := s[name].(interface{ refusal() error }); !refuses {
			names = append(names, name)
		}
	}
	return names
}

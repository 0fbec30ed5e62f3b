package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"the-loop/sessions"
)

// Set is the harnesses that can be used, by name.
type Set map[string]sessions.Harness

// NewSet returns a set. The last harness of a name counts: those of the configuration come after the built-ins.
func NewSet(all ...sessions.Harness) Set {
	s := Set{}
	for _, h := range all {
		s[h.Name()] = h
	}
	return s
}

// Get returns the harness with the name. An unknown name is a refusal that names the known ones; an agent that cannot be hosted is a
// refusal that says why.
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

// Names returns the names of the harnesses that can be used, sorted.
func (s Set) Names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, refuses := s[name].(interface{ refusal() error }); !refuses {
			names = append(names, name)
		}
	}
	return names
}

package envstate

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxFormerSecrets is how many values are remembered that are neither declared nor held any more.
const maxFormerSecrets = 4096

// Secrets are the values that must not be seen: our own, what is declared now, what running processes hold, and what was
// declared or held before. They are sets of their own, so that however many there are of one kind, none of another is
// forgotten; only of the last kind the oldest are. Printing or logging it shows no value. It may be used by many goroutines.
type Secrets struct {
	own []Secret

	mu             sync.Mutex // guards the fields that follow
	declared, held map[Secret]bool
	former         []Secret // the oldest first; none of them is declared or held
	scrubber       *Scrubber
}

// NewSecrets begins with our own secrets, by their names.
func NewSecrets(own map[string]string) *Secrets {
	return &Secrets{own: slices.Collect(maps.Keys(secretSet(own)))}
}

// SetDeclared says what is declared from now on.
func (s *Secrets) SetDeclared(values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.declared
	s.declared = secretSet(values)
	s.retire(was)
}

// SetHeld says what running processes hold from now on.
func (s *Secrets) SetHeld(held []Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.held
	s.held = make(map[Secret]bool, len(held))
	for _, secret := range held {
		if secret.Value != "" {
			s.held[secret] = true
		}
	}
	s.retire(was)
}

// retire makes of what is not declared or held any more a former secret. The caller holds mu.
func (s *Secrets) retire(was map[Secret]bool) {
	s.scrubber = nil
	current := func(secret Secret) bool { return s.declared[secret] || s.held[secret] }
	s.former = slices.DeleteFunc(s.former, func(secret Secret) bool { return current(secret) || was[secret] })
	for secret := range was {
		if !current(secret) {
			s.former = append(s.former, secret)
		}
	}
	if extra := len(s.former) - maxFormerSecrets; extra > 0 {
		s.former = slices.Delete(s.former, 0, extra)
	}
}

// Names are those under which values are or were declared or held.
func (s *Secrets) Names() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, secret := range s.all() {
		names[secret.Name] = true
	}
	for _, secret := range s.own {
		delete(names, secret.Name)
	}
	return names
}

// all are all of them. The caller holds mu.
func (s *Secrets) all() []Secret {
	return slices.Concat(s.own, slices.Collect(maps.Keys(s.declared)), slices.Collect(maps.Keys(s.held)), s.former)
}

// Scrub replaces every one of them by its name, as [Scrubber.Scrub] does.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	if s.scrubber == nil {
		s.scrubber = NewSecretScrubber(s.all())
	}
	scrubber := s.scrubber
	s.mu.Unlock()
	return scrubber.Scrub(text)
}

// Format says how many there are.
func (s *Secrets) Format(f fmt.State, _ rune) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(f, "%d secrets, not shown", len(s.all()))
}

func secretSet(values map[string]string) map[Secret]bool {
	set := make(map[Secret]bool, len(values))
	for name, value := range values {
		if value != "" {
			set[Secret{name, value}] = true
		}
	}
	return set
}

package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// generations is how many versions of the env file are remembered: sessions go on with the values they were started with.
const generations = 32

// scrubber takes out of what is posted every value that the env file declares or did declare, that a running agent was
// started with under one of its names, and our own tokens.
type scrubber struct {
	path  func() string                                  // of the env file
	panes func(context.Context) ([]sessions.Pane, error) // whose processes may hold older values

	mu    sync.Mutex // guards the fields that follow
	seen  time.Time  // the file's, as it was read last
	size  int64
	known []*envstate.Scrubber
}

func newScrubber(path func() string, panes func(context.Context) ([]sessions.Pane, error), own map[string]string) *scrubber {
	return &scrubber{path: path, panes: panes, known: []*envstate.Scrubber{envstate.NewScrubber(own)}}
}

// scrub replaces values by their names. While the file cannot be read, what was read before still counts.
func (s *scrubber) scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	for _, k := range s.known {
		text = k.Scrub(text)
	}
	return text
}

// refresh reads the file again when it changed.
func (s *scrubber) refresh() {
	info, err := os.Stat(s.path())
	if err != nil || info.ModTime().Equal(s.seen) && info.Size() == s.size {
		return
	}
	file, err := envstate.Declared(s.path())
	if err != nil {
		return // it is tried again with the next text
	}
	s.seen, s.size = info.ModTime(), info.Size()
	s.learn(file.Values())
	s.learnHeld(file.Order)
	if extra := len(s.known) - generations; extra > 0 {
		s.known = append(s.known[:1:1], s.known[1+extra:]...) // the first are our own
	}
}

func (s *scrubber) learn(values map[string]string) {
	if len(values) > 0 {
		s.known = append(s.known, envstate.NewScrubber(values))
	}
}

// lookTimeout bounds the look at what running agents hold.
const lookTimeout = 3 * time.Second

// learnHeld adds what the processes in the panes hold under the declared names.
func (s *scrubber) learnHeld(names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	panes, err := s.panes(ctx)
	if err != nil {
		return
	}
	for _, p := range panes {
		environ, ok := envstate.ProcessEnviron(ctx, p.PID)
		if !ok || p.Mark == "" {
			continue
		}
		held := maps.Clone(map[string]string(environ))
		maps.DeleteFunc(held, func(name, _ string) bool { return !slices.Contains(names, name) })
		s.learn(held)
	}
}

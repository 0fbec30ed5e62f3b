package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// scrubber takes out of what others will read every value that the env file declares or did declare, that a running agent
// was started with under a name that is or was declared, and our own tokens.
type scrubber struct {
	secrets *envstate.Secrets

	mu        sync.Mutex // guards the fields that follow
	sources   func() declaredSources
	panes     func(context.Context) ([]sessions.Pane, error) // whose processes may hold other values; nil: nobody looks
	readStamp envFileStamp                                   // the file's, as it was read last
	inFile    envstate.Values                                // what it declared then
	passed    envstate.Values                                // what the environment declared when it was read last
	lastScan  time.Time                                      // when the panes were last looked at with success
	nextScan  time.Time                                      // before that they are not looked at again
}

// declaredSources are where declared values are: the env file, by its path, and variables of our own environment.
type declaredSources struct {
	envFile string
	passed  envstate.Values
}

func (c *cli) declaredSources(cfg *config.Config) declaredSources {
	return declaredSources{envFile: cfg.EnvFile, passed: cfg.PassedEnv(c.env.getenv)}
}

func newScrubber(sources func() declaredSources, panes func(context.Context) ([]sessions.Pane, error), own map[string]string) *scrubber {
	return &scrubber{sources: sources, panes: panes, secrets: envstate.NewSecrets(own)}
}

// setSources changes where secrets are looked for.
func (s *scrubber) setSources(sources func() declaredSources, panes func(context.Context) ([]sessions.Pane, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources, s.panes = sources, panes
	s.readSourcesLocked()
}

// scrubKnown is scrub with what is known already. What logs while it is looked for secrets needs it.
func (s *scrubber) scrubKnown(text string) string { return s.secrets.Scrub(text) }

// scrub replaces values by their names. While the file cannot be read, what was read before still counts.
func (s *scrubber) scrub(text string) string {
	if text == "" {
		return ""
	}
	s.refresh()
	return s.secrets.Scrub(text)
}

// refresh reads the file again when it changed, and looks at what running agents hold then, and from time to time.
func (s *scrubber) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readSourcesLocked()
	if now := time.Now(); s.panes != nil && now.Sub(s.lastScan) > scanInterval && now.After(s.nextScan) {
		if s.scanPanes() {
			s.lastScan = now
		}
		s.nextScan = time.Now().Add(scanRetryDelay)
	}
}

// readSourcesLocked learns what is declared now, when that changed. The caller holds mu.
func (s *scrubber) readSourcesLocked() {
	now := s.sources()
	changed := !maps.Equal(now.passed, s.passed)
	if stamp := statEnvFile(now.envFile); stamp != s.readStamp && stamp != (envFileStamp{}) {
		if file, err := envstate.ReadFile(stamp.path); err == nil { // else it is tried again with the next text
			s.readStamp, s.inFile, changed = stamp, file.Values(), true
		}
	}
	if !changed {
		return
	}
	s.passed = now.passed
	declared := map[string]string{}
	maps.Copy(declared, s.passed)
	maps.Copy(declared, s.inFile)
	s.secrets.SetDeclared(declared)
	s.lastScan, s.nextScan = time.Time{}, time.Time{}
}

// How long a look at what running agents hold may take, how long it is good for while the file does not change, and the pause
// between two that failed.
const (
	scanTimeout    = 3 * time.Second
	scanInterval   = 30 * time.Second
	scanRetryDelay = time.Second
)

// scanPanes learns what the processes in the panes hold, under the names that are or were declared: now or before, or when the
// process was started, which its pane tells. So it does not matter whether there is a file.
func (s *scrubber) scanPanes() bool {
	ctx, cancel := context.WithTimeout(context.Background(), scanTimeout)
	defer cancel()
	panes, err := s.panes(ctx)
	if err != nil {
		return false
	}
	known := s.secrets.Names()
	var held []envstate.Secret
	for _, p := range panes {
		environ, ok := envstate.ProcessEnviron(ctx, p.PID)
		if !ok || p.Mark == "" {
			continue
		}
		given := strings.Fields(p.Declared)
		for name, value := range environ {
			if known[name] || slices.Contains(given, name) {
				held = append(held, envstate.Secret{Name: name, Value: value})
			}
		}
	}
	s.secrets.SetHeld(held)
	return true
}

// scrubberFor is what takes secrets out of texts, by a configuration.
func (c *cli) scrubberFor(cfg *config.Config) *scrubber {
	if c.scrubber == nil {
		c.scrubber = newScrubber(func() declaredSources { return c.declaredSources(cfg) }, nil, c.readTokens(cfg))
	}
	return c.scrubber
}

// scrubKnown takes the secrets that are known out of a message.
func (c *cli) scrubKnown(text string) string {
	if c.scrubber == nil {
		return text
	}
	return c.scrubber.scrubKnown(text)
}

// scrubbingWriter writes what scrub leaves of each text that is written. A JSON document stays one.
type scrubbingWriter struct {
	to    io.Writer
	scrub func(string) string
}

func (w scrubbingWriter) Write(p []byte) (int, error) {
	if text := bytes.TrimSpace(p); len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
		_, err := w.to.Write(sessions.ScrubJSON(p, w.scrub, isMachineKey))
		return len(p), err
	}
	_, err := io.WriteString(w.to, w.scrub(string(p)))
	return len(p), err
}

// isMachineKey reports the keys of the output under which are names and places that programs use.
func isMachineKey(key string) bool {
	switch key {
	case "id", "ref", "config", "root", "conversation", "socket", "pane", "tmuxTarget", "channel", "thread", "ts", "harness", "name":
		return true
	}
	return false
}

package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"sync"

	"gopkg.in/yaml.v3"
)

// LoadPartial is what can be told of a file that [Loader.Load] refuses: where the state is and which tmux server is used. It
// is enough to stop what runs, and for nothing else: it declares no session and lets nobody in. What cannot be read is
// the default; sure says that state.root was not guessed.
func (l Loader) LoadPartial(path string) (c *Config, sure bool) {
	path = absolutePath(path, l.Workdir, l.Home)
	var raw struct {
		State   struct{ Root string }
		Routing struct {
			Tmux struct {
				SocketName string `yaml:"socketName"`
			}
		}
		EventLog struct{ Path string } `yaml:"eventLog"`
	}
	raw.State.Root = "."
	data, err := readFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, &raw) // fills in what fits, also beside what does not
		var partly *yaml.TypeError
		if errors.As(err, &partly) {
			err = nil
		}
	}
	r := &resolver{document: &document{file: path}, home: l.Home}
	c = &Config{Path: path, StateRoot: r.resolvePath("state.root", raw.State.Root, filepath.Dir(path))}
	usual := defaults().Routing.Tmux
	c.Routing.Tmux = Tmux{SocketName: usual.SocketName, RemainOnExit: usual.RemainOnExit, HarnessKillGrace: seconds(usual.HarnessKillGraceSeconds)}
	if socketNamePattern().MatchString(raw.Routing.Tmux.SocketName) {
		c.Routing.Tmux.SocketName = raw.Routing.Tmux.SocketName
	}
	c.EventLog = EventLog{Path: r.resolveOptionalPath("eventLog.path", raw.EventLog.Path, filepath.Dir(path)), MaxBytes: defaults().EventLog.MaxSizeMB << 20}
	if c.EventLog.Path == "" {
		c.EventLog.Path = filepath.Join(c.StateRoot, "logs", "events.jsonl")
	}
	return c, err == nil && len(r.problems) == 0
}

// socketNamePattern is a name for a tmux server that can be used without the schema's word for it.
var socketNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,39}$`) })

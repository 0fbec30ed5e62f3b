package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Warnings is what is allowed but probably not meant, or not safe. It looks at the files as they are now.
func (c *Config) Warnings() []Problem {
	var w []Problem
	add := func(key, message string) { w = append(w, c.ProblemAt(key, message)) }
	for _, p := range []string{c.Path, filepath.Dir(c.Path)} {
		if mode, err := modeOf(p); err == nil && mode&0o022 != 0 {
			add("", p+" can be written by others, who could make the-loop run anything — run chmod go-w on it")
		}
	}
	c.warnEnvFile(add)
	c.warnState(add)
	if c.Slack.Enabled {
		c.warnSlack(add)
	}
	return w
}

func modeOf(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

func (c *Config) warnEnvFile(add func(key, message string)) {
	if c.EnvFile == "" {
		return
	}
	switch mode, err := modeOf(c.EnvFile); {
	case errors.Is(err, fs.ErrNotExist):
		add("env.file", c.EnvFile+" does not exist — write it, or remove the key")
	case err != nil:
		add("env.file", c.EnvFile+" cannot be read — check its owner and mode")
	case mode&0o077 != 0:
		add("env.file", fmt.Sprintf("%s holds credentials and has mode %04o — run chmod 600 on it", c.EnvFile, mode))
	}
}

// warnState names the sessions whose agents could change what the-loop knows.
func (c *Config) warnState(add func(key, message string)) {
	root := resolveLinks(c.StateRoot)
	for _, s := range c.Standing.Sessions {
		if isWithin(root, resolveLinks(s.Cwd)) {
			key := s.Position.Key + ".cwd"
			if s.Inherited.Cwd {
				key = s.Position.Key
			}
			add(key, fmt.Sprintf("works in %s, which contains the state in %s — move state.root out of the folders of agents", s.Cwd, c.StateRoot))
		}
	}
}

// resolveLinks resolves the links of as much of a path as exists.
func resolveLinks(path string) string {
	for rest, dir := "", path; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest, dir = filepath.Join(filepath.Base(dir), rest), filepath.Dir(dir)
	}
}

// isWithin reports whether path is dir or below it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func (c *Config) warnSlack(add func(key, message string)) {
	if len(c.Slack.AuthorizedUsers) == 0 {
		add("channels.slack.authorizedUsers", "is empty, so nobody is authorized — add the member ids of those who may talk to sessions")
	}
	if c.Slack.Channel == "" {
		add("channels.slack.channel", "is empty, so sessions made at run time without a channel are not announced — add the id of a channel (C…)")
	}
	if u, err := url.Parse(c.Slack.APIURL); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		add("channels.slack.apiUrl", "sends the tokens over the network in the clear — use https")
	}
}

package tmux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"the-loop/sessions"
)

const (
	defaultWidth  = 200
	defaultHeight = 50

	// maxArgBytes is the longest single argument or NAME=value that Linux hands to a program (MAX_ARG_STRLEN).
	maxArgBytes = 128<<10 - 1
)

var (
	sessionNamePattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`) })
	variableNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
)

// Spawn makes a tmux session around one marked pane. What it is made of travels on standard input, so no value shows in
// an argv, and arguments are limited only by the system (131,071 bytes each; tmux takes about 16 kB in its own argv).
// PATH and SHELL, which tmux sets itself, go in through env and do show.
//
// It refuses with a [ReservedError], a [BinaryNotFoundError], [ErrTooLong] or [sessions.ErrNameTaken] before anything starts.
// After one that is [sessions.ErrInDoubt] a pane with the mark may be there.
func (t *Tmux) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	pane, err := t.spawn(ctx, s)
	if err != nil {
		return sessions.Pane{}, fmt.Errorf("start %s: %w", s.Name, err)
	}
	return pane, nil
}

func (t *Tmux) spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	if err := t.Check(ctx); err != nil {
		return sessions.Pane{}, err
	}
	if err := checkSpawn(s); err != nil {
		return sessions.Pane{}, err
	}
	argv, err := t.paneArgv(s)
	if err != nil {
		return sessions.Pane{}, err
	}
	if err := t.writeConfig(); err != nil {
		return sessions.Pane{}, err
	}
	if _, err := t.Panes(ctx); err != nil { // a server that lost its socket must not be joined by a second one
		return sessions.Pane{}, err
	}
	if s.Session != "" {
		return t.spawnWindow(ctx, s, argv)
	}
	pane, err := t.spawnOnce(ctx, s, argv)
	if !errors.Is(err, errServerLost) {
		return pane, err
	}
	// The server was going down when we came. Nothing is started twice: a pane with the mark would be seen.
	if panes, looked := t.Panes(ctx); looked != nil || slices.ContainsFunc(panes, func(p sessions.Pane) bool { return p.Mark == s.Mark }) {
		return sessions.Pane{}, errors.Join(err, looked)
	}
	return t.spawnOnce(ctx, s, argv)
}

func checkSpawn(s sessions.Spawn) error {
	switch {
	case s.Session != "" && !isID(s.Session, '$'):
		return fmt.Errorf("tmux: %q is no session's id", s.Session)
	case !sessionNamePattern().MatchString(s.Name):
		return fmt.Errorf("tmux: the name %q must consist of letters, digits, - and _", s.Name)
	case s.Width < 0 || s.Height < 0 || s.Width > 10000 || s.Height > 10000:
		return fmt.Errorf("tmux: a pane of %d×%d", s.Width, s.Height)
	}
	return checkProgram(s)
}

// checkProgram checks what a pane is to run.
func checkProgram(s sessions.Spawn) error {
	switch {
	case !markPattern().MatchString(s.Mark):
		return fmt.Errorf("tmux: %q is no mark of a pane", s.Mark)
	case len(s.Argv) == 0:
		return errors.New("tmux: there is no program to run")
	case !filepath.IsAbs(s.Cwd):
		return fmt.Errorf("the working folder %q is not an absolute path", s.Cwd)
	}
	if info, err := os.Stat(s.Cwd); err != nil {
		return fmt.Errorf("the working folder: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("the working folder %s is not a folder", s.Cwd)
	}
	return checkArgs(s)
}

func checkArgs(s sessions.Spawn) error {
	for i, word := range s.Argv {
		if err := checkArg(word); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		switch {
		case IsReserved(name):
			return &ReservedError{Name: name}
		case !variableNamePattern().MatchString(name):
			return fmt.Errorf("%q is no name of a variable", name)
		}
		if err := checkArg(name + "=" + s.Env[name]); err != nil {
			return fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	return nil
}

func checkArg(word string) error {
	if len(word) > maxArgBytes {
		return fmt.Errorf("%d bytes, of at most %d: %w", len(word), maxArgBytes, ErrTooLong)
	}
	if strings.Contains(word, "\x00") {
		return errors.New("holds a NUL")
	}
	return nil
}

// paneArgv is what tmux runs: the program by its path, behind env when PATH or SHELL are given or when there is nothing
// but the program, because tmux hands a single word to a shell.
func (t *Tmux) paneArgv(s sessions.Spawn) ([]string, error) {
	path := t.path
	if own, ok := s.Env["PATH"]; ok {
		path = own
	}
	program, err := findProgram(s.Argv[0], path, s.Cwd)
	if err != nil {
		return nil, err
	}
	argv := append([]string{program}, s.Argv[1:]...)
	var front []string
	for _, name := range []string{"PATH", "SHELL"} {
		if value, ok := s.Env[name]; ok {
			front = append(front, name+"="+value)
		}
	}
	if len(front) == 0 && len(argv) > 1 {
		return argv, nil
	}
	if strings.Contains(program, "=") {
		return nil, fmt.Errorf("the program's path %s holds a =, which env would take for a variable", program)
	}
	env, err := findProgram("env", t.path, "/")
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{env}, front, argv), nil
}

// spawnOnce makes one attempt. All commands are one line: if one fails those after it do not run, so that a name which is
// taken does not put our mark on somebody else's pane.
func (t *Tmux) spawnOnce(ctx context.Context, s sessions.Spawn, argv []string) (sessions.Pane, error) {
	at := "=" + s.Name + ":" // the one pane of the session just made
	script := sequence(
		command(newSessionArgs(s, argv)...),
		command("set-option", "-t", at, ownerOption, s.Mark),
		command("set-option", "-p", "-t", at, markOption, s.Mark),
		command("set-option", "-p", "-t", at, declaredOption, strings.Join(s.Declared, " ")),
		command("set-option", "-p", "-t", at, "remain-on-exit", onOff(s.RemainOnExit)),
		command("set-option", "-w", "-t", at, "window-size", "manual"),
		command("display-message", "-p", "-t", at, paneFormat))
	alone := t.spawnBatch.newCall(script + "\n")
	var out string
	var err error
	if strings.Contains(s.Cwd, "#") {
		alone.dir = s.Cwd
		out, err = t.run(ctx, alone)
	} else {
		out, err = t.spawnBatch.run(ctx, t.runner, script, alone)
	}
	made, rest, _ := strings.Cut(out, "\n")
	pane, unread := parsePane(strings.TrimSuffix(rest, "\n"))
	switch {
	case unread == nil && pane.Mark == s.Mark:
		return pane, nil
	case made != "":
		return sessions.Pane{}, t.killUnmarkedSession(ctx, made, errors.Join(err, unread))
	}
	return sessions.Pane{}, spawnError(err, unread)
}

func newSessionArgs(s sessions.Spawn, argv []string) []string {
	words := []string{"new-session", "-d", "-P", "-F", "#{session_id}", "-s", s.Name,
		"-x", strconv.Itoa(orDefault(s.Width, defaultWidth)), "-y", strconv.Itoa(orDefault(s.Height, defaultHeight))}
	if !strings.Contains(s.Cwd, "#") { // tmux takes it for a format; the client's own folder is taken as it is
		words = append(words, "-c", s.Cwd)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if name != "PATH" && name != "SHELL" {
			words = append(words, "-e", name+"="+s.Env[name])
		}
	}
	return slices.Concat(words, []string{"--"}, argv)
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// spawnError reads the failure of an invocation that did not say that it made a session.
func spawnError(err, unread error) error {
	var failed *callError
	switch {
	case err == nil:
		return wrapInDoubt(unread)
	case !errors.As(err, &failed):
		return err
	case strings.Contains(failed.message, "duplicate session: "):
		return fmt.Errorf("%w: %w", sessions.ErrNameTaken, err)
	case failed.cause == nil:
		return err // tmux said what is wrong before it made anything
	}
	return wrapInDoubt(err)
}

// killUnmarkedSession takes back a session that was made and could not be marked.
func (t *Tmux) killUnmarkedSession(ctx context.Context, id string, cause error) error {
	if !isID(id, '$') {
		return wrapInDoubt(fmt.Errorf("tmux: unexpected answer %q: %w", id, cause))
	}
	if _, err := t.run(ctx, call{args: []string{"kill-session", "-t", id}}); err != nil {
		return wrapInDoubt(errors.Join(cause, err))
	}
	return fmt.Errorf("tmux made the session and could not mark it: %w", cause)
}

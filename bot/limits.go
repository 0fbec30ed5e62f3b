package bot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
)

// Limits say what may be created from Slack, channels.slack.create of the configuration.
type Limits struct {
	CwdRoots  []string // absolute; a session's folder must be one of these, or lie below one; empty: anywhere
	Harnesses []string // empty: any that is known
}

// fieldError is a refusal of one thing that a session was to be created with.
type fieldError struct {
	field string // one of render's fields
	err   error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// apply applies the limits to what a session would be created with, and returns the folder that it may run in: where
// there are roots, with its symbolic links resolved, so that it is the folder that was looked at. This is the only place
// that knows of limits.
func (l Limits) apply(harness, cwd string) (string, error) {
	if len(l.Harnesses) > 0 && !slices.Contains(l.Harnesses, harness) {
		return "", &fieldError{render.FieldHarness, fmt.Errorf("a session with the harness %q cannot be created from Slack: channels.slack.create.harnesses allows %s",
			harness, strings.Join(l.Harnesses, ", "))}
	}
	if len(l.CwdRoots) == 0 {
		return cwd, nil
	}
	return l.resolveFolder(cwd)
}

// resolveFolder resolves a folder that lies below a root. That a folder is not there is said, in the core's words, when its path
// lies below a root as it is written: of other places nothing is told, not even whether they are there.
func (l Limits) resolveFolder(cwd string) (string, error) {
	outside := &fieldError{render.FieldCwd, fmt.Errorf("a session in the folder %s cannot be created from Slack: channels.slack.create.cwdRoots allows %s, and what lies below",
		cwd, strings.Join(l.CwdRoots, ", "))}
	if !filepath.IsAbs(cwd) {
		return "", outside
	}
	resolved, err := filepath.EvalSymlinks(cwd)
	missing := errors.Is(err, os.ErrNotExist)
	for _, root := range l.CwdRoots {
		if missing && isWithin(filepath.Clean(cwd), filepath.Clean(root)) {
			return "", &fieldError{render.FieldCwd, &sessions.Refusal{Cause: sessions.ErrRefused,
				What: fmt.Sprintf("the folder %s cannot be used: %v", cwd, err), Remedy: "make it, or change cwd"}}
		}
		if real, rootErr := filepath.EvalSymlinks(root); err == nil && rootErr == nil && isWithin(resolved, real) {
			return resolved, nil
		}
	}
	return "", outside
}

// isWithin reports whether a clean path is the folder, or lies below it.
func isWithin(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// allowedHarnesses are the harnesses of those that are known which the limits allow.
func (l Limits) allowedHarnesses(known []string) []string {
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return len(l.Harnesses) > 0 && !slices.Contains(l.Harnesses, name)
	})
}

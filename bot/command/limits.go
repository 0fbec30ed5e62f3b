package command

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

// Limits are what may be created from Slack, channels.slack.create of the configuration.
type Limits struct {
	CwdRoots  []string // absolute; a session's folder must be one of these or lie below one; empty: any folder
	Harnesses []string // empty: every known one
}

// FieldError is a refusal of one field of a [CreateRequest].
type FieldError struct {
	Field string // its block in the form, one of render's fields
	Err   error
}

func (e *FieldError) Error() string { return e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// apply checks a harness and a folder against the limits, and returns the folder that the session may run in. Where there are roots,
// its symbolic links are resolved, so that it is the folder that was checked.
func (l Limits) apply(harness, cwd string) (string, error) {
	if len(l.Harnesses) > 0 && !slices.Contains(l.Harnesses, harness) {
		return "", &FieldError{render.FieldHarness, fmt.Errorf("a session with the harness %q cannot be created from Slack: channels.slack.create.harnesses allows %s",
			harness, strings.Join(l.Harnesses, ", "))}
	}
	if len(l.CwdRoots) == 0 {
		return cwd, nil
	}
	return l.resolveFolder(cwd)
}

// resolveFolder resolves a folder that lies below a root. Only of a path below a root it tells that the folder does not exist: of other
// places nothing is told, not even whether they exist.
func (l Limits) resolveFolder(cwd string) (string, error) {
	outside := &FieldError{render.FieldCwd, fmt.Errorf("a session in the folder %s cannot be created from Slack: channels.slack.create.cwdRoots allows %s, and what lies below",
		cwd, strings.Join(l.CwdRoots, ", "))}
	if !filepath.IsAbs(cwd) {
		return "", outside
	}
	resolved, err := filepath.EvalSymlinks(cwd)
	missing := errors.Is(err, os.ErrNotExist)
	for _, root := range l.CwdRoots {
		if missing && isWithin(filepath.Clean(cwd), filepath.Clean(root)) {
			return "", &FieldError{render.FieldCwd, &sessions.Refusal{Cause: sessions.ErrRefused,
				What: fmt.Sprintf("the folder %s cannot be used: %v", cwd, err), Remedy: "create it, or change cwd"}}
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

// AllowedHarnesses are those of the known harnesses which the limits allow.
func (l Limits) AllowedHarnesses(known []string) []string {
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return len(l.Harnesses) > 0 && !slices.Contains(l.Harnesses, name)
	})
}

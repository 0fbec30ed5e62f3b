package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

const (
	// trustLockTimeout is how long a writer of the same file is waited for.
	trustLockTimeout = 5 * time.Second
	// staleLockAge is the age at which Claude Code itself takes a lock for left behind (proper-lockfile's default).
	staleLockAge = 10 * time.Second
)

// writeFolderTrust marks the folder as trusted in Claude Code's own file, and nothing else in it: the answer that the operator
// gave in the configuration. The home folder and those above it are left to the dialog: Claude Code itself does not keep
// that answer, since it would hold for everything below.
func (c Harness) writeFolderTrust(ctx context.Context, l sessions.Launch) error {
	file, err := c.trustFile(l.Env)
	if err != nil {
		return err
	}
	folder, err := filepath.EvalSymlinks(l.Cwd)
	if err != nil {
		return err
	}
	home, err := c.home(l.Env)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if rel, err := filepath.Rel(folder, home); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	if text, _, err := readTrust(file); err != nil || isTrusted(text, folder) {
		return err
	}
	release, err := acquireLockDir(ctx, file)
	if err != nil {
		return err
	}
	defer release()
	return writeTrust(file, folder)
}

// trustFile is ~/.claude.json, or where an environment or an old installation has it.
func (c Harness) trustFile(env map[string]string) (string, error) {
	dir, err := c.configDir(env)
	if err != nil {
		return "", err
	}
	old := filepath.Join(dir, ".config.json")
	if _, err := os.Stat(old); err == nil {
		return old, nil
	}
	if env["CLAUDE_CONFIG_DIR"] != "" {
		return filepath.Join(dir, ".claude.json"), nil
	}
	return filepath.Join(filepath.Dir(dir), ".claude.json"), nil
}

// readTrust reads the file behind any link. One that is not there is empty.
func readTrust(file string) (text []byte, mode fs.FileMode, err error) {
	text, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return []byte("{}"), 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, 0, err
	}
	if !json.Valid(text) {
		var v any
		return nil, 0, &sessions.Refusal{Cause: sessions.ErrRefused, Remedy: "correct it, or switch routing.harnessTrust off",
			What: fmt.Sprintf("%s is no JSON and was left alone: %v", file, json.Unmarshal(text, &v))}
	}
	return text, info.Mode().Perm(), nil
}

// isTrusted reports whether the folder, or one above it, was accepted: Claude Code looks at all of them.
func isTrusted(text []byte, folder string) bool {
	var known struct {
		Projects map[string]struct {
			Accepted any `json:"hasTrustDialogAccepted"`
		} `json:"projects"`
	}
	if json.Unmarshal(text, &known) != nil {
		return false
	}
	for {
		if known.Projects[folder].Accepted == true {
			return true
		}
		above := filepath.Dir(folder)
		if above == folder {
			return false
		}
		folder = above
	}
}

// writeTrust replaces the file unless somebody changed it meanwhile, and then tries again.
func writeTrust(file, folder string) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	for range 5 {
		text, mode, err := readTrust(file)
		if err != nil {
			return err
		}
		changed, err := setMember(text, []string{"projects", folder, "hasTrustDialogAccepted"}, json.RawMessage("true"))
		if err != nil {
			return fmt.Errorf("%s does not have the shape that is known, and was left alone: %w", file, err)
		}
		pending, err := renameio.NewPendingFile(file, renameio.WithPermissions(mode), renameio.IgnoreUmask())
		if err != nil {
			return err
		}
		done, err := replaceIfUnchanged(pending, file, text, changed)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes faster than it can be written", file)
}

func replaceIfUnchanged(pending *renameio.PendingFile, file string, was, is []byte) (bool, error) {
	defer func() { _ = pending.Cleanup() }()
	if _, err := pending.Write(is); err != nil {
		return false, err
	}
	if now, _, err := readTrust(file); err != nil || !bytes.Equal(now, was) {
		return false, err
	}
	return true, pending.CloseAtomicallyReplace()
}

// acquireLockDir takes the lock that Claude Code takes around its own writes: a folder beside the file, of which its age says
// whether the holder still lives.
func acquireLockDir(ctx context.Context, file string) (func(), error) {
	lock := file + ".lock"
	ctx, cancel := context.WithTimeout(ctx, trustLockTimeout)
	defer cancel()
	for {
		err := os.Mkdir(lock, 0o700)
		switch {
		case err == nil:
			return func() { _ = os.Remove(lock) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		}
		if info, err := os.Stat(lock); err == nil && time.Since(info.ModTime()) > staleLockAge {
			_ = os.Remove(lock)
			continue
		}
		if !loop.Sleep(ctx, 20*time.Millisecond) {
			return nil, fmt.Errorf("%s is being written by somebody else: %w", file, ctx.Err())
		}
	}
}

package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// configuration is all that our server reads. What an operator who attaches is used to (prefix, status line, mouse) is
// left at tmux's defaults. -q passes over what a release does not know; a line with an error would put the first pane
// into a mode. window-size is set on each window: globally, "manual" takes tmux 3.3a down at the next new-session.
const configuration = `# Written by the-loop; changes are overwritten.
set -sq exit-empty on
set -sq exit-unattached off
set -gq destroy-unattached off
set -sq message-limit 0
set -sq escape-time 10
set -sq set-clipboard external
set -gq history-limit 20000
set -gq default-size 200x50
set -wgq aggressive-resize off
set -wgq remain-on-exit off
set -wgq automatic-rename off
set -wgq allow-rename off
set -wgq synchronize-panes off
`

func (r *runner) configPath() string { return filepath.Join(r.dir, "tmux.conf") }

// writeConfig puts our configuration where the server will read it. It writes only when something differs.
func (r *runner) writeConfig() error {
	if err := r.makeDir(); err != nil {
		return err
	}
	old, err := os.ReadFile(r.configPath())
	if err == nil && bytes.Equal(old, []byte(configuration)) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tmux: its configuration: %w", err)
	}
	if err := renameio.WriteFile(r.configPath(), []byte(configuration), 0o600); err != nil {
		return fmt.Errorf("tmux: its configuration: %w", err)
	}
	return nil
}

func (r *runner) makeDir() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("tmux: its folder: %w", err)
	}
	return nil
}

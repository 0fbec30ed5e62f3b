package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"the-loop/sessions"
)

var _ sessions.ActivityReader = (*Tmux)(nil)

// ReadActivity says of each pane of ours, by its mark, what can be told without reading its screen: one list for all of them. No
// server is an empty answer. The time of the last output is that of the pane's window.
func (t *Tmux) ReadActivity(ctx context.Context) (map[string]sessions.PaneActivity, error) {
	secret := rand.Text()
	format := strings.Join([]string{secret, "#{window_activity}", "#{?pane_dead,,#{pane_pid}}", "#{" + markOption + "}"}, "\t")
	out, err := t.run(ctx, call{args: []string{"list-panes", "-a", "-F", format}})
	switch {
	case errors.Is(err, errNoServer), errors.Is(err, errNoSocket):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseActivity(out, secret)
}

func parseActivity(out, secret string) (map[string]sessions.PaneActivity, error) {
	signs := map[string]sessions.PaneActivity{}
	for line := range strings.Lines(out) {
		rest, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), secret+"\t")
		if !ours {
			continue // part of a mark that is none of ours
		}
		f := strings.Split(rest, "\t")
		if len(f) < 3 {
			return nil, fmt.Errorf("tmux: cannot read a pane in %q", line)
		}
		if len(f) > 3 || f[2] == "" || !consistsOf(f[2], isMarkByte) {
			continue
		}
		output, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("tmux: cannot read the time of the last output: %w", err)
		}
		pid, _ := strconv.Atoi(f[1]) // empty: it has ended
		signs[f[2]] = sessions.PaneActivity{LastOutput: output, PID: pid}
	}
	return signs, nil
}

package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"the-loop/sessions"
)

// markOption is the pane option that carries a session's id.
const markOption = "@the-loop-id"

// declaredOption is the pane option that carries the names, and no value, of what the env file gave to the pane's process.
const declaredOption = "@the-loop-env"

// paneFormat prints a pane in one line. A mark that is none of ours (anything in a pane may set the option) is left out,
// so that a line holds no TAB but ours.
var paneFormat = strings.Join([]string{"PANE", "#{pane_id}", "#{session_id}", "#{session_name}",
	"#{?#{m/r:^[A-Za-z0-9._-]+$,#{" + markOption + "}},#{" + markOption + "},}", "#{pane_pid}", "#{pane_dead}",
	"#{pane_dead_status}", "#{pane_dead_signal}", "#{pid}", "#{start_time}", "#{socket_path}",
	"#{?#{m/r:^[A-Za-z0-9_ ]+$,#{" + declaredOption + "}},#{" + declaredOption + "},}"}, "\t")

var bufferFormat = strings.Join([]string{"BUFFER", "#{buffer_name}", "#{buffer_created}"}, "\t")

// Panes lists every pane of our server, a pane that several tmux sessions show once, in the oldest of them. No server is
// an empty list. A server whose socket was removed (tmux/tmux#4640) is told to make it again before it counts as absent.
func (t *Tmux) Panes(ctx context.Context) ([]sessions.Pane, error) {
	list, err := t.list(ctx)
	for wait := time.Millisecond; errors.Is(err, errLost) && wait < 100*time.Millisecond; wait *= 2 { // it is just ending
		if err = pause(ctx, wait); err == nil {
			list, err = t.list(ctx)
		}
	}
	if errors.Is(err, errNoSocket) && t.revive(ctx) {
		if list, err = t.list(ctx); errors.Is(err, errNoSocket) {
			return nil, fmt.Errorf("the tmux server does not make its socket again: %w", sessions.ErrSilent)
		}
	}
	if err == nil && t.unsettled(list) {
		if list, err = t.settle(ctx); errors.Is(err, errLost) { // its last pane was just ended
			list, err = t.list(ctx)
		}
	}
	switch {
	case errors.Is(err, errNoServer), errors.Is(err, errNoSocket):
		return nil, nil
	case err != nil:
		return nil, err
	}
	t.sweep(ctx, list.stale)
	return list.panes, nil
}

// listing is one answer of the server.
type listing struct {
	panes []sessions.Pane
	stale []string // buffers of ours that nobody will use any more
}

// settleTime is how long tmux may take to learn how a pane died: it notices the end of the output first, and 3.3a now and
// then misses the signal, so that the dead process stays a zombie until another child ends. Some never tell: 3.2 does not
// know signals, and a program can close its terminal and live on.
const settleTime = 500 * time.Millisecond

// unsettled reports a dead pane of which tmux does not know yet how it died, and which was not waited for before.
func (t *Tmux) unsettled(l listing) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(l.panes, func(p sessions.Pane) bool { return unexplained(p) && !t.settled[p] })
}

func unexplained(p sessions.Pane) bool { return p.Dead && p.ExitStatus < 0 && p.ExitSignal == "" }

// settle lists again until every death is explained, or for settleTime, and does not wait for the same panes again. A
// child that ends at once makes the server look at all of them.
func (t *Tmux) settle(ctx context.Context) (listing, error) {
	over := time.Now().Add(settleTime)
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if wait > 2*time.Millisecond {
			if _, err := t.run(ctx, call{args: []string{"run-shell", "-b", "true"}}); err != nil {
				return listing{}, err
			}
		}
		if err := pause(ctx, wait); err != nil {
			return listing{}, err
		}
		l, err := t.list(ctx)
		if err != nil || !t.unsettled(l) {
			return l, err
		}
		if time.Now().After(over) {
			t.giveUp(l)
			return l, nil
		}
	}
}

func (t *Tmux) giveUp(l listing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = map[sessions.Pane]bool{}
	for _, p := range l.panes {
		t.settled[p] = unexplained(p)
	}
}

func (t *Tmux) list(ctx context.Context) (listing, error) {
	out, err := t.run(ctx, call{args: []string{"list-panes", "-a", "-F", paneFormat, ";",
		"list-buffers", "-f", "#{m:" + bufferPrefix + "*,#{buffer_name}}", "-F", bufferFormat}})
	if err != nil {
		return listing{}, err
	}
	return parseListing(out, time.Now())
}

func parseListing(out string, now time.Time) (listing, error) {
	var l listing
	place := map[string]int{}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "BUFFER\t") {
			if name, ok := staleBuffer(line, now); ok {
				l.stale = append(l.stale, name)
			}
			continue
		}
		pane, err := parsePane(line)
		if err != nil {
			return listing{}, err
		}
		at, seen := place[pane.ID]
		switch {
		case !seen:
			place[pane.ID] = len(l.panes)
			l.panes = append(l.panes, pane)
		case number(pane.SessionID) < number(l.panes[at].SessionID):
			l.panes[at] = pane
		}
	}
	return l, nil
}

// number is the number in a tmux id; ids are checked before.
func number(id string) int {
	n, _ := strconv.Atoi(id[1:]) // checked by parsePane
	return n
}

// parsePane reads a line of paneFormat and takes nothing that does not look as it should.
func parsePane(line string) (sessions.Pane, error) {
	f := strings.Split(line, "\t")
	if len(f) != 13 || f[0] != "PANE" || !isID(f[1], '%') || !isID(f[2], '$') || f[3] == "" {
		return sessions.Pane{}, fmt.Errorf("tmux: cannot read the pane in %q", line)
	}
	p := sessions.Pane{ID: f[1], SessionID: f[2], SessionName: f[3], Mark: f[4], Dead: f[6] == "1", ExitSignal: f[8]}
	p.Server.Socket, p.Declared = f[11], f[12]
	var bad error
	read := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	p.PID, p.Server.PID, p.Server.Start = int(read(f[5])), int(read(f[9])), read(f[10])
	switch {
	case p.Dead && f[7] == "":
		p.ExitStatus = -1
	case p.Dead:
		p.ExitStatus = int(read(f[7]))
	}
	if bad != nil {
		return sessions.Pane{}, fmt.Errorf("tmux: cannot read the pane in %q: %w", line, bad)
	}
	return p, nil
}

// isID reports one of tmux's own ids: a sigil and a number.
func isID(s string, sigil byte) bool {
	if len(s) < 2 || s[0] != sigil {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 10, 31)
	return err == nil
}

// find is the one pane that carries the mark and is alive. [sessions.ErrPaneGone] and [sessions.ErrPaneDead].
func (t *Tmux) find(ctx context.Context, mark string) (sessions.Pane, error) {
	panes, err := t.Panes(ctx)
	if err != nil {
		return sessions.Pane{}, err
	}
	pane, err := pick(panes, mark)
	switch {
	case err != nil:
		return sessions.Pane{}, err
	case pane.Dead && pane.ExitSignal != "":
		return pane, fmt.Errorf("%w: killed by %s", sessions.ErrPaneDead, pane.ExitSignal)
	case pane.Dead:
		return pane, fmt.Errorf("%w: exit status %d", sessions.ErrPaneDead, pane.ExitStatus)
	}
	return pane, nil
}

// pick is the pane with the mark. Two of them mean that somebody set the option by hand: then neither is the one.
func pick(panes []sessions.Pane, mark string) (sessions.Pane, error) {
	var found []sessions.Pane
	for _, p := range panes {
		if p.Mark == mark {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return sessions.Pane{}, sessions.ErrPaneGone
	case 1:
		return found[0], nil
	}
	return sessions.Pane{}, fmt.Errorf("tmux: the panes %s and %s carry the same mark", found[0].ID, found[1].ID)
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", sessions.ErrSilent, ctx.Err())
	}
}

package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// markOption is the pane option that carries a session's id.
const markOption = "@the-loop-id"

// declaredOption is the pane option that carries the names, and no value, of what the env file gave to the pane's process.
const declaredOption = "@the-loop-env"

// paneFormat prints one pane in one line. A mark that is none of ours (anything in a pane may set the option) is left out,
// so that a line holds no TAB but ours. tmux compiles the expressions anew for each pane, see [listFormats].
var paneFormat = strings.Join([]string{"PANE", "#{pane_id}", "#{session_id}", "#{session_name}",
	"#{?#{m/r:^[A-Za-z0-9._-]+$,#{" + markOption + "}},#{" + markOption + "},}", "#{pane_pid}", "#{pane_dead}",
	"#{pane_dead_status}", "#{pane_dead_signal}", "#{pid}", "#{start_time}", "#{socket_path}",
	"#{?#{m/r:^[A-Za-z0-9_ ]+$,#{" + declaredOption + "}},#{" + declaredOption + "},}"}, "\t")

// What begins the lines of a list, each followed by the list's own secret.
const (
	lineServer = "SERVER "
	linePane   = "PANE "
	lineBuffer = "BUFFER "
)

// listFormats are how a list prints the server, a pane, and a buffer. What anything in a pane may have set stands last and as
// it is, line feeds included: a line that does not begin with the secret is part of that. Little is asked of each pane,
// since that is what a list of a thousand costs.
func listFormats(secret string) (server, pane, buffer string) {
	server = strings.Join([]string{lineServer + secret, "#{pid}", "#{start_time}", "#{socket_path}"}, "\t")
	pane = strings.Join([]string{linePane + secret, "#{pane_id}", "#{session_id}", "#{session_name}", "#{pane_pid}",
		"#{?pane_dead,1 #{pane_dead_status} #{pane_dead_signal},0}", "#{" + markOption + "}", "#{" + declaredOption + "}"}, "\t")
	buffer = strings.Join([]string{lineBuffer + secret, "#{buffer_name}", "#{buffer_created}"}, "\t")
	return server, pane, buffer
}

// Panes lists every pane of our server, a pane that several tmux sessions show once, in the oldest of them. No server is
// an empty list. A server whose socket was removed (tmux/tmux#4640) is told to make it again before it counts as absent.
// Many who ask at once share one list, which is not older than the question of any of them.
func (t *Tmux) Panes(ctx context.Context) ([]sessions.Pane, error) {
	panes, err := t.paneList.get(ctx, t.readPanes)
	return slices.Clip(panes), err // who appends to it gets a copy
}

func (t *Tmux) readPanes(ctx context.Context) ([]sessions.Pane, error) {
	list, err := t.readListing(ctx)
	for wait := time.Millisecond; errors.Is(err, errServerLost) && wait < 100*time.Millisecond; wait *= 2 { // it is just ending
		if err = sleep(ctx, wait); err == nil {
			list, err = t.readListing(ctx)
		}
	}
	if errors.Is(err, errNoSocket) && t.recoverSocket(ctx) {
		if list, err = t.readListing(ctx); errors.Is(err, errNoSocket) {
			return nil, fmt.Errorf("the tmux server does not make its socket again: %w", sessions.ErrTerminalTimeout)
		}
	}
	if err == nil && t.needsExitReasons(list) {
		if list, err = t.awaitExitReasons(ctx); errors.Is(err, errServerLost) { // its last pane was just ended
			list, err = t.readListing(ctx)
		}
	}
	switch {
	case errors.Is(err, errNoServer), errors.Is(err, errNoSocket):
		return nil, nil
	case err != nil:
		return nil, err
	}
	t.deleteStaleBuffers(ctx, list.staleBuffers)
	return list.panes, nil
}

// listing is one answer of the server.
type listing struct {
	server       sessions.Server
	panes        []sessions.Pane
	index        map[string]int // in panes, by id
	last         int            // in panes: the one that was read last
	staleBuffers []string       // buffers of ours that nobody will use any more
}

// exitReasonTimeout is how long tmux may take to learn how a pane died: it notices the end of the output first, and 3.3a now and
// then misses the signal, so that the dead process stays a zombie until another child ends. Some never tell: 3.2 does not
// know signals, and a program can close its terminal and live on.
const exitReasonTimeout = 500 * time.Millisecond

// needsExitReasons reports a dead pane of which tmux does not know yet how it died, and which was not waited for before.
func (t *Tmux) needsExitReasons(l listing) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(l.panes, func(p sessions.Pane) bool { return isExitUnknown(p) && !t.unknownExits[p] })
}

func isExitUnknown(p sessions.Pane) bool { return p.Dead && p.ExitStatus < 0 && p.ExitSignal == "" }

// awaitExitReasons lists again until every death is explained, or for exitReasonTimeout, and does not wait for the same panes again. A
// child that ends at once makes the server look at all of them.
func (t *Tmux) awaitExitReasons(ctx context.Context) (listing, error) {
	over := time.Now().Add(exitReasonTimeout)
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if wait > 2*time.Millisecond {
			if _, err := t.run(ctx, call{args: []string{"run-shell", "-b", "true"}}); err != nil {
				return listing{}, err
			}
		}
		if err := sleep(ctx, wait); err != nil {
			return listing{}, err
		}
		l, err := t.readListing(ctx)
		if err != nil || !t.needsExitReasons(l) {
			return l, err
		}
		if time.Now().After(over) {
			t.ignoreUnknownExits(l)
			return l, nil
		}
	}
}

func (t *Tmux) ignoreUnknownExits(l listing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknownExits = map[sessions.Pane]bool{}
	for _, p := range l.panes {
		t.unknownExits[p] = isExitUnknown(p)
	}
}

func (t *Tmux) readListing(ctx context.Context) (listing, error) {
	secret := rand.Text()
	server, pane, buffer := listFormats(secret)
	out, err := t.run(ctx, call{args: []string{"display-message", "-p", server, ";", "list-panes", "-a", "-F", pane, ";",
		"list-buffers", "-f", "#{m:" + bufferPrefix + "*,#{buffer_name}}", "-F", buffer}})
	if err != nil {
		return listing{}, err
	}
	return parseListing(out, secret, time.Now())
}

func parseListing(out, secret string, now time.Time) (listing, error) {
	l, before := listing{index: map[string]int{}}, ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, ours := strings.Cut(line, secret+"\t")
		if !ours {
			kind = before // it goes on what the line before had as it is
		}
		var err error
		switch before = kind; {
		case !ours && kind == linePane:
			l.clearLastMark()
		case !ours && kind == lineBuffer:
		case kind == lineServer && ours:
			err = l.addServer(rest)
		case kind == linePane:
			err = l.addPane(rest)
		case kind == lineBuffer:
			l.addBuffer(rest, now)
		default:
			err = fmt.Errorf("tmux: cannot read the list at %q", line)
		}
		if err != nil {
			return listing{}, err
		}
	}
	return l, nil
}

func (l *listing) addServer(line string) (err error) {
	f := strings.Split(line, "\t")
	if len(f) != 3 {
		return fmt.Errorf("tmux: cannot read the server in %q", line)
	}
	l.server, err = parseServer(f[0], f[1], f[2])
	return err
}

// addPane takes a pane in, once, and leaves out marks that are none of ours.
func (l *listing) addPane(line string) error {
	f := strings.Split(line, "\t")
	if len(f) < 6 || l.server.PID == 0 {
		return fmt.Errorf("tmux: cannot read the pane in %q", line)
	}
	pane, err := parsePaneFields(f[0], f[1], f[2], f[3])
	if err != nil {
		return err
	}
	dead := append(strings.Split(f[4], " "), "", "")
	if err := parseExit(&pane, dead[0] == "1", dead[1], dead[2]); err != nil {
		return err
	}
	if pane.Server = l.server; len(f) == 7 && consistsOf(f[5], isMarkByte) && consistsOf(f[6], isNameByte) {
		pane.Mark, pane.Declared = f[5], f[6]
	}
	at, seen := l.index[pane.ID]
	switch {
	case !seen:
		at, l.index[pane.ID] = len(l.panes), len(l.panes)
		l.panes = append(l.panes, pane)
	case idNumber(pane.SessionID) < idNumber(l.panes[at].SessionID):
		l.panes[at] = pane
	}
	l.last = at
	return nil
}

// clearLastMark drops what the last pane says of itself: it holds a line feed.
func (l *listing) clearLastMark() { l.panes[l.last].Mark, l.panes[l.last].Declared = "", "" }

func (l *listing) addBuffer(line string, now time.Time) {
	if name, ok := parseStaleBuffer(line, now); ok {
		l.staleBuffers = append(l.staleBuffers, name)
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c == ' ' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func isMarkByte(c byte) bool { return c == '.' || c == '-' || c != ' ' && isNameByte(c) }

func consistsOf(s string, of func(byte) bool) bool {
	for i := range len(s) {
		if !of(s[i]) {
			return false
		}
	}
	return true
}

// idNumber is the number in a tmux id; ids are checked before.
func idNumber(id string) int {
	n, _ := strconv.Atoi(id[1:]) // checked by parsePane
	return n
}

// parsePane reads a line of paneFormat and takes nothing that does not look as it should.
func parsePane(line string) (sessions.Pane, error) {
	f := strings.Split(line, "\t")
	if len(f) != 13 || f[0] != "PANE" {
		return sessions.Pane{}, fmt.Errorf("tmux: cannot read the pane in %q", line)
	}
	p, err := parsePaneFields(f[1], f[2], f[3], f[5])
	if err != nil {
		return sessions.Pane{}, err
	}
	if p.Server, err = parseServer(f[9], f[10], f[11]); err != nil {
		return sessions.Pane{}, err
	}
	p.Mark, p.Declared = f[4], f[12]
	return p, parseExit(&p, f[6] == "1", f[7], f[8])
}

func parsePaneFields(id, session, name, pid string) (p sessions.Pane, err error) {
	if !isID(id, '%') || !isID(session, '$') || name == "" {
		return p, fmt.Errorf("tmux: cannot read the pane %q of %q (%q)", id, session, name)
	}
	p = sessions.Pane{ID: id, SessionID: session, SessionName: name}
	if p.PID, err = strconv.Atoi(pid); err != nil {
		return p, fmt.Errorf("tmux: cannot read the process of pane %s: %w", id, err)
	}
	return p, nil
}

func parseServer(pid, start, socket string) (s sessions.Server, err error) {
	var bad error
	s.Socket = socket
	s.PID, err = strconv.Atoi(pid)
	if s.Start, bad = strconv.ParseInt(start, 10, 64); err != nil || bad != nil {
		return s, fmt.Errorf("tmux: cannot read the server: %w", errors.Join(err, bad))
	}
	return s, nil
}

// parseExit takes how the process of a dead pane ended; -1: tmux does not say.
func parseExit(p *sessions.Pane, dead bool, status, signal string) (err error) {
	p.Dead, p.ExitSignal = dead, signal
	switch {
	case dead && status == "":
		p.ExitStatus = -1
	case dead:
		if p.ExitStatus, err = strconv.Atoi(status); err != nil {
			err = fmt.Errorf("tmux: cannot read how the process of pane %s ended: %w", p.ID, err)
		}
	}
	return err
}

// isID reports one of tmux's own ids: a sigil and a number.
func isID(s string, sigil byte) bool {
	if len(s) < 2 || s[0] != sigil {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 10, 31)
	return err == nil
}

// findLivePane is the one pane that carries the mark and is alive. [sessions.ErrPaneGone] and [sessions.ErrPaneDead].
func (t *Tmux) findLivePane(ctx context.Context, mark string) (sessions.Pane, error) {
	panes, err := t.Panes(ctx)
	if err != nil {
		return sessions.Pane{}, err
	}
	pane, err := findByMark(panes, mark)
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

// findByMark is the pane with the mark. Two of them mean that somebody set the option by hand: then neither is the one.
func findByMark(panes []sessions.Pane, mark string) (sessions.Pane, error) {
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

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	if !loop.Sleep(ctx, d) {
		return fmt.Errorf("%w: %w", sessions.ErrTerminalTimeout, ctx.Err())
	}
	return nil
}

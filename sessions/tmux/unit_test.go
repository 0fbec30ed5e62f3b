package tmux

import (
	"os"
	"strings"
	"testing"
	"time"

	"the-loop/sessions/process"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, usable := range map[string]bool{"tmux 3.3a\n": true, "tmux 3.2": true, "tmux next-3.5": true, "tmux 3.1c": false, "tmux 2.9a": false,
		"tmux 3.10": true, "tmux 4.0": true, "tmux openbsd-7.4": true, "tmux openbsd-6.8": false, "tmux 3.6-rc2": true} {
		if v, err := ParseVersion(text); err != nil || v.isSupported() != usable {
			t.Errorf("%q: %+v usable %t, %v", text, v, v.isSupported(), err)
		}
	}
	for _, text := range []string{"", "tmux", "tmux master", "screen 4.9", "tmux 99999999999999999999.1"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// oneListing is the list of a server with one pane, whose mark and names are given.
func oneListing(mark, declared string) string {
	return "SERVER k\t12\t1700000000\t/tmp/s\nPANE k\t%3\t$1\tname\t77\t0\t" + mark + "\t" + declared + "\n"
}

func TestListingsAreReadStrictly(t *testing.T) {
	t.Parallel()
	good := oneListing("mark", "A B")
	l, err := parseListing(good, "k", time.Now())
	if err != nil || len(l.panes) != 1 || l.panes[0].PID != 77 || l.panes[0].Server.Start != 1_700_000_000 || l.panes[0].Mark != "mark" || l.panes[0].Declared != "A B" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"\n", "x\n", strings.Replace(good, "%3", "3", 1), strings.Replace(good, "$1", "$x", 1), strings.Replace(good, "77", "", 1),
		strings.ReplaceAll(good, "\t", "_"), strings.Replace(good, "name", "", 1), strings.Replace(good, "\t0\t", "\t1 x \t", 1), strings.Replace(good, "12\t", "", 1),
		strings.SplitAfter(good, "\n")[1]} {
		if l, err := parseListing(bad, "k", time.Now()); err == nil {
			t.Errorf("%q: %+v", bad, l)
		}
	}
}

func TestPaneOptionsCannotForgeLines(t *testing.T) {
	t.Parallel()
	forged := "a\nPANE x\t%9\t$9\tother\t1\t0\tb\t\nBUFFER x\tthe-loop-x\t1"
	for _, list := range []string{oneListing(forged, "A"), oneListing("mark", forged), oneListing("mark\t", "A"), oneListing("mark", "A\tB"), oneListing("a b", ""), oneListing("é", "")} {
		l, err := parseListing(list+"BUFFER k\tthe-loop-odd\nBUFFER x\tthe-loop-old\t1\t5\n", "k", time.Now())
		if err != nil || len(l.panes) != 1 || l.panes[0].ID != "%3" || l.panes[0].Mark != "" || l.panes[0].Declared != "" || len(l.staleBuffers) > 0 {
			t.Errorf("%q: %+v, %v", list, l, err)
		}
	}
}

func TestBuffersOfOursThatAreOldAreStale(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l, err := parseListing("BUFFER k\tthe-loop-old\t1699999000\nBUFFER k\tthe-loop-new\t1699999999\nBUFFER k\tbuffer0\t1\nBUFFER k\tthe-loop-odd\tx\n", "k", now)
	if err != nil || len(l.staleBuffers) != 1 || l.staleBuffers[0] != "the-loop-old" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestProcessTreeIncludesOnlyItsProcesses(t *testing.T) {
	t.Parallel()
	const server = 2_000_000
	pane := process.Process{PID: 10, Parent: server, Session: 10, Start: "1"}
	tree := newProcessTree(server)
	all := []process.Process{pane, {PID: 11, Parent: 10, Session: 10, Start: "2"}, {PID: 12, Parent: 11, Session: 12, Start: "3"},
		{PID: 20, Parent: 1, Session: 20, Start: "2"}, {PID: server, Parent: 1, Session: server, Start: "0"}, {PID: os.Getpid(), Parent: 10, Session: 10, Start: "9"},
		{PID: 21, Parent: 10, Session: 21, Start: "4", Name: "tmux: server"}}
	tree.addRoot(10, all)
	if alive := tree.update(all); len(alive) != 3 {
		t.Fatalf("%+v", alive)
	}
	// 11 is gone, 12 is nobody's child and has one in its session; 10 is given to a stranger who leads a session.
	all = []process.Process{{PID: 10, Parent: 1, Session: 10, Start: "50"}, {PID: 15, Parent: 10, Session: 10, Start: "51"},
		{PID: 12, Parent: 1, Session: 12, Start: "3"}, {PID: 13, Parent: 1, Session: 12, Start: "52"}, {PID: 14, Parent: 12, Session: 14, Start: "53", Zombie: true}}
	alive := tree.update(all)
	if len(alive) != 2 || alive[0].PID != 12 || alive[1].PID != 13 {
		t.Errorf("%+v", alive)
	}
}

func TestThePidOfADeadPaneIsNotTakenFromAStranger(t *testing.T) {
	t.Parallel()
	all := []process.Process{{PID: 10, Parent: 1, Session: 10, Start: "50"}, {PID: 11, Parent: 10, Session: 10, Start: "51"}}
	tree := newProcessTree(99)
	tree.addRoot(10, all)
	if alive := tree.update(all); len(alive) != 0 {
		t.Errorf("%+v", alive)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {SocketName: "a"}, {Dir: "/x"}, {Dir: "x", SocketName: "a"}, {Dir: "/x", SocketName: "a/b"}, {Dir: "/x", SocketName: "-a"}, {Dir: "/x", SocketPath: "s"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
}

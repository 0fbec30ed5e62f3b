package tmux

import (
	"os"
	"strings"
	"testing"
	"time"
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
	pane := process{pid: 10, parent: server, session: 10, start: "1"}
	tree := newProcessTree(server)
	all := []process{pane, {pid: 11, parent: 10, session: 10, start: "2"}, {pid: 12, parent: 11, session: 12, start: "3"},
		{pid: 20, parent: 1, session: 20, start: "2"}, {pid: server, parent: 1, session: server, start: "0"}, {pid: os.Getpid(), parent: 10, session: 10, start: "9"},
		{pid: 21, parent: 10, session: 21, start: "4", isTmuxServer: true}}
	tree.addRoot(10, all)
	if alive := tree.update(all); len(alive) != 3 {
		t.Fatalf("%+v", alive)
	}
	// 11 is gone, 12 is nobody's child and has one in its session; 10 is given to a stranger who leads a session.
	all = []process{{pid: 10, parent: 1, session: 10, start: "50"}, {pid: 15, parent: 10, session: 10, start: "51"},
		{pid: 12, parent: 1, session: 12, start: "3"}, {pid: 13, parent: 1, session: 12, start: "52"}, {pid: 14, parent: 12, session: 14, start: "53", isZombie: true}}
	alive := tree.update(all)
	if len(alive) != 2 || alive[0].pid != 12 || alive[1].pid != 13 {
		t.Errorf("%+v", alive)
	}
}

func TestThePidOfADeadPaneIsNotTakenFromAStranger(t *testing.T) {
	t.Parallel()
	all := []process{{pid: 10, parent: 1, session: 10, start: "50"}, {pid: 11, parent: 10, session: 10, start: "51"}}
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

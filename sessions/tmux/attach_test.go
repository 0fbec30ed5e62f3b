package tmux_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// attachObserver attaches a person's terminal of 80×24 (a pane of another tmux) to the pane's session and returns the client.
func attachObserver(t testing.TB, f *tmuxEnv, p sessions.Pane, readOnly bool) string {
	t.Helper()
	runInOtherServer(t, f.AttachCommand(p, readOnly, false))
	var client string
	tmuxtest.Await(t, "the client", func() bool {
		client = f.tmux("list-clients", "-F", "#{client_name}", "-t", p.SessionID)
		return client != ""
	})
	return client
}

// runInOtherServer runs a program in a pane of another tmux server.
func runInOtherServer(t testing.TB, argv []string) *tmuxEnv {
	t.Helper()
	other := newEnv(t)
	s := sessions.Spawn{Name: "person", Mark: "person", Cwd: other.dir, Argv: argv, Width: 80, Height: 24, RemainOnExit: true}
	if _, err := other.Spawn(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return other
}

// tmux ≥ 3.7 refuses send-keys beside a read-only client; a paste needs none.
func TestAReadOnlyObserverChangesNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	client := attachObserver(t, f, pane, true)
	if flags := f.tmux("list-clients", "-F", "#{client_readonly}"); flags != "1" {
		t.Errorf("the client %s is not read-only", client)
	}
	if err := f.deliver(pane, "x"); err != nil {
		t.Fatal(err)
	}
	if err := f.Press(t.Context(), pane.Target(), "\x1b"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("x")+"\x1b")
}

// imbue-ai/mngr#2516: a stray small client shrinks the panes.
func TestASmallClientDoesNotShrinkThePane(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	attachObserver(t, f, pane, false)
	if size := f.tmux("display-message", "-p", "-t", pane.ID, "#{pane_width}x#{pane_height}"); size != "200x50" {
		t.Errorf("the pane is %s now", size)
	}
}

func TestAttachingWithinOurServerSwitchesTheClient(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	home, away := f.spawn("home"), f.spawn("away")
	attachObserver(t, f, home, false)
	inside, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(f.dir), Dir: f.dir, Environ: []string{"TMUX=" + tmuxtest.Socket(f.dir) + ",1,0"}})
	if err != nil {
		t.Fatal(err)
	}
	argv := inside.AttachCommand(away, true, true)
	f.tmux(append([]string{"split-window", "-d", "-t", home.ID}, argv...)...)
	tmuxtest.Await(t, "the switch", func() bool {
		return f.tmux("list-clients", "-F", "#{client_session} #{client_readonly}") == "away 1"
	})
}

func TestAttachingFromAnotherServerNests(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	argv := f.AttachCommand(pane, false, true)
	runInOtherServer(t, argv) // a pane of another server, with TMUX set
	tmuxtest.Await(t, "the client", func() bool { return f.tmux("list-clients", "-F", "#{client_session}") == "a" })
}

func TestAttachNamesTheSocketAndTheSessionById(t *testing.T) {
	t.Parallel()
	tm, err := tmux.New(tmux.Options{SocketName: "the-loop", Dir: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	p := sessions.Pane{SessionID: "$3", SessionName: "a", Server: sessions.Server{Socket: "/tmp/tmux-0/the-loop"}}
	want := strings.Fields("tmux -u -S /tmp/tmux-0/the-loop -N attach-session -r -t $3")
	if got := tm.AttachCommand(p, true, false); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	want = strings.Fields("tmux -u -L the-loop -N attach-session -t =a")
	if got := tm.AttachCommand(sessions.Pane{SessionName: "a"}, false, false); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := exec.LookPath(want[0]); err != nil {
		t.Error(err)
	}
}

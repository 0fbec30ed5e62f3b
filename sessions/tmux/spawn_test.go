package tmux_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// spawnAndDump is a spawn whose program writes its environment and arguments to a file, NUL-terminated.
func (f *tmuxEnv) spawnAndDump(name string, env map[string]string, args ...string) (environ, argv []string) {
	f.t.Helper()
	out := filepath.Join(f.dir, name)
	s := sessions.Spawn{Name: name, Mark: "id-" + name, Cwd: f.dir, Env: env, RemainOnExit: true,
		Argv: append([]string{"/bin/sh", "-c",
			`{ cat /proc/$$/environ; printf 'END\0'; cat /proc/$$/cmdline; } > "$0~"; mv "$0~" "$0"; read wait`, out}, args...)}
	if _, err := f.Spawn(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
	text := tmuxtest.AwaitFile(f.t, out, func(s string) bool { return s != "" })
	before, after, _ := strings.Cut(text, "END\x00")
	return strings.Split(strings.TrimSuffix(before, "\x00"), "\x00"), strings.Split(strings.TrimSuffix(after, "\x00"), "\x00")[4:]
}

func environValue(environ []string, name string) string {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

var hostileValues = []string{"", " ", "two words", "a\nb\n", "\r\n", `"`, `'`, `\`, `\"`, "$HOME", "${HOME}", "$(id)", "`id`", "#{pid}", "#(id)", "##", "#[x",
	";", "a;", `a\;`, "a ; b", "{", "}", "{ kill-server }", "~", "~/x", "%1", "%if", "-x", "--", "=", "a=b", "\t", "\x01\x1b[201~\x7f",
	"\xff\xfe", "caf\u00e9 日本", "\\043", "!!", "&&", "|", ">x", "*"}

func TestValuesAndArgumentsArriveExactly(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	long := strings.Repeat("\xff\"\\$#", 20_000)
	env := map[string]string{"LONG": long}
	for i, v := range hostileValues {
		env[fmt.Sprint("V", i)] = v
	}
	args := append([]string{long, strings.Repeat("p", 40_000)}, hostileValues...)
	environ, argv := f.spawnAndDump("a", env, args...)
	for name, want := range env {
		if got := environValue(environ, name); got != want {
			t.Errorf("%s is %.80q, want %.80q", name, got, want)
		}
	}
	for i, want := range args {
		if i >= len(argv) || argv[i] != want {
			t.Fatalf("argument %d of %d, want %.80q", i, len(argv), want)
		}
	}
}

func TestAnyValueArrivesExactly(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	n := 0
	piece := rapid.OneOf(rapid.SampledFrom(hostileValues), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 50), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(piece, 1, 6), func(p []string) string {
			return strings.ReplaceAll(strings.Join(p, ""), "\x00", "")
		}), 1, 20).Draw(rt, "values")
		env := map[string]string{}
		for i, v := range values {
			env[fmt.Sprint("V", i)] = v
		}
		n++
		name := fmt.Sprint("s", n)
		environ, argv := f.spawnAndDump(name, env, values...)
		for i, v := range values {
			if got := environValue(environ, fmt.Sprint("V", i)); got != v || argv[i] != v {
				rt.Fatalf("value %q came as %q, argument as %q", v, got, argv[i])
			}
		}
		if err := f.End(t.Context(), sessions.Target{Mark: "id-" + name}, 0); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestNoValueShowsInAnyArgvNorInTmuxsMessages(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	const secret = "hunter2-aSecretThatNobodySees"
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
			if err != nil {
				t.Error(err)
			}
			for _, path := range lines {
				if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(secret)) {
					t.Errorf("%s: %q", path, line)
				}
			}
		}
	})
	for i := range 10 {
		s := f.spawnRequest(fmt.Sprint("a", i))
		s.Env = map[string]string{"TOKEN": secret, "PATH": os.Getenv("PATH"), "SHELL": "/bin/sh"}
		if _, err := f.Spawn(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		f.awaitReady(s.Name)
	}
	close(stop)
	wg.Wait()
	// An operator's client, so that show-messages has somebody to speak for.
	observer := attachObserver(t, f, tmuxtest.FindPane(t, f.Tmux, "id-a0"), true)
	if log := f.tmux("show-messages", "-t", observer); strings.Contains(log, secret) {
		t.Errorf("show-messages: %s", log)
	}
}

func TestTheServerHasACleanEnvironment(t *testing.T) {
	t.Parallel()
	base := []string{"HOME=/root", "PATH=" + os.Getenv("PATH"), "USER=u", "LC_TIME=C", "XDG_DATA_HOME=/x", "TZ=UTC", "HTTP_PROXY=p", "https_proxy=q",
		"Http_Proxy=no", "THE_LOOP_SLACK_BOT_TOKEN=xoxb-1", "TMUX=/x,1,1", "TMUX_PANE=%1", "LC_ALL=C", "SSH_AUTH_SOCK=/s", "EDITOR=vi"}
	f := newEnvWith(t, tmux.Options{Environ: base})
	environ, _ := f.spawnAndDump("a", map[string]string{"OWN": "1"})
	for name, want := range map[string]string{"USER": "u", "TZ": "UTC", "HTTP_PROXY": "p", "https_proxy": "q", "SSH_AUTH_SOCK": "/s", "OWN": "1",
		"XDG_DATA_HOME": "/x", "LC_CTYPE": "C.UTF-8", "LC_ALL": "", "THE_LOOP_SLACK_BOT_TOKEN": "", "Http_Proxy": "", "EDITOR": "", "PWD": f.dir} {
		if got := environValue(environ, name); got != want {
			t.Errorf("in the pane %s is %q, want %q", name, got, want)
		}
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", tmuxtest.FindPane(t, f.Tmux, "id-a").Server.PID))
	if err != nil || bytes.Contains(line, []byte("xoxb")) || bytes.Contains(line, []byte("OWN=")) {
		t.Errorf("the server's environment: %q, %v", line, err)
	}
}

func TestPathAndShellGoInThroughEnv(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	bin := filepath.Join(f.dir, "bin dir")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	program := "#!/bin/sh\necho \"$PATH|$SHELL|$#|$1\" > " + f.dir + "/out~; mv " + f.dir + "/out~ " + f.dir + "/out; read x\n"
	if err := os.WriteFile(filepath.Join(bin, "my tool"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	path := bin + ":/usr/bin:/bin"
	s := sessions.Spawn{Name: "a", Mark: "a", Cwd: f.dir, Argv: []string{"my tool"}, Env: map[string]string{"PATH": path, "SHELL": "/bin/false"}}
	if _, err := f.Spawn(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := tmuxtest.AwaitFile(t, f.dir+"/out", func(s string) bool { return s != "" }); got != path+"|/bin/false|0|\n" {
		t.Errorf("%q", got)
	}
}

// drn/argus#613: the agent's binary is not on a service's PATH.
func TestInvalidSpawnIsRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	var noBinary *tmux.BinaryNotFoundError
	var reserved *tmux.ReservedError
	big := strings.Repeat("x", 131_072)
	for what, c := range map[string]struct {
		change func(*sessions.Spawn)
		is     func(error) bool
	}{
		"no such program":  {func(s *sessions.Spawn) { s.Argv[0] = "no-such-agent" }, func(err error) bool { return errors.As(err, &noBinary) }},
		"not on its PATH":  {func(s *sessions.Spawn) { s.Argv[0] = "sh"; s.Env = map[string]string{"PATH": "/nowhere"} }, func(err error) bool { return errors.As(err, &noBinary) }},
		"a folder":         {func(s *sessions.Spawn) { s.Argv[0] = "/tmp" }, func(err error) bool { return errors.As(err, &noBinary) }},
		"TERM":             {func(s *sessions.Spawn) { s.Env = map[string]string{"TERM": "x"} }, func(err error) bool { return errors.As(err, &reserved) }},
		"TMUX_PANE":        {func(s *sessions.Spawn) { s.Env = map[string]string{"TMUX_PANE": "x"} }, func(err error) bool { return errors.As(err, &reserved) }},
		"no folder":        {func(s *sessions.Spawn) { s.Cwd = "/no/such" }, func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
		"a file as folder": {func(s *sessions.Spawn) { s.Cwd = os.Args[0] }, func(err error) bool { return err != nil }},
		"a long argument":  {func(s *sessions.Spawn) { s.Argv = append(s.Argv, big) }, func(err error) bool { return errors.Is(err, tmux.ErrTooLong) }},
		"a name with a :":  {func(s *sessions.Spawn) { s.Name = "a:b" }, func(err error) bool { return err != nil }},
		"a mark with }":    {func(s *sessions.Spawn) { s.Mark = "a}b" }, func(err error) bool { return err != nil }},
		"no program":       {func(s *sessions.Spawn) { s.Argv = nil }, func(err error) bool { return err != nil }},
		"NUL":              {func(s *sessions.Spawn) { s.Env = map[string]string{"A": "a\x00b"} }, func(err error) bool { return err != nil }},
	} {
		s := f.spawnRequest("a")
		c.change(&s)
		if _, err := f.Spawn(t.Context(), s); !c.is(err) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if panes, err := f.Panes(t.Context()); err != nil || len(panes) != 0 {
		t.Errorf("%v, %v", panes, err)
	}
}

func TestTakenNameIsRefusedAndItsPaneKeepsItsMark(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	first := f.spawn("a")
	s := f.spawnRequest("a")
	s.Mark = "id-second"
	if _, err := f.Spawn(t.Context(), s); !errors.Is(err, sessions.ErrNameTaken) {
		t.Errorf("%v", err)
	}
	panes, err := f.Panes(t.Context())
	if err != nil || len(panes) != 1 || panes[0].Mark != first.Mark {
		t.Errorf("%+v, %v", panes, err)
	}
}

func TestFoldersWithOddNames(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	for i, name := range []string{"a#{pid}b", "w #[x", "p##q", "%H", "~", "$HOME", "a;", "é\xff", "a\nb", "-x", "#(touch x)"} {
		dir := filepath.Join(f.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s := f.spawnRequest(fmt.Sprint("s", i))
		s.Cwd = dir
		p, err := f.Spawn(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		f.awaitReady(s.Name) // before, the process may be tmux still
		if got, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID)); err != nil || got != dir {
			t.Errorf("%q: it runs in %q, %v", dir, got, err)
		}
	}
}

func TestSpawnReturnsThePane(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	s := f.spawnRequest("a")
	s.Width, s.Height = 100, 30
	p, err := f.Spawn(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if p.SessionName != "a" || p.Mark != "id-a" || p.PID == 0 || p.Dead || p.Server.PID == 0 || p.Server.Start == 0 || p.Server.Socket != tmuxtest.Socket(f.dir) {
		t.Errorf("%+v", p)
	}
	if got := f.tmux("display-message", "-p", "-t", p.ID, "#{pane_width}x#{pane_height} #{pane_in_mode} #{remain-on-exit} #{exit-empty} #{message-limit}"); got != "100x30 0 on 1 0" {
		t.Errorf("the pane is %s", got)
	}
	if got := tmuxtest.FindPane(t, f.Tmux, "id-a"); got != p {
		t.Errorf("Panes says %+v, Spawn said %+v", got, p)
	}
	if f.awaitReady("a"); f.pid("a", "main") != p.PID {
		t.Error("the pane's process is not the agent")
	}
	if info, err := os.Stat(filepath.Join(f.dir, "c")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWithoutRemainOnExitThePaneGoesWithItsProgram(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	f.spawn("stay")
	s := f.spawnRequest("a")
	s.RemainOnExit, s.Argv = false, []string{"true"}
	if _, err := f.Spawn(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the end of the pane", func() bool {
		panes, err := f.Panes(t.Context())
		return err == nil && len(panes) == 1
	})
}

func TestAnExitStatusIsReadAgainUntilItIsThere(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	f.spawn("stay")
	for i := range 10 {
		s := f.spawnRequest(fmt.Sprint("a", i))
		s.Argv = []string{"sh", "-c", "exit 7"}
		p, err := f.Spawn(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		tmuxtest.Await(t, "its death", func() bool { p = tmuxtest.FindPane(t, f.Tmux, p.Mark); return p.Dead })
		if p.ExitStatus != 7 || p.ExitSignal != "" {
			t.Errorf("dead with %+v", p)
		}
	}
}

// The server goes with its last pane, and the next spawn comes while it does.
func TestAServerThatIsJustGoingDownIsReplaced(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	for i := range 20 {
		p, err := f.Spawn(t.Context(), f.spawnRequest("a"))
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		f.awaitReady("a")
		if err := exec.CommandContext(t.Context(), "tmux", "-N", "-S", p.Server.Socket, "kill-server").Run(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(f.dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoSpawnsStartOneServer(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	var wg sync.WaitGroup
	for i := range 8 {
		s := f.spawnRequest(fmt.Sprint("a", i))
		wg.Go(func() {
			if _, err := f.Spawn(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	panes, err := f.Panes(t.Context())
	if err != nil || len(panes) != 8 {
		t.Fatalf("%v, %v", panes, err)
	}
	for _, p := range panes {
		if p.Server != panes[0].Server {
			t.Errorf("two servers: %+v and %+v", p.Server, panes[0].Server)
		}
	}
}

// imbue-ai/mngr#1154: base-index of the user's configuration breaks targets; destroy-unattached ends detached sessions.
func TestTheUsersConfigurationIsNotRead(t *testing.T) {
	t.Parallel()
	home := tmuxtest.Dir(t)
	conf := "set -g base-index 1\nset -g destroy-unattached on\nset -g window-size manual\nnonsense\n"
	if err := os.WriteFile(filepath.Join(home, ".tmux.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newEnvWith(t, tmux.Options{Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}})
	pane := f.spawn("a")
	if got := f.tmux("display-message", "-p", "-t", pane.ID, "#{window_index} #{pane_in_mode} #{destroy-unattached}"); got != "0 0 0" {
		t.Errorf("%q", got)
	}
}

// gastownhall/gascity#1174: what reaches our process group must not reach the server.
func TestTheServerIsASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	server := f.spawn("a").Server.PID
	if id, err := unix.Getsid(server); err != nil || id != server {
		t.Errorf("the server %d is in session %d, %v", server, id, err)
	}
}

func TestReservedNamesAreThoseThatTmuxOverrides(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	f.spawn("a")
	names := []string{"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD", "TMUX", "TMUX_PANE"}
	args := []string{"new-session", "-d", "-s", "x"}
	for _, name := range names {
		args = append(args, "-e", name+"=mine")
	}
	out := filepath.Join(f.dir, "env")
	f.tmux(append(args, "sh", "-c", "env > "+out+"~; mv "+out+"~ "+out)...)
	environ := strings.Split(tmuxtest.AwaitFile(t, out, func(s string) bool { return s != "" }), "\n")
	for _, name := range names {
		if got := environValue(environ, name); got == "mine" || got == "" || !tmux.IsReserved(name) {
			t.Errorf("%s is %q", name, got)
		}
	}
}

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// childEnv makes the test binary a process that says it is there and waits for its standard input to end.
const childEnv = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Println("here")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// start starts a process with exactly that environment.
func start(t testing.TB, environ ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "not=an", "ENVIRONMENT=variable")
	cmd.Env = append(environ, childEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // our own leader may be outside of what a container shows: then it is 0
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// eachReader runs a test on both ways to read processes.
func eachReader(t *testing.T, test func(t *testing.T, r Reader)) {
	for name, r := range map[string]Reader{"proc": System(), "ps": WithoutProc()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("ps"); name == "ps" && err != nil {
				t.Skip("no ps")
			}
			if name == "proc" && !r.hasProc() {
				t.Skip("no /proc")
			}
			test(t, r)
		})
	}
}

func TestAChildIsListedWithItsParentAndStart(t *testing.T) {
	t.Parallel()
	eachReader(t, func(t *testing.T, r Reader) {
		pid := start(t).Process.Pid
		all, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		listed, there := find(all, pid)
		if !there || listed.Parent != os.Getpid() || listed.Start == "" || listed.Zombie {
			t.Errorf("%+v, %v", listed, there)
		}
		if _, there := find(all, os.Getpid()); !there {
			t.Error("we are not listed")
		}
		finder, err := r.Finder(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found, there := finder(pid); !there || found != listed {
			t.Errorf("found %+v, listed %+v", found, listed)
		}
		if _, there := finder(1 << 30); there {
			t.Error("a process was found that there is not")
		}
		if r.hasProc() && (listed.Name == "" || listed.Session != pid) {
			t.Errorf("%+v has no name, or is not the leader of its session", listed)
		}
	})
}

func TestAZombieDoesNotRun(t *testing.T) {
	t.Parallel()
	eachReader(t, func(t *testing.T, r Reader) {
		cmd := start(t)
		pid := cmd.Process.Pid
		if !r.IsRunning(t.Context(), pid) {
			t.Error("a running process does not run")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return !r.IsRunning(t.Context(), pid) })
		if p, there, err := r.read(t.Context(), pid); err != nil || !there || !p.Zombie {
			t.Errorf("%+v, %v, %v; want a zombie", p, there, err)
		}
		_ = cmd.Wait()
		for _, pid := range []int{pid, 0, -1, 1 << 30} {
			if r.IsRunning(t.Context(), pid) {
				t.Errorf("%d runs", pid)
			}
		}
	})
}

func TestASignalGoesToThatProcessAlone(t *testing.T) {
	t.Parallel()
	eachReader(t, func(t *testing.T, r Reader) {
		cmd := start(t)
		p, there, err := r.read(t.Context(), cmd.Process.Pid)
		if err != nil || !there {
			t.Fatal(there, err)
		}
		earlier := p
		earlier.Start = "another"
		if err := r.Signal(t.Context(), earlier, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if !r.IsRunning(t.Context(), p.PID) {
			t.Error("a later process with the same pid was killed")
		}
		if err := r.Signal(t.Context(), p, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if r.IsRunning(t.Context(), p.PID) {
			t.Error("it runs on")
		}
		if err := r.Signal(t.Context(), p, syscall.SIGKILL); err != nil {
			t.Errorf("of one that is gone: %v", err)
		}
	})
}

func TestTheEnvironmentOfAnotherProcessIsRead(t *testing.T) {
	t.Parallel()
	eachReader(t, func(t *testing.T, r Reader) {
		want := map[string]string{"KEY": "two words", "OTHER": "x=y", "EMPTY": "", childEnv: "1"}
		environ := []string{"KEY=two words", "OTHER=x=y", "EMPTY="}
		if r.hasProc() { // ps separates nothing
			want["MULTI"] = "line\nline = A=1"
			environ = append(environ, "MULTI="+want["MULTI"])
		}
		got, known := r.Environ(t.Context(), start(t, environ...).Process.Pid)
		if diff := cmp.Diff(want, got); diff != "" || !known {
			t.Error(known, diff)
		}
	})
}

func TestOurOwnEnvironmentIsRead(t *testing.T) {
	t.Parallel()
	got, ok := System().Environ(t.Context(), os.Getpid())
	if want, set := os.LookupEnv("PATH"); !ok || set && got["PATH"] != want {
		t.Errorf("known %v, PATH %q, want %q", ok, got["PATH"], want)
	}
}

func TestAnEnvironmentThatCannotBeReadIsNotKnown(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	gone := ended.Process.Pid
	type environ = map[string]string
	for name, read := range map[string]func() (environ, bool){
		"ended process":     func() (environ, bool) { return System().Environ(t.Context(), gone) },
		"no such pid":       func() (environ, bool) { return System().Environ(t.Context(), 1<<30) },
		"pid zero":          func() (environ, bool) { return System().Environ(t.Context(), 0) },
		"negative pid":      func() (environ, bool) { return System().Environ(t.Context(), -1) },
		"context has ended": func() (environ, bool) { return System().Environ(done, os.Getpid()) },
		"neither proc nor ps": func() (environ, bool) {
			return Reader{proc: t.TempDir(), ps: "/no/such/ps"}.Environ(t.Context(), os.Getpid())
		},
		"ps knows no such process": func() (environ, bool) { return WithoutProc().Environ(t.Context(), gone) },
		"not readable": func() (environ, bool) {
			return Reader{proc: unreadableProc(t), ps: "/no/such/ps"}.Environ(t.Context(), 7)
		},
		"ps printed no variable": func() (environ, bool) { return parsePS("words A=1") },
	} {
		if values, known := read(); known || len(values) > 0 {
			t.Errorf("%s: known, %v", name, values)
		}
	}
}

func TestAnEnvironmentThatWasWrittenOverIsNotWhole(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"nothing, as of a zombie": "",
		"overwritten by a title":  "tool: working\x00\x00\x00A=1\x00",
		"padded with NULs":        "A=1\x00\x00\x00",
		"cut short":               "A=1\x00B=2",
	} {
		if env, whole := parseEnviron([]byte(data)); whole || data != "" && env["A"] != "1" {
			t.Errorf("%s: whole %v, %v", name, whole, env)
		}
	}
	env, whole := parseEnviron([]byte("A=1\x00B=2\x00A=3\x00"))
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "2"}, env); diff != "" || !whole { // getenv returns the first
		t.Error(whole, diff)
	}
}

// unreadableProc is a folder in which the environ of process 7 cannot be read.
func unreadableProc(t *testing.T) string {
	t.Helper()
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "7", "environ"), 0o700); err != nil {
		t.Fatal(err)
	}
	return proc
}

func TestProcessesAreFoundByAVariable(t *testing.T) {
	t.Parallel()
	mark := "mark-" + strconv.Itoa(os.Getpid())
	pid := start(t, "MARK="+mark+"-1", "A=b").Process.Pid
	start(t, "OTHER_MARK="+mark)
	found, known := System().WithVariable("MARK", mark)
	if !System().hasProc() {
		t.Skip("no /proc")
	}
	if len(found) != 1 || !known || found[0].PID != pid || found[0].Env["A"] != "b" {
		t.Errorf("%+v, %v", found, known)
	}
	if found, known := WithoutProc().WithVariable("MARK", mark); known || len(found) > 0 {
		t.Errorf("without /proc: %+v, %v", found, known)
	}
}

func TestWhatAProcessRuns(t *testing.T) {
	t.Parallel()
	if !System().hasProc() {
		t.Skip("no /proc")
	}
	pid := start(t).Process.Pid
	if argv := System().Argv(pid); !slices.Equal(argv, []string{os.Args[0], "not=an", "ENVIRONMENT=variable"}) {
		t.Errorf("argv %q", argv)
	}
	program, err := os.Executable()
	if real := System().Executable(pid); err != nil || real != program {
		t.Errorf("runs %q, want %q (%v)", real, program, err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if open := System().OpenFiles(os.Getpid()); !slices.Contains(open, file.Name()) {
		t.Errorf("open %q, want %q among them", open, file.Name())
	}
	for name, r := range map[string]Reader{"ended": System(), "no /proc": WithoutProc()} {
		if r.Argv(1<<30) != nil || r.Executable(1<<30) != "" || r.OpenFiles(1<<30) != nil {
			t.Errorf("%s: something is known", name)
		}
	}
}

// until polls until ok, and fails the test after ten seconds.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatal("waited in vain")
		case <-time.After(time.Millisecond):
		}
	}
}

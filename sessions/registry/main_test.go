package registry

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"the-loop/sessions"
)

// childRoleEnv makes the test binary run one of the roles below on the root in its argument.
const childRoleEnv = "REGISTRY_TEST_CHILD"

const (
	roleHold  = "hold"  // takes the lock "key" and waits
	roleBot   = "bot"   // takes the bot's lock, says so in bot.json, and waits
	roleSave  = "save"  // saves records without end
	roleCount = "count" // adds one to a file, often, under the lock
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRoleEnv); role != "" {
		if err := runChild(role, os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func runChild(role, root string) error {
	ctx := context.Background()
	r := New(root)
	switch role {
	case roleHold:
		release, err := r.Lock(ctx, "key", "start")
		if err != nil {
			return err
		}
		defer release()
	case roleBot:
		started := time.Now()
		release, err := r.AcquireBot(ctx, BotInfo{Started: started, App: "A1"})
		if err != nil {
			return err
		}
		defer release()
		if err := r.WriteBot(BotState{PID: os.Getpid(), Started: started, App: "A1", Connections: 1}); err != nil {
			return err
		}
	case roleSave:
		fmt.Println("ready")
		for i := 0; ; i++ {
			if err := r.Save(ctx, bigRecord(i)); err != nil {
				return err
			}
		}
	case roleCount:
		for range additionsPerChild {
			if err := addOne(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// additionsPerChild is how often each counter adds one.
const additionsPerChild = 50

func counterFile(root string) string { return filepath.Join(root, "counter") }

// addOne loses an addition when two do it at once.
func addOne(ctx context.Context, r *Registry) error {
	release, err := r.Lock(ctx, "counter", "count")
	if err != nil {
		return err
	}
	defer release()
	data, err := os.ReadFile(counterFile(r.root))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return err
	}
	return os.WriteFile(counterFile(r.root), []byte(strconv.Itoa(n+1)), 0o600)
}

// bigRecord differs from its neighbours all over, so that a mixture of two shows.
func bigRecord(i int) sessions.Record {
	rec := validRecord("crash")
	fill := strconv.Itoa(i % 10)
	rec.Conversation = fill
	rec.Definition.Prompt = strings.Repeat(fill, 30_000+i%10)
	return rec
}

type childProcess struct {
	*exec.Cmd
	in io.WriteCloser
}

// startChild starts a child in a role; with a role that waits it returns when the child is ready.
func startChild(t testing.TB, role, root string) *childProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], root)
	cmd.Env = append(os.Environ(), childRoleEnv+"="+role)
	cmd.Stderr = os.Stderr
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
	p := &childProcess{Cmd: cmd, in: in}
	t.Cleanup(func() { p.kill() })
	if role != roleCount {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "ready\n" {
			t.Fatalf("the child said %q (%v)", line, err)
		}
	}
	return p
}

// kill ends the child by SIGKILL, in the middle of whatever it does.
func (p *childProcess) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// finish lets the child go on to its end.
func (p *childProcess) finish(t *testing.T) {
	t.Helper()
	_ = p.in.Close()
	if err := p.Wait(); err != nil {
		t.Errorf("the child failed: %v", err)
	}
}

// validRecord is one that can be saved.
func validRecord(name string) sessions.Record {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	return sessions.Record{
		Version: sessions.RecordVersion,
		ID:      "0b0e1a3c-90e4-4f3c-9d0c-" + fmt.Sprintf("%012x", len(name)),
		Ref:     sessions.StandingRef(name),
		Definition: sessions.Definition{
			Name: name, Source: sessions.SourceCreated, Harness: "claude", HarnessArgs: []string{"--a", "<b>&"},
			Cwd: "/srv/" + name, Prompt: "do \"this\"\nüñí", AutoStart: true,
			Chat: sessions.ChatDefinition{Enabled: true, Channel: "C1"},
		},
		Conversation: "c-1",
		Status:       sessions.StatusRunning,
		Server:       sessions.Server{Socket: "/tmp/s", PID: 7, Start: 1234567890},
		Pane:         "%3", TmuxSession: "$1", Created: at, Changed: at.Add(time.Hour),
	}
}

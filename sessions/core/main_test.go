package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// What makes the test binary another program.
const (
	runAsAgent  = "SESSIONS_TEST_AGENT"  // the agent in a pane
	runAsSecond = "SESSIONS_TEST_SECOND" // a second process on the same state, which starts a session: the JSON of a second
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(runAsAgent) != "":
		os.Exit(smallagent.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	case os.Getenv(runAsDeliverer) != "":
		os.Exit(runDeliverer(os.Getenv(runAsDeliverer)))
	case os.Getenv(runAsSecond) != "":
		os.Exit(runSecond(os.Getenv(runAsSecond)))
	}
	goleak.VerifyTestMain(m)
}

// secondArgs is what the second process works on.
type secondArgs struct {
	Dir        string
	Definition sessions.Definition
	Env        string // path of the env file; the session is rolled onto it instead of started
}

func runSecond(order string) int {
	var s secondArgs
	if err := json.Unmarshal([]byte(order), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	core, err := secondCore(s.Dir, core.Config{Enabled: true, Declared: []sessions.Definition{s.Definition}, RemainOnExit: s.Env == "",
		Resume: true, KillGrace: time.Second, Probe: 100 * time.Millisecond, Env: envFileAt(s.Env)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if s.Env != "" {
		rolled, err := core.RollingRestart(context.Background(), sessions.RollingRestartRequest{All: true})
		fmt.Println(rolled, err)
		return 0
	}
	row, err := core.Start(context.Background(), sessions.StartRequest{Ref: sessions.StandingRef(s.Definition.Name)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(row.Outcome, row.ID)
	return 0
}

// secondCore is a core over the state of an environment in dir, in a process of its own.
func secondCore(dir string, cfg core.Config) (*core.Core, error) {
	tm, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(dir), Dir: dir + "/c"})
	if err != nil {
		return nil, err
	}
	return core.New(core.Options{Terminal: tm, Store: registry.New(dir + "/state"), Sink: &eventlogtest.Recorder{},
		Harnesses: harness.NewSet(newSmallAgent(dir)).Get, Config: func() core.Config { return cfg }}), nil
}

// newSmallAgent is the small agent with its conversations below dir.
func newSmallAgent(dir string) smallagent.Harness {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return smallagent.Harness{Argv: []string{self}, Dir: dir + "/agent", Env: map[string]string{runAsAgent: "1"}}
}

package envstate

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary a process that says it is there and waits for its standard input to end.
const childEnv = "ENVSTATE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Println("here")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child starts a process with exactly that environment and returns its pid.
func child(t testing.TB, environ ...string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "not=an", "ENVIRONMENT=variable")
	cmd.Env = append(environ, childEnv+"=1")
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
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

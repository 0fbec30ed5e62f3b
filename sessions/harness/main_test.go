package harness

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// hookRole makes the test binary the program that agents' hooks call.
const hookRole = "report-hook"

// TestMain is the tests, or that program.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == hookRole {
		_ = RunHook(os.Args[2], os.Stdin, time.Now())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

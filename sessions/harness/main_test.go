package harness

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// hookRole makes the test binary the program that agents' hooks call.
const hookRole = "report-hook"

// TestMain is the tests, or that program.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == hookRole {
		RunHook(context.Background(), os.Args[2:], os.Stdin, os.Stdout)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

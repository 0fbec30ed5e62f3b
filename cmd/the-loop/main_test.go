package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// runVariable makes the test binary the program itself, with the arguments it was given.
const runVariable = "THE_LOOP_TEST_RUN"

// TestMain makes the test binary the program itself: for the scripts under the name the-loop, for tests that start it with
// runVariable set, and for panes that it starts from within a test as "<test binary> small-agent …".
func TestMain(m *testing.M) {
	if os.Getenv(runVariable) != "" || len(os.Args) > 1 && (os.Args[1] == "small-agent" || os.Args[1] == "report") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, os.Args[1:], systemEnvironment())
		stop()
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"the-loop": main})
}

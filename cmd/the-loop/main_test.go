package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the program itself: for the scripts under the name the-loop, and for panes that it starts
// from within a test as "<test binary> small-agent …".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "small-agent" {
		os.Exit(run(context.Background(), os.Args[1:], system()))
	}
	testscript.Main(m, map[string]func(){"the-loop": main})
}

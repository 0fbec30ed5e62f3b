// Command the-loop keeps AI coding agents running in tmux and lets their operator talk to them from Slack threads.
//
// The code, bottom-up: sessions is the core (its implementations below it drive tmux, know the agents, keep records and
// events); authz decides who is let in; threads carries replies from Slack threads to sessions; bot is the Slack surface;
// this command wires them, one file per command. See the packages' comments.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], systemEnvironment())
	stop()
	os.Exit(code)
}

package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
)

// maxBatch is how many command lines one client runs. They share the deadline of one client.
const maxBatch = 32

// clientBatch runs the command lines of callers who come at the same time in one client: a client costs a process, which is most
// of what a session costs where there are many. A caller that comes alone has a client of its own at once. The zero value is ready.
type clientBatch struct {
	mayStartServer bool // the client may start the server

	once    sync.Once
	running chan struct{} // held by the caller whose client runs

	mu      sync.Mutex // guards the field that follows
	waiting []*batchedLine
}

// batchedLine is one caller's line.
type batchedLine struct {
	ctx       context.Context
	line      string // one line of tmux's command language: where a command of it fails, those after it do not run
	single    call   // the same for a client of its own
	done      chan struct{}
	out       string // what it printed
	err       error  // a *callError
	wasShared bool   // it ran beside others
}

// run runs a line and returns what it printed, with an error as well as without. Of a line that tmux runs together with others
// and that printed nothing the reason is not known: it changed nothing, and is run again by itself.
func (b *clientBatch) run(ctx context.Context, r *runner, line string, alone call) (string, error) {
	b.prepare()
	own := &batchedLine{ctx: ctx, line: line, single: alone, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, own)
	b.mu.Unlock()
	for {
		select {
		case <-own.done:
			if own.wasShared && own.err == nil && own.out == "" {
				return r.run(ctx, alone)
			}
			return own.out, own.err
		case b.running <- struct{}{}:
			b.runWaiting(r)
			<-b.running
		case <-ctx.Done():
			if b.remove(own) {
				return "", &callError{verb: "source-file", cause: notStartedError(ctx, ctx.Err()), noEffect: true}
			}
			<-own.done // its client runs, and has a deadline
		}
	}
}

func (b *clientBatch) prepare() { b.once.Do(func() { b.running = make(chan struct{}, 1) }) }

// remove takes a line back that no client was given yet.
func (b *clientBatch) remove(own *batchedLine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == own {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// runWaiting runs the lines that wait, in one client. The caller has the turn.
func (b *clientBatch) runWaiting(r *runner) {
	b.mu.Lock()
	lines := b.waiting[:min(len(b.waiting), maxBatch):min(len(b.waiting), maxBatch)]
	b.waiting = b.waiting[len(lines):]
	b.mu.Unlock()
	switch len(lines) {
	case 0:
	case 1:
		lines[0].out, lines[0].err = r.run(lines[0].ctx, lines[0].single)
	default:
		b.runShared(r, lines)
	}
	for _, line := range lines {
		close(line.done)
	}
}

// runShared gives each line what it printed. A secret after each line tells where that ends.
func (b *clientBatch) runShared(r *runner, lines []*batchedLine) {
	secret := rand.Text()
	var script strings.Builder
	for i, line := range lines {
		script.WriteString(line.line + "\n" + command("display-message", "-p", secret+strconv.Itoa(i)) + "\n")
	}
	out, err := r.run(context.WithoutCancel(lines[0].ctx), b.newCall(script.String())) // no caller's leaving may end the others' client
	for i, line := range lines {
		line.wasShared = true
		printed, rest, ended := strings.Cut(out, secret+strconv.Itoa(i)+"\n")
		if line.out, out = printed, rest; !ended && !ranCommands(err) {
			line.err = err
		}
	}
}

// ranCommands reports a client that ran all that it was given, whatever became of its commands.
func ranCommands(err error) bool {
	var failed *callError
	return err == nil || errors.As(err, &failed) && failed.cause == nil && !failed.noEffect
}

func (b *clientBatch) newCall(script string) call {
	if b.mayStartServer {
		return call{args: []string{"start-server", ";", "source-file", "-"}, input: []byte(script), mayStartServer: true}
	}
	return call{args: []string{"source-file", "-"}, input: []byte(script)}
}

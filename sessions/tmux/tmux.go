package tmux

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/process"
)

// Options say which tmux and which server. Dir and one of SocketName and SocketPath are required.
type Options struct {
	SocketName string        // tmux -L: a name below /tmp/tmux-UID, whatever TMUX_TMPDIR says
	SocketPath string        // tmux -S: a whole path; goes before SocketName
	Dir        string        // absolute; holds our configuration file, made with 0700 when it is first needed
	Binary     string        // empty: tmux, from the PATH of Environ
	Environ    []string      // nil: this process's; what of it reaches the server is a short fixed list
	Log        *slog.Logger  // nil: nothing is logged
	Timeout    time.Duration // of each tmux call; 0: 10 s
}

// Tmux is one tmux server, which runs while there are panes in it. It is safe for concurrent use.
type Tmux struct {
	*runner
	outerSocket string // the socket of the server that we ourselves run in; may be empty
	log         *slog.Logger
	processes   processTable
	paneList    coalescer[[]sessions.Pane]
	spawnBatch  clientBatch
	endBatch    clientBatch

	// mu guards the fields that follow.
	mu           sync.Mutex
	unknownExits map[sessions.Pane]bool // dead panes of which tmux will not tell how they died
}

// runner runs tmux clients for one server.
type runner struct {
	binary  string
	socket  []string // the arguments that choose the server
	dir     string   // holds our configuration file
	environ []string // clean; of every client, and so of the server that one starts
	path    string   // PATH of environ
	timeout time.Duration
	slots   chan struct{} // one for each client that runs

	checkMu  sync.Mutex // held while the version is read
	isUsable bool       // guarded by checkMu: the version is new enough
}

var _ sessions.Terminal = (*Tmux)(nil)

const defaultTimeout = 10 * time.Second

var socketNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`) })

// New checks the options and starts nothing; whether there is a usable tmux is [Tmux.Check]'s to say.
func New(o Options) (*Tmux, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("tmux: the folder of its configuration must be an absolute path, not %q", o.Dir)
	}
	socket, err := socketArgs(o)
	if err != nil {
		return nil, err
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	clients := &runner{binary: o.Binary, socket: socket, dir: filepath.Clean(o.Dir), timeout: o.Timeout,
		slots: make(chan struct{}, max(4, 2*runtime.NumCPU()))} // more clients at once would only wait for each other
	t := &Tmux{runner: clients, log: o.Log,
		processes: coalescedTable{process.System(), &coalescer[[]process.Process]{pauseFactor: 3}}}
	t.spawnBatch.mayStartServer, t.paneList.pauseFactor = true, 3
	t.environ = cleanEnviron(o.Environ)
	t.path = lookupEnv(t.environ, "PATH")
	t.outerSocket, _, _ = strings.Cut(lookupEnv(o.Environ, "TMUX"), ",")
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.timeout <= 0 {
		t.timeout = defaultTimeout
	}
	if t.binary == "" {
		t.binary = "tmux"
	}
	return t, nil
}

func socketArgs(o Options) ([]string, error) {
	switch {
	case o.SocketPath != "" && !filepath.IsAbs(o.SocketPath):
		return nil, fmt.Errorf("tmux: the socket's path must be absolute, not %q", o.SocketPath)
	case o.SocketPath != "":
		return []string{"-S", o.SocketPath}, nil
	case !socketNamePattern().MatchString(o.SocketName):
		return nil, fmt.Errorf("tmux: %q is no name for a socket", o.SocketName)
	}
	return []string{"-L", o.SocketName}, nil
}

// findBinary is the path of the tmux binary; [ErrNoTmux] when there is none.
func (r *runner) findBinary() (string, error) {
	found, err := findProgram(r.binary, r.path, "/")
	if err != nil {
		return "", &callError{verb: "client", message: err.Error(), cause: ErrNoTmux, noEffect: true}
	}
	return found, nil
}

// Version is what tmux -V says, e.g. 3.3a. It asks the binary, not the server that runs.
func (r *runner) Version(ctx context.Context) (Version, error) {
	binary, err := r.findBinary()
	if err != nil {
		return Version{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-V")
	cmd.Env = r.environ
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return Version{}, fmt.Errorf("tmux -V: %w: %w", sessions.ErrTerminalTimeout, ctx.Err())
	case err != nil:
		return Version{}, fmt.Errorf("%s -V: %w", binary, err)
	}
	return ParseVersion(string(out))
}

// Check says whether there is a tmux that can be used: [ErrNoTmux] or [ErrTooOld] when not. A good answer is kept.
func (r *runner) Check(ctx context.Context) error {
	r.checkMu.Lock()
	defer r.checkMu.Unlock()
	if r.isUsable {
		return nil
	}
	v, err := r.Version(ctx)
	if err != nil {
		return err
	}
	if !v.isSupported() {
		return fmt.Errorf("%w: this is %s", ErrTooOld, v.Text)
	}
	r.isUsable = true
	return nil
}

package smallagent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	enterScreen          = "\x1b[?1049h\x1b[?7l\x1b[2J" // a screen of its own, and nothing runs over into the next line
	leaveScreen          = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
	enableBracketedPaste = "\x1b[?2004h"
)

// drawTimeout is how long a terminal may take for a frame. One that takes no output must not keep a signal waiting.
const drawTimeout = 300 * time.Millisecond

// terminal is the terminal in raw mode. The agent's loop owns it and closes it, which restores it.
type terminal struct {
	fd      int // of the file we were given, for what concerns the terminal itself
	old     *term.State
	in, out *os.File
	drawn   []string // what is on the screen; nil: unknown
}

// openTerminal opens the terminal's files anew, so that they can be given deadlines without a change to the files that
// other programs share.
func openTerminal(in, out *os.File, brackets bool) (*terminal, error) {
	t := &terminal{fd: int(in.Fd())}
	var err error
	if t.in, err = reopen(in); err != nil {
		return nil, err
	}
	if t.out, err = reopen(out); err != nil {
		return nil, errors.Join(err, t.in.Close())
	}
	if t.old, err = term.MakeRaw(t.fd); err != nil {
		return nil, errors.Join(fmt.Errorf("make terminal raw: %w", err), t.in.Close(), t.out.Close())
	}
	t.write(enterScreen)
	if brackets {
		t.write(enableBracketedPaste)
	}
	return t, nil
}

func reopen(f *os.File) (*os.File, error) {
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	return again, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func (t *terminal) close() error {
	t.write(leaveScreen)
	err := term.Restore(t.fd, t.old)
	return errors.Join(err, t.in.Close(), t.out.Close())
}

// write is false when the terminal did not take all of it in time, or is gone.
func (t *terminal) write(s string) bool {
	if err := t.out.SetWriteDeadline(time.Now().Add(drawTimeout)); err != nil {
		return false
	}
	_, err := t.out.WriteString(s)
	return err == nil
}

// size is the terminal's; one that does not know its own is 80×24.
func (t *terminal) size() (columns, rows int) {
	columns, rows, err := term.GetSize(t.fd)
	if err != nil || columns < 1 || rows < 1 {
		return 80, 24
	}
	return columns, rows
}

// draw writes the lines that changed, in one write.
func (t *terminal) draw(f frame) {
	var s strings.Builder
	s.WriteString("\x1b[?25l")
	if len(t.drawn) != len(f.lines) {
		s.WriteString("\x1b[2J")
		t.drawn = make([]string, len(f.lines))
	}
	for i, line := range f.lines {
		if line != t.drawn[i] {
			fmt.Fprintf(&s, "\x1b[%d;1H%s\x1b[K", i+1, line)
		}
	}
	fmt.Fprintf(&s, "\x1b[%d;%dH\x1b[?25h", f.y+1, f.x+1)
	t.drawn = slices.Clone(f.lines)
	if !t.write(s.String()) {
		t.drawn = nil
	}
}

// chunk is what one read brought, and when.
type chunk struct {
	data []byte
	at   time.Time
}

// input reads a terminal until it ends or is stopped.
type input struct {
	chunks chan chunk // closed when the terminal has ended
	stop   chan struct{}
	done   chan struct{}
	in     *os.File
	log    io.Writer // gets every byte before it has any effect; may be nil
}

func startInput(in *os.File, log io.Writer) *input {
	r := &input{make(chan chunk), make(chan struct{}), make(chan struct{}), in, log}
	go r.run()
	return r
}

func (r *input) run() {
	defer close(r.done)
	defer close(r.chunks)
	buf := make([]byte, 1<<16)
	for {
		n, err := r.in.Read(buf)
		if n > 0 && !r.forward(buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

func (r *input) forward(p []byte) bool {
	if r.log != nil {
		if _, err := r.log.Write(p); err != nil {
			return false
		}
	}
	select {
	case r.chunks <- chunk{slices.Clone(p), time.Now()}:
		return true
	case <-r.stop:
		return false
	}
}

// end stops the reading and waits for it.
func (r *input) end() {
	close(r.stop)
	// A terminal whose deadline cannot be set is one whose reads have ended.
	_ = r.in.SetReadDeadline(time.Unix(1, 0))
	<-r.done
}

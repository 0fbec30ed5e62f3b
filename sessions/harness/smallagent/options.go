package smallagent

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Program is the agent's name in usage and messages.
const Program = "small-agent"

// DirEnv is the variable that names the folder of the conversations when --dir does not.
const DirEnv = "SMALL_AGENT_DIR"

type options struct {
	sessionID, resume, dir, prompt string
	startDelay, enterGap           time.Duration
	replyDelay                     time.Duration
	loseEnters                     int
	noBrackets, logBytes           bool
	fork, ignoreHup, ignoreTerm    bool
	ask                            []string
	hook, cwd                      string
	leaveHook                      bool
}

func parseOptions(args []string, env func(string) string, errOut io.Writer) (options, error) {
	var o options
	flags := o.flagSet(errOut)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if err := o.validate(flags.Args(), env); err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", Program, err)
		return o, err
	}
	return o, nil
}

func (o *options) flagSet(errOut io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(Program, flag.ContinueOnError)
	f.SetOutput(errOut)
	f.Usage = func() {
		fmt.Fprintf(errOut, "Usage: %s [flags] [--] [first prompt]\n\nFlags:\n", Program)
		f.PrintDefaults()
	}
	f.StringVar(&o.sessionID, "session-id", "", "begin a conversation with this `ID` (default: one is made)")
	f.StringVar(&o.resume, "resume", "", "go on with the conversation `ID`")
	f.StringVar(&o.dir, "dir", "", "`folder` of the conversations (default $"+DirEnv+", else ~/.the-loop/small-agent)")
	f.DurationVar(&o.startDelay, "start-delay", 0, "so long after the start Enter is lost and text lands in the box")
	f.DurationVar(&o.enterGap, "enter-gap", 0, "an Enter that comes sooner than this after a paste is lost")
	f.DurationVar(&o.replyDelay, "reply-delay", 300*time.Millisecond, "how long a turn takes")
	f.IntVar(&o.loseEnters, "lose-enters", 0, "lose the first `N` Enters that would have submitted")
	f.BoolVar(&o.noBrackets, "no-bracketed-paste", false, "do not ask the terminal for bracketed paste")
	f.BoolVar(&o.logBytes, "log-bytes", false, "keep every byte read from the terminal in <dir>/<id>.bytes")
	f.BoolVar(&o.fork, "fork", false, "start a child, and a grandchild in a session of its own, that ignore HUP")
	f.BoolVar(&o.ignoreHup, "ignore-hup", false, "live on when the terminal hangs up")
	f.BoolVar(&o.ignoreTerm, "ignore-term", false, "ignore TERM; what --fork starts does too")
	f.StringVar(&o.hook, "hook", "", "a `command` for the shell that is told of each question, and may answer it")
	f.BoolVar(&o.leaveHook, "leave-hook", false, "do not end the hook of a question that the terminal answers, nor listen to it any more")
	f.Func("ask", "ask for permission when a message holds this `word`; may be repeated", func(word string) error {
		o.ask = append(o.ask, word)
		return nil
	})
	return f
}

func (o *options) validate(args []string, env func(string) string) error {
	if len(args) > 1 {
		return errors.New("more than one prompt; flags go before it")
	}
	if len(args) == 1 {
		o.prompt = args[0]
	}
	if o.sessionID != "" && o.resume != "" {
		return errors.New("--session-id begins a conversation, --resume goes on with one: give one of them")
	}
	if o.sessionID != "" && !idShape().MatchString(o.sessionID) {
		return fmt.Errorf("--session-id %q: up to 48 letters, digits, - and _", o.sessionID)
	}
	if o.sessionID == "" && o.resume == "" {
		o.sessionID = newID()
	}
	o.cwd, _ = os.Getwd() // it only tells the hook
	return o.resolveDir(env)
}

func (o *options) resolveDir(env func(string) string) error {
	if o.dir == "" {
		o.dir = env(DirEnv)
	}
	if o.dir != "" {
		return nil
	}
	home := env("HOME")
	if home == "" {
		return fmt.Errorf("no folder for conversations: give --dir, or set %s or HOME", DirEnv)
	}
	o.dir = filepath.Join(home, ".the-loop", "small-agent")
	return nil
}

func (o *options) id() string {
	if o.resume != "" {
		return o.resume
	}
	return o.sessionID
}

// newID is a random UUID (RFC 9562, version 4).
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

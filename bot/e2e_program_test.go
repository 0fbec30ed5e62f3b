package bot_test

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// logBytes is a program in a pane that asks for bracketed paste and keeps what it gets, and nothing else.
func logBytes(file string) int {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	return readPane(func(p []byte, _ time.Time) error {
		_, err := log.Write(p)
		return err
	})
}

// timeBytes is a program in a pane that says into a pipe when it got how many bytes.
func timeBytes(pipe string) int {
	out, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	return readPane(func(p []byte, at time.Time) error {
		_, err := fmt.Fprintln(out, at.UnixNano(), len(p))
		return err
	})
}

func readPane(take func(p []byte, at time.Time) error) int {
	old, err := term.MakeRaw(0)
	if err != nil {
		return 1
	}
	defer func() { _ = term.Restore(0, old) }()
	fmt.Print("\x1b[?2004hready\r\n")
	buf := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return 0
		}
		if err := take(buf[:n], time.Now()); err != nil {
			return 1
		}
	}
}

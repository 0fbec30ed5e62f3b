package bot_test

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// logBytes is a program in a pane that asks for bracketed paste and keeps what it gets, and nothing else.
func logBytes(file string) int {
	old, err := term.MakeRaw(0)
	if err != nil {
		return 1
	}
	defer func() { _ = term.Restore(0, old) }()
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	fmt.Print("\x1b[?2004hready\r\n")
	buf := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return 0
		}
		if _, err := log.Write(buf[:n]); err != nil {
			return 1
		}
	}
}

package tmux

import (
	"os"

	"golang.org/x/sys/unix"
)

// fitsInPipe reports whether an empty pipe takes n bytes with one write. Of somebody who has many pipes the kernel gives new
// ones a single page (pipe(7), pipe-user-pages-soft).
func fitsInPipe(w *os.File, n int) bool {
	raw, err := w.SyscallConn()
	if err != nil {
		return false
	}
	size := 0
	failed := raw.Control(func(fd uintptr) { size, err = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) })
	return err == nil && failed == nil && size >= n
}

package reconcile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openProcess is a descriptor of a process, by which its end can be waited for without asking.
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.O_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return os.NewFile(uintptr(fd), "process"), nil
}

// awaitExit waits until the process has ended. An error means that this cannot be known, or that the descriptor was closed.
func awaitExit(process *os.File) error {
	raw, err := process.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	waited := raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			failed = err
		}
		return failed != nil || n > 0
	})
	return errors.Join(waited, failed)
}

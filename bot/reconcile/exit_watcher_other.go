//go:build !linux

package reconcile

import (
	"errors"
	"os"
)

// openProcess: this system has no descriptors of processes, so sessions are looked at often instead.
func openProcess(int) (*os.File, error) { return nil, errors.ErrUnsupported }

func awaitExit(*os.File) error { return errors.ErrUnsupported }

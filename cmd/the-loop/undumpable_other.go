//go:build !linux

package main

import "errors"

func setUndumpable() error { return errors.New("not supported on this system") }

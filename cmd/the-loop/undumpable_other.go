//go:build !linux

package main

import "errors"

func undumpable() error { return errors.New("this system has no way to prevent it") }

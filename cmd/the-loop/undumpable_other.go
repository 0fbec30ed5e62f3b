//go:build !linux

package main

import "errors"

func setUndumpable() error { return errors.New("this system has no way to prevent it") }

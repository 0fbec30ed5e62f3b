package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// file is the path of a file of a process; empty, which no file has, without a /proc.
func (r Reader) file(pid int, name string) string {
	if r.proc == "" {
		return ""
	}
	return filepath.Join(r.proc, strconv.Itoa(pid), name)
}

// pids are the numbers of the processes in /proc.
func (r Reader) pids() (all []int, err error) {
	dir, err := os.Open(r.proc)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, err
}

func (r Reader) listProc() ([]Process, error) {
	pids, err := r.pids()
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, pid := range pids {
		if p, err := r.readStat(pid); err == nil { // else it ended meanwhile
			all = append(all, p)
		}
	}
	return all, nil
}

// readStat reads /proc/PID/stat: pid (name) state ppid pgrp session … starttime is the 22nd. The name may hold anything.
func (r Reader) readStat(pid int) (Process, error) {
	stat, err := os.ReadFile(r.file(pid, "stat"))
	if err != nil {
		return Process{}, err
	}
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return Process{}, fmt.Errorf("cannot read %q", stat)
	}
	fields := strings.Fields(string(stat[shut+1:]))
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("cannot read %q", stat)
	}
	p := Process{PID: pid, Start: fields[19], Name: string(stat[open+1 : shut]), Zombie: fields[0] == "Z" || fields[0] == "X"}
	var bad [2]error
	p.Parent, bad[0] = strconv.Atoi(fields[1])
	p.Session, bad[1] = strconv.Atoi(fields[3])
	return p, errors.Join(bad[:]...)
}

// Argv returns the arguments of a process; nil when they cannot be known, as where there is no /proc: ps does not tell where
// one ends.
func (r Reader) Argv(pid int) []string {
	line, err := os.ReadFile(r.file(pid, "cmdline"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// Executable returns the path of the program that a process runs; empty when it cannot be known, as where there is no /proc.
func (r Reader) Executable(pid int) string {
	path, err := os.Readlink(r.file(pid, "exe"))
	if err != nil {
		return ""
	}
	return path
}

// OpenFiles returns the paths of the files that a process has open; none where there is no /proc.
func (r Reader) OpenFiles(pid int) (open []string) {
	dir := r.file(pid, "fd")
	links, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, l := range links {
		if target, err := os.Readlink(filepath.Join(dir, l.Name())); err == nil && filepath.IsAbs(target) {
			open = append(open, target)
		}
	}
	return open
}

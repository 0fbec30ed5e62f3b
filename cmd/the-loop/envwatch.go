package main

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// envPollInterval is how often the env file is looked at. It may be a link, lie on any file system and be replaced together with
// its folder, so that looking is more certain than being told.
const envPollInterval = 500 * time.Millisecond

// watchEnv pokes changed when the file at path has changed and was then left alone for one look.
func watchEnv(ctx context.Context, path func() string, changed chan<- struct{}) {
	tick := time.NewTicker(envPollInterval)
	defer tick.Stop()
	known := statEnvFile(path())
	last := known
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := statEnvFile(path())
		if now == last && now != known {
			known = now
			wake(changed)
		}
		last = now
	}
}

// envFileStamp is by what a changed file is known without reading it. The zero value: there is none.
type envFileStamp struct {
	path     string
	modified time.Time
	size     int64
	mode     fs.FileMode
}

func statEnvFile(path string) envFileStamp {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return envFileStamp{}
	}
	return envFileStamp{path: path, modified: info.ModTime(), size: info.Size(), mode: info.Mode()}
}

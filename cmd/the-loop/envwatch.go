package main

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// envLook is how often the env file is looked at. It may be a link, lie on any file system and be replaced together with
// its folder, so that looking is more certain than being told.
const envLook = 500 * time.Millisecond

// watchEnv pokes changed when the file at path has changed and was then left alone for one look.
func watchEnv(ctx context.Context, path func() string, changed chan<- struct{}) {
	tick := time.NewTicker(envLook)
	defer tick.Stop()
	known := envStampOf(path())
	last := known
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := envStampOf(path())
		if now == last && now != known {
			known = now
			poke(changed)
		}
		last = now
	}
}

// envStamp is by what a changed file is known without reading it. The zero value: there is none.
type envStamp struct {
	path     string
	modified time.Time
	size     int64
	mode     fs.FileMode
}

func envStampOf(path string) envStamp {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return envStamp{}
	}
	return envStamp{path: path, modified: info.ModTime(), size: info.Size(), mode: info.Mode()}
}

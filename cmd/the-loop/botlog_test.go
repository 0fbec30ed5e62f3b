package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// bot.log has a bound while the bot runs, whatever it writes, and no line is torn or lost from what is kept.
func TestTheBotsLogIsRotatedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bot.log")
	f := &rotatingFile{path: path, max: 10_000}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	log := slog.New(slog.NewTextHandler(f, nil))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 500 {
				log.Info("a line", "n", i, "text", strings.Repeat("x", 100))
			}
		})
	}
	all.Wait()
	lines := 0
	for _, name := range []string{path, path + ".1"} {
		data, err := os.ReadFile(name)
		if err != nil || len(data) > 10_000 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		for line := range strings.Lines(string(data)) {
			if lines++; !strings.HasPrefix(line, "time=") || !strings.HasSuffix(line, "x\n") {
				t.Errorf("torn: %q", line)
			}
		}
	}
	if names, _ := filepath.Glob(path + "*"); len(names) != 2 || lines < 50 {
		t.Errorf("%v with %d lines", names, lines)
	}
}

func TestTheBotsLogContinuesAfterExternalRotation(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	log, closeLog, err := openBotLog(root, io.Discard, func(text string) string { return text })
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog()
	path := filepath.Join(root, "logs", "bot.log")
	for _, gone := range []func() error{func() error { return os.Rename(path, path+".old") }, func() error { return os.Remove(path) }} {
		log.Info("before")
		if err := gone(); err != nil {
			t.Fatal(err)
		}
		log.Info("after")
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "after") {
			t.Errorf("%q, %v", data, err)
		}
	}
}

// People who are not let in cannot fill the log: each is named, and how often is counted.
func TestUnauthorizedUsersCannotFillTheBotsLog(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := unauthorizedLogLimiter{Handler: slog.NewTextHandler(&b, nil), state: &unauthorizedLogState{}}.WithAttrs([]slog.Attr{slog.String("bot", "x")})
	say := func(attrs ...any) {
		r := slog.NewRecord(now, slog.LevelWarn, "dropped a reply", 0)
		r.Add(attrs...)
		if err := h.Handle(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	lines := func() int { return strings.Count(b.String(), "\n") }
	for i := range 10_000 {
		say("member", "U1", "because", "unauthorized-actor", "ref", fmt.Sprint(i))
	}
	if lines() != 1 || !strings.Contains(b.String(), "member=U1") {
		t.Errorf("one member:\n%s", b.String())
	}
	for i := range 10_000 {
		say("member", fmt.Sprint("W", i), "because", "unauthorized-actor")
	}
	if lines() != maxUnauthorizedLines {
		t.Errorf("many members: %d lines", lines())
	}
	for range 100 { // everything else is said
		say("err", "disk full")
	}
	if lines() != maxUnauthorizedLines+100 {
		t.Errorf("with other lines: %d", lines())
	}
	now = now.Add(unauthorizedLogWindow)
	say("member", "U1", "because", "unauthorized-actor")
	if want := fmt.Sprint("suppressed=", 10_000-maxUnauthorizedLines+1); !strings.Contains(b.String(), want) {
		t.Errorf("an hour later %s is not said", want)
	}
}

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions/registry"
)

// openclaw/openclaw#17847, NousResearch/hermes-agent#14326: "running" while it hears nothing.
func TestStatusDistinguishesAWorkingBotFromARunningOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := registry.BotState{Written: now, Connected: true, LastFrame: now, Connections: 1}
	for name, c := range map[string]struct {
		change func(*botStatus)
		want   string // empty: no problem
	}{
		"all is well":      {func(*botStatus) {}, ""},
		"not wanted":       {func(b *botStatus) { b.Enabled, b.Running = false, false }, ""},
		"not running":      {func(b *botStatus) { b.Running = false }, "not running"},
		"hanging":          {func(b *botStatus) { b.State.Written = now.Add(-time.Minute) }, "may hang"},
		"full, not silent": {func(b *botStatus) { b.State.Written, b.diskFull = now.Add(-time.Minute), syscall.ENOSPC }, ""},
		"not connected":    {func(b *botStatus) { b.State.Connected = false }, "not connected"},
		"silent":           {func(b *botStatus) { b.State.LastFrame = now.Add(-2 * time.Minute) }, "received nothing"},
		"another bot":      {func(b *botStatus) { b.State.Connections = 2 }, "another bot"},
		"a broken config":  {func(b *botStatus) { b.State.ConfigError = "x:1: channels" }, "requests are refused"},
		"not announceable": {func(b *botStatus) { b.State.Problem = "the channel is archived" }, "archived"},
	} {
		b := botStatus{Enabled: true, Running: true, State: good}
		c.change(&b)
		got := strings.Join(botProblems(b, now), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// What a bot that hangs said last may not be so any more: neither its connection nor its threads are told as if they were.
func TestStatusDoesNotShowStaleStateAsCurrent(t *testing.T) {
	t.Parallel()
	b := botStatus{Running: true, Enabled: true, State: registry.BotState{PID: 7, Connected: true, Bound: 3, Written: time.Now().Add(-time.Minute), LastFrame: time.Now()}}
	if words := b.describe(); strings.Contains(words, "connected") || !strings.Contains(words, "no status update for 1m") {
		t.Errorf("%q", words)
	}
}

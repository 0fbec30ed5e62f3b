package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/bot/localslack"
)

// How long each bot is left alone, and how long it is looked at to see that what came of the start is over.
const (
	idleDuration      = 20 * time.Second
	idleSampleTime    = 4 * time.Second
	quiescenceTimeout = time.Minute
)

// BenchmarkIdle is what part of a core a bot uses that has nothing to do, with its tmux clients and what they have the tmux server
// do: one session of the small agent, and fifty. The agents' own time is not in it.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{1, 50} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var used time.Duration
			for b.Loop() {
				used += measureIdle(b, n)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(used.Seconds()/float64(b.N)*float64(time.Minute)/float64(idleDuration), "CPU-s/min")
			b.ReportMetric(100*used.Seconds()/float64(b.N)/idleDuration.Seconds(), "%core")
		})
	}
}

// measureIdle is the time that a bot and its tmux server used while nothing happened.
func measureIdle(b *testing.B, n int) time.Duration {
	s := newTestEnv(b, localslack.Options{})
	var declared strings.Builder
	for i := range n { // a channel each: Slack takes one message a second in each
		channel := s.slack.AddChannel(fmt.Sprint("idle", i)).ID
		s.slack.Join(channel, s.ann.ID)
		s.slack.Invite(channel, s.slack.BotUserID())
		fmt.Fprintf(&declared, "    - {name: s%d, slack: {channel: %s}}\n", i, channel)
	}
	text, err := os.ReadFile(s.configPath())
	if err != nil {
		b.Fatal(err)
	}
	s.writeConfig(strings.Replace(string(text), "  sessions: [{name: helper}]\n", "  sessions:\n"+declared.String(), 1))
	bot := s.startServe()
	for i := range n {
		s.mustRun("standing", "start", fmt.Sprint("s", i))
	}
	s.poll("all announcements", func() bool {
		_, st := s.status()
		return st.Bot.State.Bound == n
	})
	socket := filepath.Base(s.dir)
	out, err := exec.Command("tmux", "-L", socket, "display-message", "-p", "#{pid}").Output()
	if err != nil {
		b.Fatal(err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatal(err)
	}
	pids := []int{bot.cmd.Process.Pid, server}
	waitQuiescent(b, pids)
	used := cpuUsedWithin(b, idleDuration, pids)
	_ = exec.Command("tmux", "-L", socket, "kill-server").Run()
	bot.signalAndWait(syscall.SIGTERM)
	return used
}

// waitQuiescent waits until two glances, one after the other, cost no less than the one before: what came of the start is over.
func waitQuiescent(b *testing.B, pids []int) {
	b.Helper()
	least, same := time.Hour, 0
	for until := time.Now().Add(quiescenceTimeout); same < 2 && time.Now().Before(until); {
		used := cpuUsedWithin(b, idleSampleTime, pids)
		if same++; used < least {
			least, same = used, 0
		}
	}
}

func cpuUsedWithin(b *testing.B, d time.Duration, pids []int) time.Duration {
	b.Helper()
	used := time.Duration(0)
	for _, pid := range pids {
		used -= cpuTime(b, pid)
	}
	time.Sleep(d)
	for _, pid := range pids {
		used += cpuTime(b, pid)
	}
	return used
}

// cpuTime is the time that a process and its children that have ended used, of /proc/PID/stat: in ticks, a hundred a second.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("no /proc: ", err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, field := range fields[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

package bot_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/binding"
)

// endFaultsAndWait ends all faults and waits until it is known of every reply what became of it. The receipts that show it come later: Slack
// takes fifty a minute.
func (s *soakEnv) endFaultsAndWait() {
	s.t.Helper()
	s.Faults().Clear()
	for _, k := range s.sessions {
		s.waitUntil(string(k.ref)+" to have settled each reply", func() bool {
			if err := k.closeDialogs(); err != nil {
				s.t.Fatal(err)
			}
			b, _ := k.binding()
			if all, _ := filepath.Glob(filepath.Join(s.botConfig.Root, "outbox", "*.json")); len(all) > 0 {
				return false // what is to be said of it goes out at one message a second
			}
			return !slices.ContainsFunc(k.written, func(r *soakReply) bool { return !r.deleted && k.reportedOutcome(b, r) == "" })
		})
	}
}

// reportedOutcome is what the bot says became of a reply: the receipt that it has or is to get. Empty: nothing yet.
func (k *soakSession) reportedOutcome(b binding.Binding, r *soakReply) string {
	switch e := storedReplyIn(b, r.ts); {
	case e.State == binding.StateDoubt:
		return receiptInDoubt
	case e.Outcome == binding.OutcomeAccepted, e.Outcome == binding.OutcomeTyped:
		return receiptAccepted
	case e.Outcome == binding.OutcomeFailed:
		return receiptFailed
	case e.State == binding.StateSettled:
		return outcomeForgotten
	}
	return ""
}

// outcomeForgotten is the verdict on a reply of which nothing is kept but that it is settled.
const outcomeForgotten = "settled"

// checkReplies holds what the agents were told against what was written and what the bot says of it.
func (s *soakEnv) checkReplies() {
	s.t.Helper()
	var delays []time.Duration
	counts, kills := map[string]int{}, s.kills
	for _, k := range s.sessions {
		kills += int(k.kills.Load())
		delays = append(delays, k.checkSession(s, counts)...)
	}
	slices.Sort(delays)
	s.t.Logf("%d replies, %d kills: %v", *soakReplies, kills, counts)
	if n := len(delays); n > 0 {
		s.t.Logf("%d replies to sessions that nothing was done to, while others were disturbed: p50 %v, p99 %v, longest %v", n, delays[n/2], delays[n*99/100], delays[n-1])
	}
	if counts[receiptInDoubt] > kills {
		s.t.Errorf("%d replies are in doubt after %d kills", counts[receiptInDoubt], kills)
	}
}

// checkSession is soak.account for one session. It counts receipts and returns how long replies took while nothing was wrong with this
// session.
func (k *soakSession) checkSession(s *soakEnv, counts map[string]int) (delays []time.Duration) {
	got := slices.DeleteFunc(k.entries(smallagent.TypeUser, smallagent.TypeShell, smallagent.TypeCommand),
		func(e smallagent.Entry) bool { return e.How == smallagent.HowPrompt })
	last, known, untyped := -1, 0, 0
	var before *soakReply // the one at last
	b, _ := k.binding()
	for _, r := range k.written {
		var at []int
		for i, e := range got {
			if slices.Contains(r.texts, e.Text) {
				at = append(at, i)
			}
		}
		known += len(at)
		receipt := k.reportedOutcome(b, r)
		counts[receipt]++
		switch {
		case len(at) > 1:
			s.t.Errorf("%q arrived %d times", r.texts, len(at))
		case len(at) == 1 && at[0] < last:
			s.t.Errorf("%q arrived at %s after one that was written later, at %s: %s", r.texts, got[at[0]].At, got[last].At, k.history(s, before))
		case len(at) == 1 && receipt == receiptFailed:
			s.t.Errorf("%q arrived, and its receipt says that it did not", r.texts)
		case len(at) == 0 && !r.deleted && (receipt == receiptFailed || receipt == outcomeForgotten):
			untyped++
		case len(at) == 0 && receipt == receiptAccepted:
			s.t.Errorf("%q did not arrive, and its receipt says that it did", r.texts)
		case len(at) == 1:
			last, before = at[0], r
			if d := got[at[0]].At.Sub(r.at); r.at.After(s.undisturbedSince) && !k.disturbances.overlaps(r.at, got[at[0]].At) {
				delays = append(delays, d)
			}
		}
	}
	if told := k.countBotMessages("Not delivered"); told < untyped {
		s.t.Errorf("%s was not told %d replies, and its thread says so of %d", k.ref, untyped, told)
	}
	if known != len(got) {
		s.t.Errorf("%s was told %d texts, of which %d are whole replies: the others are merged or cut", k.ref, len(got), known)
	}
	return delays
}

// history is what went over the socket of a reply, and what went wrong meanwhile, for a person.
func (k *soakSession) history(s *soakEnv, r *soakReply) string {
	all := []string{"written " + r.at.Format(time.StampMicro)}
	for _, f := range k.env.Frames() {
		if strings.Contains(string(f.Data), r.ts) {
			all = append(all, fmt.Sprintf("%s connection %d %s %s %.60s", f.Time.Format(time.StampMicro), f.Conn, f.Dir, f.Note, f.Data))
		}
	}
	for _, p := range s.playedFaults {
		if p.began.Before(r.at.Add(5*time.Second)) && p.end.After(r.at.Add(-10*time.Second)) {
			all = append(all, fmt.Sprintf("%s to %s: %s", p.began.Format(time.StampMicro), p.end.Format(time.StampMicro), p.name))
		}
	}
	return strings.Join(all, "\n\t")
}

// resourceUse is what a process holds.
type resourceUse struct{ goroutines, descriptors, heap, resident int }

func (f resourceUse) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, heap %d kB, resident %d kB", f.goroutines, f.descriptors, f.heap/1024, f.resident)
}

// measureResources are those of the bot once it has said anew how it is.
func (s *soakEnv) measureResources() resourceUse {
	s.t.Helper()
	file := filepath.Join(s.botConfig.Root, heapFile)
	_ = os.Remove(file) // the one that is there may be of a bot before
	var f resourceUse
	s.waitUntil("the bot to say how it is", func() bool {
		data, err := os.ReadFile(file)
		n, err2 := fmt.Sscan(string(data), &f.heap, &f.goroutines)
		return err == nil && err2 == nil && n == 2
	})
	pid := s.botProcess.cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	status, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || err2 != nil {
		s.t.Fatal(err, err2)
	}
	f.descriptors = len(open)
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			f.resident, err = strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// stateFiles says how many files lie in each folder of the state, and how large they are.
func (s *soakEnv) stateFiles() string {
	s.t.Helper()
	count, size := map[string]int{}, map[string]int64{}
	err := filepath.WalkDir(s.botConfig.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(s.botConfig.Root, filepath.Dir(path))
		count[dir]++
		size[dir] += info.Size()
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for dir, n := range count {
		all = append(all, fmt.Sprintf("%s %d (%d kB)", dir, n, size[dir]/1024))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

package threads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// TestWhateverHappensNothingIsTypedTwiceOrLost plays random days: replies whose events come once, twice, late, out of order or
// never, edits and events of the versions before them, deletions (heard also before the reply is), dialogs, doubts, lost
// connections, and kills at any step. At the end every reply that is still in the thread was typed once, or the thread says
// what became of it; those that were heard at once were typed in order; and nothing was typed that was withdrawn before, or in
// an older version than one that was heard of before.
func TestWhateverHappensNothingIsTypedTwiceOrLost(t *testing.T) {
	t.Parallel()
	days := 150
	if testing.Short() {
		days = 30
	}
	for seed := range days {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			withEnv(t, func(w *env) {
				d := &replyModel{env: w, rand: rand.New(rand.NewPCG(uint64(seed), 7)), written: map[string]string{}, versions: map[string]int{},
					heard: map[string]int{}, gone: map[string]bool{}}
				w.agent.checkTyped = d.checkAllowed
				for range 45 {
					d.step()
				}
				d.finish()
			})
		})
	}
}

// replyModel is one run of the model.
type replyModel struct {
	*env
	rand        *rand.Rand
	n           int
	written     map[string]string // by ts: the word that all versions of the reply begin with
	heardAtOnce []string          // the words whose event came at once: these must be typed in order
	deleted     []string
	pending     []string     // heard of later
	oldVersions []chat.Reply // versions whose events may come, or come again, at any time
	killed      atomic.Bool

	versions map[string]int // by word: how often it was edited

	heardMu sync.Mutex      // guards the fields that follow
	heard   map[string]int  // by word: the newest version that was certainly heard of
	gone    map[string]bool // by word: its deletion was certainly heard of
}

// checkAllowed judges what goes into the pane: what was heard of before it is allowed must be heeded.
func (d *replyModel) checkAllowed(text string) func() {
	d.heardMu.Lock()
	defer d.heardMu.Unlock()
	word, mark, _ := strings.Cut(text, " v")
	version, _ := strconv.Atoi(mark)
	newest, gone := d.heard[word], d.gone[word]
	return func() {
		if version < newest {
			d.t.Errorf("typed %q when version %d had been heard of", text, newest)
		}
		if gone {
			d.t.Errorf("typed %q when its deletion had been heard of", text)
		}
	}
}

func (d *replyModel) step() {
	switch d.rand.IntN(16) {
	case 0, 1, 2, 3:
		d.write()
	case 4:
		d.deliverPending()
	case 5:
		d.redeliver()
	case 6:
		d.edit()
	case 7:
		d.delete()
	case 8:
		d.injectAgentFault()
	case 9:
		d.m.Connected(true)
	case 10:
		d.killSoon()
	case 11:
		d.slack.setErr(errors.New("no network"))
	case 12:
		d.slack.setErr(nil)
	case 13:
		d.advance(time.Duration(d.rand.IntN(120)) * time.Second)
	case 14:
		d.deliverOldEvent()
	case 15:
		d.deleteBeforeEvent()
	}
	d.wait()
	d.restartIfKilled()
}

func (d *replyModel) write() {
	d.n++
	word := fmt.Sprintf("reply-%03d", d.n)
	ts := d.slack.write(ann, word)
	d.written[ts] = word
	d.oldVersions = append(d.oldVersions, d.slack.reply(ts))
	switch d.rand.IntN(5) {
	case 0: // its event never comes
	case 1:
		d.pending = append(d.pending, ts)
	case 2:
		d.m.HandleReply(d.slack.reply(ts))
		d.m.HandleReply(d.slack.reply(ts))
	default:
		d.m.HandleReply(d.slack.reply(ts))
		d.heardAtOnce = append(d.heardAtOnce, word)
	}
}

func (d *replyModel) deliverPending() {
	d.rand.Shuffle(len(d.pending), func(i, j int) { d.pending[i], d.pending[j] = d.pending[j], d.pending[i] })
	for _, ts := range d.pending {
		if d.slack.get(ts) != nil {
			d.m.HandleReply(d.slack.reply(ts))
		}
	}
	d.pending = nil
}

// pickReply is a reply that is still there, or empty.
func (d *replyModel) pickReply() string {
	var there []string
	for ts := range d.written {
		if d.slack.get(ts) != nil {
			there = append(there, ts)
		}
	}
	if len(there) == 0 {
		return ""
	}
	slices.SortFunc(there, chat.CompareTS)
	return there[max(0, len(there)-1-d.rand.IntN(4))]
}

func (d *replyModel) redeliver() {
	if ts := d.pickReply(); ts != "" {
		d.m.HandleReply(d.slack.reply(ts))
	}
}

func (d *replyModel) edit() {
	if ts := d.pickReply(); ts != "" {
		word := d.written[ts]
		d.versions[word]++
		d.slack.edit(ts, fmt.Sprintf("%s v%d", word, d.versions[word]))
		r := d.slack.reply(ts)
		d.oldVersions = append(d.oldVersions, r)
		if d.rand.IntN(4) == 0 { // its event comes later, or never
			return
		}
		d.m.ReplyEdited(r)
		d.recordHeard(func() { d.heard[word] = d.versions[word] })
	}
}

// recordHeard notes what the bot certainly heard: it lives, and what it heard is on disk.
func (d *replyModel) recordHeard(note func()) {
	d.wait()
	if !d.killed.Load() {
		d.heardMu.Lock()
		defer d.heardMu.Unlock()
		note()
	}
}

// deliverOldEvent delivers an event of some version of some reply, which may be deleted by now.
func (d *replyModel) deliverOldEvent() {
	if len(d.oldVersions) == 0 {
		return
	}
	r := d.oldVersions[d.rand.IntN(len(d.oldVersions))]
	if r.Edited != "" {
		d.m.ReplyEdited(r)
		return
	}
	r.Redelivered = d.rand.IntN(2) == 0
	d.m.HandleReply(r)
}

// deleteBeforeEvent has a deletion heard before the reply is.
func (d *replyModel) deleteBeforeEvent() {
	d.n++
	word := fmt.Sprintf("reply-%03d", d.n)
	ts := d.slack.write(ann, word)
	r := d.slack.reply(ts)
	d.written[ts], d.oldVersions, d.deleted = word, append(d.oldVersions, r), append(d.deleted, ts)
	d.slack.remove(ts)
	d.m.ReplyDeleted(channel, r.Root, ts)
	d.recordHeard(func() { d.gone[word] = true })
	if d.rand.IntN(2) == 0 {
		d.m.HandleReply(r)
	}
}

func (d *replyModel) delete() {
	ts := d.pickReply()
	if ts == "" {
		return
	}
	d.slack.remove(ts)
	d.deleted = append(d.deleted, ts)
	if d.rand.IntN(2) == 0 { // else its event never comes
		d.m.ReplyDeleted(channel, d.m.index.of(sid).ThreadID().Root, ts)
		d.recordHeard(func() { d.gone[d.written[ts]] = true })
	}
}

// injectAgentFault changes how the agent is.
func (d *replyModel) injectAgentFault() {
	kind := d.rand.IntN(4)
	d.agent.setOnStep(func(_ *managerRun, step string, _ sessions.SubmitRequest) error {
		switch {
		case kind == 0 && step == "look":
			return &sessions.HeldError{State: sessions.ViewDialog}
		case kind == 1 && step == "look":
			return &sessions.LockedError{Key: "x"}
		case kind == 2 && step == "typed":
			return fmt.Errorf("time-out: %w", sessions.ErrInDoubt)
		}
		return nil
	})
	d.agent.mu.Lock()
	d.agent.acceptDelay = time.Duration(d.rand.IntN(3)) * time.Second
	d.agent.mu.Unlock()
}

// killSoon has the bot killed at the next step of a delivery or a post.
func (d *replyModel) killSoon() {
	step := []string{"look", "intended", "typed"}[d.rand.IntN(3)]
	post := d.rand.IntN(3) == 0
	before := d.rand.IntN(2) == 0
	kill := func(l *managerRun) error {
		d.killed.Store(true)
		d.kill(l)
		return context.Canceled
	}
	if post {
		d.slack.setOnPost(func(l *managerRun, b bool, _ chat.Post) error {
			if d.killed.Load() || b != before {
				return nil
			}
			return kill(l)
		})
		return
	}
	d.agent.setOnStep(func(l *managerRun, s string, _ sessions.SubmitRequest) error {
		if d.killed.Load() || s != step {
			return nil
		}
		return kill(l)
	})
}

// restartIfKilled starts the bot again after a kill.
func (d *replyModel) restartIfKilled() {
	if !d.killed.Load() {
		return
	}
	d.stop()
	d.killed.Store(false)
	d.agent.setOnStep(nil)
	d.slack.setOnPost(nil)
	d.start()
	d.wait()
}

// finish lets everything come to rest and judges the day.
func (d *replyModel) finish() {
	d.agent.setOnStep(nil)
	d.slack.setOnPost(nil)
	d.slack.setErr(nil)
	d.deliverPending()
	d.m.Connected(true)
	d.advance(5 * time.Minute)
	d.check()
}

func (d *replyModel) check() {
	d.agent.mu.Lock()
	typed := slices.Clone(d.agent.typed)
	d.agent.mu.Unlock()
	var words []string
	for _, text := range typed {
		words = append(words, strings.Fields(text)[0])
	}
	prompt := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !slices.Contains(d.heardAtOnce, w) })
	if !slices.IsSorted(prompt) {
		d.t.Errorf("typed out of order: %q", typed)
	}
	b := bindingFile(d.t, d.env)
	posts := strings.Join(d.slack.posted(), "\n")
	for ts, word := range d.written {
		n := 0
		for _, w := range words {
			if w == word {
				n++
			}
		}
		e, known := b.Replies[ts]
		asked := known && (e.State == binding.StateDoubt || e.State == binding.StateOffered)
		switch {
		case n > 1:
			d.t.Errorf("%s was typed %d times", word, n)
		case n == 1 || slices.Contains(d.deleted, ts):
		case asked && strings.Contains(posts, fmt.Sprint(chat.TSTime(ts).Unix())) || asked && strings.Contains(posts, "replies from"):
		default:
			d.t.Errorf("%s was neither typed nor is it asked about: %+v (known %v)\n%s", word, e, known, posts)
		}
	}
}

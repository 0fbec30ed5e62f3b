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
			run(t, func(w *world) {
				d := &day{world: w, rand: rand.New(rand.NewPCG(uint64(seed), 7)), written: map[string]string{}, versions: map[string]int{},
					heard: map[string]int{}, gone: map[string]bool{}}
				w.agent.judge = d.allow
				for range 45 {
					d.step()
				}
				d.close()
			})
		})
	}
}

// day is one run of the model.
type day struct {
	*world
	rand    *rand.Rand
	n       int
	written map[string]string // by ts: the word that all versions of the reply begin with
	prompt  []string          // the words whose event came at once: these must be typed in order
	deleted []string
	pending []string // heard of later
	old     []Reply  // versions whose events may come, or come again, at any time
	killed  atomic.Bool

	versions map[string]int // by word: how often it was edited

	seen  sync.Mutex      // guards the fields that follow
	heard map[string]int  // by word: the newest version that was certainly heard of
	gone  map[string]bool // by word: its deletion was certainly heard of
}

// allow judges what goes into the pane: what was heard of before it is allowed must be heeded.
func (d *day) allow(text string) func() {
	d.seen.Lock()
	defer d.seen.Unlock()
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

func (d *day) step() {
	switch d.rand.IntN(16) {
	case 0, 1, 2, 3:
		d.write()
	case 4:
		d.hearLater()
	case 5:
		d.again()
	case 6:
		d.edit()
	case 7:
		d.delete()
	case 8:
		d.fault()
	case 9:
		d.m.Connected(true)
	case 10:
		d.killSoon()
	case 11:
		d.slack.fail(errors.New("no network"))
	case 12:
		d.slack.fail(nil)
	case 13:
		d.after(time.Duration(d.rand.IntN(120)) * time.Second)
	case 14:
		d.oldEvent()
	case 15:
		d.deleteUnheard()
	}
	d.settle()
	d.revive()
}

func (d *day) write() {
	d.n++
	word := fmt.Sprintf("reply-%03d", d.n)
	ts := d.slack.write(ann, word)
	d.written[ts] = word
	d.old = append(d.old, d.slack.reply(ts))
	switch d.rand.IntN(5) {
	case 0: // its event never comes
	case 1:
		d.pending = append(d.pending, ts)
	case 2:
		d.m.Heard(d.slack.reply(ts))
		d.m.Heard(d.slack.reply(ts))
	default:
		d.m.Heard(d.slack.reply(ts))
		d.prompt = append(d.prompt, word)
	}
}

func (d *day) hearLater() {
	d.rand.Shuffle(len(d.pending), func(i, j int) { d.pending[i], d.pending[j] = d.pending[j], d.pending[i] })
	for _, ts := range d.pending {
		if d.slack.get(ts) != nil {
			d.m.Heard(d.slack.reply(ts))
		}
	}
	d.pending = nil
}

// some is a reply that is still there, or empty.
func (d *day) some() string {
	var there []string
	for ts := range d.written {
		if d.slack.get(ts) != nil {
			there = append(there, ts)
		}
	}
	if len(there) == 0 {
		return ""
	}
	slices.SortFunc(there, CompareTS)
	return there[max(0, len(there)-1-d.rand.IntN(4))]
}

func (d *day) again() {
	if ts := d.some(); ts != "" {
		d.m.Heard(d.slack.reply(ts))
	}
}

func (d *day) edit() {
	if ts := d.some(); ts != "" {
		word := d.written[ts]
		d.versions[word]++
		d.slack.edit(ts, fmt.Sprintf("%s v%d", word, d.versions[word]))
		r := d.slack.reply(ts)
		d.old = append(d.old, r)
		if d.rand.IntN(4) == 0 { // its event comes later, or never
			return
		}
		d.m.Edited(r)
		d.hearing(func() { d.heard[word] = d.versions[word] })
	}
}

// hearing notes what the bot certainly heard: it lives, and what it heard is on disk.
func (d *day) hearing(note func()) {
	d.settle()
	if !d.killed.Load() {
		d.seen.Lock()
		defer d.seen.Unlock()
		note()
	}
}

// oldEvent delivers an event of some version of some reply, which may be deleted by now.
func (d *day) oldEvent() {
	if len(d.old) == 0 {
		return
	}
	r := d.old[d.rand.IntN(len(d.old))]
	if r.Edited != "" {
		d.m.Edited(r)
		return
	}
	r.Late = d.rand.IntN(2) == 0
	d.m.Heard(r)
}

// deleteUnheard has a deletion heard before the reply is.
func (d *day) deleteUnheard() {
	d.n++
	word := fmt.Sprintf("reply-%03d", d.n)
	ts := d.slack.write(ann, word)
	r := d.slack.reply(ts)
	d.written[ts], d.old, d.deleted = word, append(d.old, r), append(d.deleted, ts)
	d.slack.remove(ts)
	d.m.Withdrawn(channel, r.Root, ts)
	d.hearing(func() { d.gone[word] = true })
	if d.rand.IntN(2) == 0 {
		d.m.Heard(r)
	}
}

func (d *day) delete() {
	ts := d.some()
	if ts == "" {
		return
	}
	d.slack.remove(ts)
	d.deleted = append(d.deleted, ts)
	if d.rand.IntN(2) == 0 { // else its event never comes
		d.m.Withdrawn(channel, d.m.of(sid).place().root, ts)
		d.hearing(func() { d.gone[d.written[ts]] = true })
	}
}

// fault changes how the agent is.
func (d *day) fault() {
	kind := d.rand.IntN(4)
	d.agent.handle(func(_ *life, step string, _ sessions.SayRequest) error {
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
	d.agent.takes = time.Duration(d.rand.IntN(3)) * time.Second
	d.agent.mu.Unlock()
}

// killSoon has the bot killed at the next step of a delivery or a post.
func (d *day) killSoon() {
	step := []string{"look", "intended", "typed"}[d.rand.IntN(3)]
	post := d.rand.IntN(3) == 0
	before := d.rand.IntN(2) == 0
	kill := func(l *life) error {
		d.killed.Store(true)
		d.kill(l)
		return context.Canceled
	}
	if post {
		d.slack.hook(func(l *life, b bool, _ Post) error {
			if d.killed.Load() || b != before {
				return nil
			}
			return kill(l)
		})
		return
	}
	d.agent.handle(func(l *life, s string, _ sessions.SayRequest) error {
		if d.killed.Load() || s != step {
			return nil
		}
		return kill(l)
	})
}

// revive starts the bot again after a kill.
func (d *day) revive() {
	if !d.killed.Load() {
		return
	}
	d.stop()
	d.killed.Store(false)
	d.agent.handle(nil)
	d.slack.hook(nil)
	d.start()
	d.settle()
}

// close lets everything come to rest and judges the day.
func (d *day) close() {
	d.agent.handle(nil)
	d.slack.hook(nil)
	d.slack.fail(nil)
	d.hearLater()
	d.m.Connected(true)
	d.after(5 * time.Minute)
	d.judge()
}

func (d *day) judge() {
	d.agent.mu.Lock()
	typed := slices.Clone(d.agent.typed)
	d.agent.mu.Unlock()
	var words []string
	for _, text := range typed {
		words = append(words, strings.Fields(text)[0])
	}
	prompt := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !slices.Contains(d.prompt, w) })
	if !slices.IsSorted(prompt) {
		d.t.Errorf("typed out of order: %q", typed)
	}
	b := bindingFile(d.t, d.world)
	posts := strings.Join(d.slack.posted(), "\n")
	for ts, word := range d.written {
		n := 0
		for _, w := range words {
			if w == word {
				n++
			}
		}
		e, known := b.Replies[ts]
		asked := known && (e.State == StateDoubt || e.State == StateOffered)
		switch {
		case n > 1:
			d.t.Errorf("%s was typed %d times", word, n)
		case n == 1 || slices.Contains(d.deleted, ts):
		case asked && strings.Contains(posts, fmt.Sprint(TSTime(ts).Unix())) || asked && strings.Contains(posts, "replies from"):
		default:
			d.t.Errorf("%s was neither typed nor is it asked about: %+v (known %v)\n%s", word, e, known, posts)
		}
	}
}

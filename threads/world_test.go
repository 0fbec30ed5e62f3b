package threads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"the-loop/authz"
	"the-loop/sessions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	channel = "C1"
	ann     = "U1" // on the list
	bob     = "U2" // not on it
	sid     = "id-1"
)

// world is a thread in Slack, an agent, and a manager between them, in the time of a synctest bubble.
type world struct {
	t     *testing.T
	slack *slack
	agent *agent
	root  string
	cwd   string // the session's folder
	ref   sessions.Ref

	tickets TicketWriter
	askText func(sessions.Ref, sessions.Ask) (string, bool)

	mu     sync.Mutex
	users  []string
	broken bool // the configuration
	full   bool // the disk
	maxAge time.Duration
	wall   func() time.Time // this machine's clock; nil: it is right
	posts  Answers          // which of the agent's texts are posted
	hooks  *hooks           // what the agent reports; nil: nothing
	sight  *sight           // statuses and screens; nil: there are none
	events []sessions.Event

	m    *Manager
	stop func()
}

// run plays f in a bubble, with a manager that runs and a session that is announced.
func run(t *testing.T, f func(w *world)) {
	t.Helper()
	runWith(t, func(*world) {}, f)
}

// runWith is run in a world that is changed before anything is in it.
func runWith(t *testing.T, change, f func(w *world)) {
	t.Helper()
	t.Parallel()
	dir, cwd := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, root: dir, cwd: cwd, ref: "standing:s", users: []string{ann}, maxAge: 15 * time.Minute}
		change(w)
		w.slack, w.agent = &slack{w: w}, &agent{w: w}
		t.Cleanup(func() { w.stop() }) // the one that runs by then
		w.start()
		w.announce()
		f(w)
	})
}

func (w *world) start() {
	w.t.Helper()
	life := &life{}
	o := Options{Root: w.root, Agent: alive{life, w}, Commander: commander{w}, History: alive{life, w}, Receipts: alive{life, w},
		Speaker: alive{life, w}, Fetcher: alive{life, w}, Folders: alive{life, w}, Sink: w, Tickets: w.tickets, Policy: w.policy,
		Pages: pages, Secret: func(text string) bool { return strings.Contains(text, "hunter2") },
		Carrier: alive{life, w}, Noter: alive{life, w}, Now: w.wall, Channels: alive{life, w},
		Settings: func() Settings { return Settings{MaxAge: w.maxAge, Emoji: emoji, Answers: w.posts, MaxFile: 1 << 20} }}
	if w.hooks != nil {
		o.Noter = hooked{alive{life, w}}
	}
	o.AskText = w.askText
	if w.sight != nil {
		o.Statuses, o.Viewer = alive{life, w}, alive{life, w}
	}
	m, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	m.disk.write = w.write
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	w.m = m
	w.stop = func() { cancel(); wg.Wait(); life.end() }
	m.Connected(true)
}

var emoji = map[Mark]string{MarkReceived: "eyes", MarkTyped: "keyboard", MarkAccepted: "white_check_mark", MarkHeld: "hourglass",
	MarkFailed: "warning", MarkInDoubt: "grey_question"}

// write stores a file, unless the disk is full.
func (w *world) write(path string, v any) error {
	w.mu.Lock()
	full := w.full
	w.mu.Unlock()
	if full {
		if err := os.WriteFile("/dev/full", []byte("x"), 0); noRoom(err) {
			return err
		}
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC} // a system without that device
	}
	return writeJSON(path, v)
}

func (w *world) policy() authz.Policy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return authz.Policy{Users: slices.Clone(w.users), Team: "T1", Suspended: w.broken}
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) Emit(_ context.Context, e sessions.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *world) announce() {
	w.t.Helper()
	err := w.m.Announce(context.Background(), Announcing{ID: sid, Ref: w.ref, Channel: channel, Started: time.Now(), Post: Post{Text: "I am s"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// settle lets everything that can happen at this moment happen.
func (w *world) settle() { synctest.Wait() }

// after lets time pass.
func (w *world) after(d time.Duration) {
	time.Sleep(d) // the bubble's time
	synctest.Wait()
}

// hear delivers the event of a message that is in the thread.
func (w *world) hear(ts string) {
	w.m.Heard(w.slack.reply(ts))
	w.settle()
}

// say writes a reply in the thread and delivers its event.
func (w *world) say(text string) string {
	ts := w.slack.write(ann, text)
	w.hear(ts)
	return ts
}

func (w *world) wantTyped(texts ...string) {
	w.t.Helper()
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if !slices.Equal(w.agent.typed, texts) {
		w.t.Errorf("typed %q; want %q", w.agent.typed, texts)
	}
}

func (w *world) wantPosts(parts ...string) {
	w.t.Helper()
	posts := w.slack.posted()
	if len(posts) != len(parts) {
		w.t.Fatalf("posted %d messages; want %d\n%s", len(posts), len(parts), strings.Join(posts, "\n"))
	}
	for i, p := range parts {
		if !strings.Contains(posts[i], p) {
			w.t.Errorf("post %d is %q; want %q in it", i, posts[i], p)
		}
	}
}

func (w *world) wantReceipt(ts string, names ...string) {
	w.t.Helper()
	w.slack.mu.Lock()
	defer w.slack.mu.Unlock()
	if got := w.slack.find(ts).reactions; !slices.Equal(got, names) {
		w.t.Errorf("the reply shows %q; want %q", got, names)
	}
}

func (w *world) dropped() (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Name == EventDropped {
			reasons = append(reasons, e.Fields["reason"].(string))
		}
	}
	return reasons
}

// life ends: what a manager does after its process was killed reaches nobody.
type life struct {
	mu    sync.Mutex
	ended bool
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// err holds a call of a manager whose process was killed until somebody clears it away.
func (l *life) err(ctx context.Context) error {
	if l.over() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// kill ends the manager as SIGKILL does: what is on disk at this moment is what the next one finds.
func (w *world) kill(l *life) {
	l.end()
	for try := 0; ; try++ { // what is under way may still write, and a copy of two moments is none that a kill leaves
		next, before := w.t.TempDir(), stamp(w.root)
		err := os.CopyFS(next, os.DirFS(w.root))
		if err == nil && before == stamp(w.root) {
			w.root = next
			return
		}
		if try == 100 {
			w.t.Errorf("copy what is on disk: %v", err)
			return
		}
	}
}

// stamp changes when a file below root does.
func stamp(root string) string {
	var b strings.Builder
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was replaced just now
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return b.String()
}

// alive is Slack and the agent as one run of the manager sees them.
type alive struct {
	*life
	w *world
}

func (a alive) Say(ctx context.Context, q sessions.SayRequest) (sessions.Receipt, error) {
	if err := a.err(ctx); err != nil {
		return "", err
	}
	return a.w.agent.say(ctx, a.life, q)
}

func (a alive) Witnessed(ctx context.Context, q sessions.WitnessRequest) (bool, error) {
	if err := a.err(ctx); err != nil {
		return false, err
	}
	return a.w.agent.witnessed(q), nil
}

func (a alive) Told(ctx context.Context, q sessions.ToldRequest) (sessions.Told, error) {
	if err := a.err(ctx); err != nil {
		return sessions.Told{}, err
	}
	return a.w.agent.told(a.life, q)
}

func (a alive) Folder(ctx context.Context, _ sessions.FolderRequest) (string, error) {
	return a.w.cwd, a.err(ctx)
}

func (a alive) Fetch(ctx context.Context, f File, to io.Writer) error {
	if err := a.err(ctx); err != nil {
		return err
	}
	return a.w.slack.fetch(f, to)
}

func (a alive) Replies(ctx context.Context, channel, root, oldest, cursor string) (Page, error) {
	if err := errors.Join(a.err(ctx), a.w.slack.fails(), a.w.slack.knows(channel)); err != nil {
		return Page{}, err
	}
	return a.w.slack.page(channel, root, oldest, cursor)
}

func (a alive) Reply(ctx context.Context, channel, _, ts string) (Reply, error) {
	if err := errors.Join(a.err(ctx), a.w.slack.fails(), a.w.slack.knows(channel)); err != nil {
		return Reply{}, err
	}
	if m := a.w.slack.get(ts); m == nil {
		return Reply{}, ErrReplyGone
	}
	return a.w.slack.reply(ts), nil
}

func (a alive) FindPost(ctx context.Context, channel, root, nonce string, _ time.Time) (string, error) {
	if err := errors.Join(a.err(ctx), a.w.slack.fails(), a.w.slack.knows(channel)); err != nil {
		return "", err
	}
	return a.w.slack.nonce(root, nonce), nil
}

func (a alive) Post(ctx context.Context, p Post) (string, error) {
	if err := a.err(ctx); err != nil {
		return "", err
	}
	return a.w.slack.post(a.life, p)
}

func (a alive) Update(ctx context.Context, ts string, p Post) error {
	if err := errors.Join(a.err(ctx), a.w.slack.fails()); err != nil {
		return err
	}
	if err := a.w.slack.update(ts, p); err != nil || a.w.slack.onUpdate == nil {
		return err
	}
	a.w.slack.onUpdate(a.life)
	return a.err(ctx)
}

// Joined are the channel of the world and one that has nothing to do with it.
func (a alive) Joined(ctx context.Context) ([]string, error) {
	return []string{foreign, a.w.slack.id()}, errors.Join(a.err(ctx), a.w.slack.fails())
}

func (a alive) AddReaction(ctx context.Context, channel, ts, emoji string) error {
	if err := errors.Join(a.err(ctx), a.w.slack.fails(), a.w.slack.knows(channel)); err != nil {
		return err
	}
	return a.w.slack.react(ts, emoji, true)
}

func (a alive) RemoveReaction(ctx context.Context, _, ts, emoji string) error {
	if err := errors.Join(a.err(ctx), a.w.slack.fails()); err != nil {
		return err
	}
	return a.w.slack.react(ts, emoji, false)
}

type commander struct{ w *world }

func (c commander) Command(_ context.Context, q CommandRequest) string {
	return "did " + q.Command.Verb
}

// slack is one channel in memory.
type slack struct {
	w        *world
	mu       sync.Mutex
	messages []*message
	last     time.Time
	err      error
	perPage  int          // replies in a page; 0: few
	dateless bool         // responses tell no time
	moved    string       // the id that the channel has now; empty: [channel]
	read     atomic.Int64 // replies that were given out in pages
	// onPost is called for each post: before says that it was not done yet. It may kill the manager or return an error.
	onPost func(l *life, before bool, p Post) error
	// onUpdate is called after each change of a message. It may kill the manager.
	onUpdate func(l *life)
	// onReact is called for each reaction, before anything else.
	onReact func(ts, emoji string, add bool) error
	// onFetch is called for each download.
	onFetch func(f File) error
	// onCarry is called at the steps of posting a file.
	onCarry func(l *life, step string, f Parcel) error
	uploads map[string]string // contents by id
}

type message struct {
	ts, root, user, team, text string
	edited                     string
	files                      []File
	unreadable                 []string // parts of it that no text says
	parcel                     *Parcel
	post                       *Post
	reactions                  []string
	deleted                    bool
}

func (s *slack) fails() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// id is the channel's.
func (s *slack) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.moved, channel)
}

// foreign is a channel that has nothing of the bot's in it.
const foreign = "C-foreign"

// knows is Slack's answer about a channel by an id that it does not have any more.
func (s *slack) knows(id string) error {
	if id == foreign || id == channel && s.id() != channel {
		return fmt.Errorf("channel_not_found: %w", ErrUnavailable)
	}
	return nil
}

// move gives the channel another id.
func (s *slack) move(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = id
}

func (s *slack) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *slack) hook(f func(l *life, before bool, p Post) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPost = f
}

func (s *slack) add(m *message) string {
	m.ts = s.tick()
	s.messages = append(s.messages, m)
	return m.ts
}

// tick is the next timestamp by Slack's clock: no two are equal.
func (s *slack) tick() string {
	now := time.Now()
	if !now.After(s.last) {
		now = s.last.Add(time.Microsecond)
	}
	s.last = now
	return TimeTS(now)
}

// rootTS is the announcement's.
func (s *slack) rootTS() string {
	for _, m := range s.messages {
		if m.post != nil && m.root == "" && !m.deleted {
			return m.ts
		}
	}
	return ""
}

func (s *slack) write(user, text string) string { return s.writeOf("T1", user, text) }

func (s *slack) writeOf(team, user, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&message{root: s.rootTS(), user: user, team: team, text: text})
}

func (s *slack) find(ts string) *message {
	for _, m := range s.messages {
		if m.ts == ts && !m.deleted {
			return m
		}
	}
	return nil
}

func (s *slack) get(ts string) *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ts)
}

func (s *slack) edit(ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	m.text, m.edited = text, s.tick()
}

func (s *slack) remove(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find(ts).deleted = true
}

// reply is the message as an event tells it: with the text of that moment.
func (s *slack) reply(ts string) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	r := Reply{Channel: cmp.Or(s.moved, channel), Root: m.root, TS: ts, Edited: m.edited, Actor: authz.Actor{User: m.user, Team: m.team}}
	text, files, unreadable := m.text, slices.Clone(m.files), m.unreadable
	if rest, ok := strings.CutPrefix(text, "@bot "); ok {
		verb, rest, _ := strings.Cut(rest, " ")
		r.Command = &Command{Verb: verb, Rest: rest}
	}
	r.Load = func(context.Context) (Content, error) {
		return Content{Actor: r.Actor, Speaker: "ann", Text: text, Missing: unreadable, Files: files}, nil
	}
	return r
}

// fetch gives a file out: its id is what is in it.
func (s *slack) fetch(f File, to io.Writer) error {
	if s.onFetch != nil {
		if err := s.onFetch(f); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, f.ID)
	return err
}

func (s *slack) page(_, root, oldest, cursor string) (Page, error) {
	s.mu.Lock()
	if s.find(root) == nil {
		s.mu.Unlock()
		return Page{}, ErrThreadGone
	}
	var ts []string
	for _, m := range s.messages {
		if m.root == root && m.post == nil && !m.deleted && CompareTS(m.ts, oldest) > 0 && CompareTS(m.ts, cursor) > 0 {
			ts = append(ts, m.ts)
		}
	}
	s.mu.Unlock()
	p := Page{Now: time.Now()}
	if s.dateless {
		p.Now = time.Time{}
	}
	for i, t := range ts {
		if i == max(2, s.perPage) { // small pages, so that there are several
			p.Next = ts[i-1]
			break
		}
		p.Replies = append(p.Replies, s.reply(t))
		s.read.Add(1)
	}
	return p, nil
}

func (s *slack) nonce(root, nonce string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && !m.deleted && m.post.Nonce == nonce && (m.root == root || m.ts == root) {
			return m.ts
		}
	}
	return ""
}

func (s *slack) post(l *life, p Post) (string, error) {
	unknown := s.knows(p.Channel)
	s.mu.Lock()
	hook, err := s.onPost, errors.Join(s.err, unknown)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if hook != nil {
		if err := hook(l, true, p); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	ts := s.add(&message{root: p.Root, text: p.Text, post: &p})
	s.mu.Unlock()
	s.w.sight.posted()
	if hook != nil {
		if err := hook(l, false, p); err != nil {
			return "", err
		}
	}
	return ts, nil
}

func (s *slack) update(ts string, p Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	if m == nil {
		return ErrReplyGone
	}
	m.text, m.post = p.Text, &p
	return nil
}

func (s *slack) react(ts, emoji string, add bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onReact != nil {
		if err := s.onReact(ts, emoji, add); err != nil {
			return err
		}
	}
	m := s.find(ts)
	if m == nil {
		return ErrReplyGone
	}
	m.reactions = slices.DeleteFunc(m.reactions, func(e string) bool { return e == emoji })
	if add {
		m.reactions = append(m.reactions, emoji)
	}
	return nil
}

// posted are the messages of the bot in the thread.
func (s *slack) posted() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && m.root != "" && !m.deleted {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// roots are the announcements.
func (s *slack) roots() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && m.root == "" && !m.deleted {
			n++
		}
	}
	return n
}

// buttons are those of the latest question in the thread, with its ts.
func (s *slack) buttons() (ts string, all []Button) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && len(m.post.Buttons) > 0 && !m.deleted {
			ts, all = m.ts, m.post.Buttons
		}
	}
	return ts, all
}

// agent is a session that takes texts.
type agent struct {
	w     *world
	mu    sync.Mutex
	typed []string
	raws  int
	sums  map[sessions.Sum]bool
	takes time.Duration
	blind bool // it gives no proof
	said  []sessions.Said
	turn  sessions.Turn
	notes []sessions.NotedFile
	// onTold is called before an answer is given to what it said.
	onTold func(l *life)
	// judge is called before a text is allowed into the pane, and what it returns when it was.
	judge func(text string) (allowed func())
	// on is called at the steps of a Say; an error ends it there.
	on func(l *life, step string, q sessions.SayRequest) error
}

func (a *agent) step(ctx context.Context, l *life, step string, q sessions.SayRequest) error {
	a.mu.Lock()
	on := a.on
	a.mu.Unlock()
	if on != nil {
		if err := on(l, step, q); err != nil {
			return err
		}
	}
	return l.err(ctx)
}

func (a *agent) handle(on func(l *life, step string, q sessions.SayRequest) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = on
}

func (a *agent) say(ctx context.Context, l *life, q sessions.SayRequest) (sessions.Receipt, error) {
	if q.ID != sid {
		return "", fmt.Errorf("another session: %q", q.ID)
	}
	if err := a.step(ctx, l, "look", q); err != nil {
		return "", err
	}
	sum := sessions.Fingerprint(fmt.Sprint(q.Text, len(a.sums)))
	allowed := func() {}
	if a.judge != nil {
		allowed = a.judge(q.Text)
	}
	if err := q.Intend(ctx, sessions.Intent{Sum: sum}); err != nil {
		return "", err
	}
	allowed()
	if err := a.step(ctx, l, "intended", q); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.typed = append(a.typed, q.Text)
	if q.Raw {
		a.raws++
	}
	if a.sums == nil {
		a.sums = map[sessions.Sum]bool{}
	}
	a.sums[sum] = true
	takes, blind := a.takes, a.blind
	a.mu.Unlock()
	if err := a.step(ctx, l, "typed", q); err != nil {
		return "", err
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return "", fmt.Errorf("%w: %w", sessions.ErrInDoubt, ctx.Err())
	}
	if blind {
		return sessions.ReceiptTyped, nil
	}
	return sessions.ReceiptAccepted, nil
}

func (a *agent) witnessed(q sessions.WitnessRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.blind && a.sums[q.Intent.Sum]
}

func bindingFile(t *testing.T, w *world) Binding {
	t.Helper()
	b, err := bindings{dir: filepath.Join(w.root, "threads")}.read(sid)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// speaks has the agent say something, as the end of a turn or between two steps.
func (a *agent) speaks(text string, final bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, sessions.Said{Text: text, Final: final, At: time.Now(), Key: fmt.Sprint("key ", len(a.said))})
}

// told has the number of texts so far as its places.
func (a *agent) told(l *life, q sessions.ToldRequest) (sessions.Told, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.onTold != nil {
		a.onTold(l)
	}
	var t sessions.Told
	from := 0
	if q.Place != "" {
		from, _ = strconv.Atoi(q.Place)
	}
	for _, s := range a.said[from:] {
		if q.Place != "" || !s.At.Before(q.Since) {
			t.Said = append(t.Said, s)
		}
	}
	t.Next, t.Turn = strconv.Itoa(len(a.said)), a.turn
	return t, nil
}

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
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	channel = "C1"
	ann     = "U1" // onStep the list
	bob     = "U2" // not on it
	sid     = "id-1"
)

// env is a thread in Slack, an agent, and a manager between them, in the time of a synctest bubble.
type env struct {
	t     *testing.T
	slack *fakeSlack
	agent *fakeAgent
	root  string
	cwd   string // the session's folder
	ref   sessions.Ref

	tickets        TicketWriter
	permissionText func(sessions.Ref, sessions.PermissionRequest) PermissionRendering

	mu            sync.Mutex
	users         []string
	configInvalid bool // the configuration
	diskFull      bool // the disk
	maxAge        time.Duration
	clock         func() time.Time // this machine's clock; nil: it is right
	answerMode    relay.Answers    // which of the agent's texts are posted
	hooks         *fakeHooks       // what the agent reports; nil: nothing
	screen        *fakeScreen      // statuses and screens; nil: there are none
	events        []sessions.Event

	m    *Manager
	stop func()
}

// withEnv plays f in a bubble, with a manager that runs and a session that is announced.
func withEnv(t *testing.T, f func(w *env)) {
	t.Helper()
	withEnvSetup(t, func(*env) {}, f)
}

// withEnvSetup is run in a world that is changed before anything is in it.
func withEnvSetup(t *testing.T, change, f func(w *env)) {
	t.Helper()
	t.Parallel()
	dir, cwd := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &env{t: t, root: dir, cwd: cwd, ref: "standing:s", users: []string{ann}, maxAge: 15 * time.Minute}
		change(w)
		w.slack, w.agent = &fakeSlack{w: w}, &fakeAgent{w: w}
		t.Cleanup(func() { w.stop() }) // the one that runs by then
		w.start()
		w.announce()
		f(w)
	})
}

func (w *env) start() {
	w.t.Helper()
	life := &managerRun{}
	o := Options{Root: w.root, Agent: fakeAPI{life, w}, Commander: fakeCommander{w}, History: fakeAPI{life, w}, Reactions: fakeAPI{life, w},
		Poster: fakeAPI{life, w}, Fetcher: fakeAPI{life, w}, Folders: fakeAPI{life, w}, Sink: w, Tickets: w.tickets, Policy: w.policy,
		RenderAnswer: renderPages, IsSecret: func(text string) bool { return strings.Contains(text, "hunter2") },
		FileUploader: fakeAPI{life, w}, Reports: fakeAPI{life, w}, Now: w.clock, Channels: fakeAPI{life, w},
		Settings: func() Settings {
			return Settings{MaxAge: w.maxAge, Emoji: emoji, Answers: w.answerMode, MaxFile: 1 << 20}
		}}
	if w.hooks != nil {
		o.Reports = fakeAPIWithHooks{fakeAPI{life, w}}
	}
	o.PermissionText = w.permissionText
	if w.screen != nil {
		o.StatusSetter, o.ScreenReader = fakeAPI{life, w}, fakeAPI{life, w}
	}
	m, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	m.disk.Check = w.checkDisk
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	w.m = m
	w.stop = func() { cancel(); wg.Wait(); life.end() }
	m.Connected(true)
}

var emoji = map[binding.Mark]string{binding.MarkReceived: "eyes", binding.MarkTyped: "keyboard", binding.MarkAccepted: "white_check_mark", binding.MarkHeld: "hourglass",
	binding.MarkFailed: "warning", binding.MarkInDoubt: "grey_question"}

// checkDisk fails while the disk is full.
func (w *env) checkDisk(path string) error {
	w.mu.Lock()
	full := w.diskFull
	w.mu.Unlock()
	if full {
		if err := os.WriteFile("/dev/full", []byte("x"), 0); binding.IsDiskFull(err) {
			return err
		}
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC} // a system without that device
	}
	return nil
}

func (w *env) policy() authz.Policy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return authz.Policy{Users: slices.Clone(w.users), Team: "T1", Suspended: w.configInvalid}
}

func (w *env) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *env) Emit(_ context.Context, e sessions.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *env) announce() {
	w.t.Helper()
	err := w.m.Announce(context.Background(), AnnounceRequest{ID: sid, Ref: w.ref, Channel: channel, Started: time.Now(), Post: chat.Post{Text: "I am s"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.wait()
}

// wait lets everything that can happen at this moment happen.
func (w *env) wait() { synctest.Wait() }

// advance lets time pass.
func (w *env) advance(d time.Duration) {
	time.Sleep(d) // the bubble's time
	synctest.Wait()
}

// deliverEvent delivers the event of a message that is in the thread.
func (w *env) deliverEvent(ts string) {
	w.m.HandleReply(w.slack.reply(ts))
	w.wait()
}

// reply writes a reply in the thread and delivers its event.
func (w *env) reply(text string) string {
	ts := w.slack.write(ann, text)
	w.deliverEvent(ts)
	return ts
}

func (w *env) wantTyped(texts ...string) {
	w.t.Helper()
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if !slices.Equal(w.agent.typed, texts) {
		w.t.Errorf("typed %q; want %q", w.agent.typed, texts)
	}
}

func (w *env) wantPosts(parts ...string) {
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

func (w *env) wantReceipt(ts string, names ...string) {
	w.t.Helper()
	w.slack.mu.Lock()
	defer w.slack.mu.Unlock()
	if got := w.slack.find(ts).reactions; !slices.Equal(got, names) {
		w.t.Errorf("the reply shows %q; want %q", got, names)
	}
}

func (w *env) droppedReasons() (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Name == EventDropped {
			reasons = append(reasons, e.Fields["reason"].(string))
		}
	}
	return reasons
}

// managerRun ends: what a manager does after its process was killed reaches nobody.
type managerRun struct {
	mu    sync.Mutex
	ended bool
}

func (l *managerRun) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// blockIfEnded holds a call of a manager whose process was killed until somebody clears it away.
func (l *managerRun) blockIfEnded(ctx context.Context) error {
	if l.hasEnded() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l *managerRun) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// kill ends the manager as SIGKILL does: what is on disk at this moment is what the next one finds.
func (w *env) kill(l *managerRun) {
	l.end()
	for try := 0; ; try++ { // what is under way may still write, and a copy of two moments is none that a kill leaves
		next, before := w.t.TempDir(), treeStamp(w.root)
		err := os.CopyFS(next, os.DirFS(w.root))
		if err == nil && before == treeStamp(w.root) {
			w.root = next
			return
		}
		if try == 100 {
			w.t.Errorf("copy what is on disk: %v", err)
			return
		}
	}
}

// treeStamp changes when a file below root does.
func treeStamp(root string) string {
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

// fakeAPI is Slack and the agent as one run of the manager sees them.
type fakeAPI struct {
	*managerRun
	w *env
}

func (a fakeAPI) Submit(ctx context.Context, q sessions.SubmitRequest) (sessions.Receipt, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return "", err
	}
	return a.w.agent.submit(ctx, a.managerRun, q)
}

func (a fakeAPI) VerifyInput(ctx context.Context, q sessions.VerifyInputRequest) (bool, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return false, err
	}
	return a.w.agent.verifyInput(q), nil
}

func (a fakeAPI) ReadTranscript(ctx context.Context, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return sessions.TranscriptBatch{}, err
	}
	return a.w.agent.readTranscript(a.managerRun, q)
}

func (a fakeAPI) Folder(ctx context.Context, _ sessions.FolderRequest) (string, error) {
	return a.w.cwd, a.blockIfEnded(ctx)
}

func (a fakeAPI) Fetch(ctx context.Context, f chat.File, to io.Writer) error {
	if err := a.blockIfEnded(ctx); err != nil {
		return err
	}
	return a.w.slack.fetch(f, to)
}

func (a fakeAPI) Replies(ctx context.Context, channel, root, oldest, cursor string) (chat.Page, error) {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure(), a.w.slack.checkChannel(channel)); err != nil {
		return chat.Page{}, err
	}
	return a.w.slack.page(channel, root, oldest, cursor)
}

func (a fakeAPI) Reply(ctx context.Context, channel, _, ts string) (chat.Reply, error) {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure(), a.w.slack.checkChannel(channel)); err != nil {
		return chat.Reply{}, err
	}
	if m := a.w.slack.get(ts); m == nil {
		return chat.Reply{}, chat.ErrReplyGone
	}
	return a.w.slack.reply(ts), nil
}

func (a fakeAPI) FindPost(ctx context.Context, channel, root, nonce string, _ time.Time) (string, error) {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure(), a.w.slack.checkChannel(channel)); err != nil {
		return "", err
	}
	return a.w.slack.findNonce(root, nonce), nil
}

func (a fakeAPI) Post(ctx context.Context, p chat.Post) (string, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return "", err
	}
	return a.w.slack.post(a.managerRun, p)
}

func (a fakeAPI) Update(ctx context.Context, ts string, p chat.Post) error {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure()); err != nil {
		return err
	}
	if err := a.w.slack.update(ts, p); err != nil || a.w.slack.onUpdate == nil {
		return err
	}
	a.w.slack.onUpdate(a.managerRun)
	return a.blockIfEnded(ctx)
}

// Joined are the channel of the world and one that has nothing to do with it.
func (a fakeAPI) Joined(ctx context.Context) ([]string, error) {
	return []string{foreignChannel, a.w.slack.id()}, errors.Join(a.blockIfEnded(ctx), a.w.slack.failure())
}

func (a fakeAPI) AddReaction(ctx context.Context, channel, ts, emoji string) error {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure(), a.w.slack.checkChannel(channel)); err != nil {
		return err
	}
	return a.w.slack.react(ts, emoji, true)
}

func (a fakeAPI) RemoveReaction(ctx context.Context, _, ts, emoji string) error {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure()); err != nil {
		return err
	}
	return a.w.slack.react(ts, emoji, false)
}

type fakeCommander struct{ w *env }

func (c fakeCommander) Command(_ context.Context, q CommandRequest) string {
	return "did " + q.Command.Verb
}

// fakeSlack is one channel in memory.
type fakeSlack struct {
	w           *env
	mu          sync.Mutex
	messages    []*message
	last        time.Time
	err         error
	perPage     int          // replies in a page; 0: few
	noDates     bool         // responses tell no time
	newID       string       // the id that the channel has now; empty: [ChannelName]
	repliesRead atomic.Int64 // replies that were given out in pages
	// onPost is called for each post: before says that it was not done yet. It may kill the manager or return an error.
	onPost func(l *managerRun, before bool, p chat.Post) error
	// onUpdate is called after each change of a message. It may kill the manager.
	onUpdate func(l *managerRun)
	// onReact is called for each reaction, before anything else.
	onReact func(ts, emoji string, add bool) error
	// onFetch is called for each download.
	onFetch func(f chat.File) error
	// onUpload is called at the steps of posting a file.
	onUpload func(l *managerRun, step string, f chat.FileUpload) error
	uploads  map[string]string // contents by id
}

type message struct {
	ts, root, user, team, text string
	edited                     string
	files                      []chat.File
	unreadable                 []string // parts of it that no text says
	upload                     *chat.FileUpload
	post                       *chat.Post
	reactions                  []string
	deleted                    bool
}

func (s *fakeSlack) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// id is the channel's.
func (s *fakeSlack) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.newID, channel)
}

// foreignChannel is a channel that has nothing of the bot's in it.
const foreignChannel = "C-foreign"

// checkChannel is Slack's answer about a channel by an id that it does not have any more.
func (s *fakeSlack) checkChannel(id string) error {
	if id == foreignChannel || id == channel && s.id() != channel {
		return fmt.Errorf("channel_not_found: %w", chat.ErrUnavailable)
	}
	return nil
}

// move gives the channel another id.
func (s *fakeSlack) move(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newID = id
}

func (s *fakeSlack) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *fakeSlack) setOnPost(f func(l *managerRun, before bool, p chat.Post) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPost = f
}

func (s *fakeSlack) add(m *message) string {
	m.ts = s.tick()
	s.messages = append(s.messages, m)
	return m.ts
}

// tick is the next timestamp by Slack's clock: no two are equal.
func (s *fakeSlack) tick() string {
	now := time.Now()
	if !now.After(s.last) {
		now = s.last.Add(time.Microsecond)
	}
	s.last = now
	return chat.TimeTS(now)
}

// rootTS is the announcement's.
func (s *fakeSlack) rootTS() string {
	for _, m := range s.messages {
		if m.post != nil && m.root == "" && !m.deleted {
			return m.ts
		}
	}
	return ""
}

func (s *fakeSlack) write(user, text string) string { return s.writeOf("T1", user, text) }

func (s *fakeSlack) writeOf(team, user, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&message{root: s.rootTS(), user: user, team: team, text: text})
}

func (s *fakeSlack) find(ts string) *message {
	for _, m := range s.messages {
		if m.ts == ts && !m.deleted {
			return m
		}
	}
	return nil
}

func (s *fakeSlack) get(ts string) *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ts)
}

func (s *fakeSlack) edit(ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	m.text, m.edited = text, s.tick()
}

func (s *fakeSlack) remove(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find(ts).deleted = true
}

// reply is the message as an event tells it: with the text of that moment.
func (s *fakeSlack) reply(ts string) chat.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	r := chat.Reply{Channel: cmp.Or(s.newID, channel), Root: m.root, TS: ts, Edited: m.edited, Actor: authz.Actor{User: m.user, Team: m.team}}
	text, files, unreadable := m.text, slices.Clone(m.files), m.unreadable
	if rest, ok := strings.CutPrefix(text, "@bot "); ok {
		verb, rest, _ := strings.Cut(rest, " ")
		r.Command = &chat.Command{Verb: verb, Rest: rest}
	}
	r.Load = func(context.Context) (chat.Content, error) {
		return chat.Content{Actor: r.Actor, Speaker: "ann", Text: text, Unreadable: unreadable, Files: files}, nil
	}
	return r
}

// fetch gives a file out: its id is what is in it.
func (s *fakeSlack) fetch(f chat.File, to io.Writer) error {
	if s.onFetch != nil {
		if err := s.onFetch(f); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, f.ID)
	return err
}

func (s *fakeSlack) page(_, root, oldest, cursor string) (chat.Page, error) {
	s.mu.Lock()
	if s.find(root) == nil {
		s.mu.Unlock()
		return chat.Page{}, chat.ErrThreadGone
	}
	var ts []string
	for _, m := range s.messages {
		if m.root == root && m.post == nil && !m.deleted && chat.CompareTS(m.ts, oldest) > 0 && chat.CompareTS(m.ts, cursor) > 0 {
			ts = append(ts, m.ts)
		}
	}
	s.mu.Unlock()
	p := chat.Page{Now: time.Now()}
	if s.noDates {
		p.Now = time.Time{}
	}
	for i, t := range ts {
		if i == max(2, s.perPage) { // small pages, so that there are several
			p.Next = ts[i-1]
			break
		}
		p.Replies = append(p.Replies, s.reply(t))
		s.repliesRead.Add(1)
	}
	return p, nil
}

func (s *fakeSlack) findNonce(root, nonce string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && !m.deleted && m.post.Nonce == nonce && (m.root == root || m.ts == root) {
			return m.ts
		}
	}
	return ""
}

func (s *fakeSlack) post(l *managerRun, p chat.Post) (string, error) {
	unknown := s.checkChannel(p.Channel)
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
	s.w.screen.clearStatus()
	if hook != nil {
		if err := hook(l, false, p); err != nil {
			return "", err
		}
	}
	return ts, nil
}

func (s *fakeSlack) update(ts string, p chat.Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(ts)
	if m == nil {
		return chat.ErrReplyGone
	}
	m.text, m.post = p.Text, &p
	return nil
}

func (s *fakeSlack) react(ts, emoji string, add bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onReact != nil {
		if err := s.onReact(ts, emoji, add); err != nil {
			return err
		}
	}
	m := s.find(ts)
	if m == nil {
		return chat.ErrReplyGone
	}
	m.reactions = slices.DeleteFunc(m.reactions, func(e string) bool { return e == emoji })
	if add {
		m.reactions = append(m.reactions, emoji)
	}
	return nil
}

// posted are the messages of the bot in the thread.
func (s *fakeSlack) posted() (texts []string) {
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
func (s *fakeSlack) roots() (n int) {
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
func (s *fakeSlack) buttons() (ts string, all []chat.Button) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.post != nil && len(m.post.Buttons) > 0 && !m.deleted {
			ts, all = m.ts, m.post.Buttons
		}
	}
	return ts, all
}

// fakeAgent is a session that takes texts.
type fakeAgent struct {
	w             *env
	mu            sync.Mutex
	typed         []string
	raws          int
	sums          map[sessions.Sum]bool
	acceptDelay   time.Duration
	noProof       bool // it gives no proof
	messages      []sessions.AgentMessage
	turn          sessions.Turn
	reportedFiles []sessions.ReportedFile
	// onReadTranscript is called before an answer is given to what it said.
	onReadTranscript func(l *managerRun)
	// judge is called before a text is allowed into the pane, and what it returns when it was.
	checkTyped func(text string) (allowed func())
	// onStep is called at the steps of a Say; an error ends it there.
	onStep func(l *managerRun, step string, q sessions.SubmitRequest) error
}

func (a *fakeAgent) step(ctx context.Context, l *managerRun, step string, q sessions.SubmitRequest) error {
	a.mu.Lock()
	on := a.onStep
	a.mu.Unlock()
	if on != nil {
		if err := on(l, step, q); err != nil {
			return err
		}
	}
	return l.blockIfEnded(ctx)
}

func (a *fakeAgent) setOnStep(on func(l *managerRun, step string, q sessions.SubmitRequest) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onStep = on
}

func (a *fakeAgent) submit(ctx context.Context, l *managerRun, q sessions.SubmitRequest) (sessions.Receipt, error) {
	if q.ID != sid {
		return "", fmt.Errorf("another session: %q", q.ID)
	}
	if err := a.step(ctx, l, "look", q); err != nil {
		return "", err
	}
	sum := sessions.Fingerprint(fmt.Sprint(q.Text, len(a.sums)))
	allowed := func() {}
	if a.checkTyped != nil {
		allowed = a.checkTyped(q.Text)
	}
	if err := q.RecordIntent(ctx, sessions.Intent{Sum: sum}); err != nil {
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
	takes, blind := a.acceptDelay, a.noProof
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

func (a *fakeAgent) verifyInput(q sessions.VerifyInputRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.noProof && a.sums[q.Intent.Sum]
}

func bindingFile(t *testing.T, w *env) binding.Binding {
	t.Helper()
	b, err := binding.NewStore(filepath.Join(w.root, "threads"), nil).Read(sid)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// addMessage has the agent say something, as the end of a turn or between two steps.
func (a *fakeAgent) addMessage(text string, final bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages = append(a.messages, sessions.AgentMessage{Text: text, Final: final, At: time.Now(), Key: fmt.Sprint("key ", len(a.messages))})
}

// readTranscript has the number of texts so far as its places.
func (a *fakeAgent) readTranscript(l *managerRun, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.onReadTranscript != nil {
		a.onReadTranscript(l)
	}
	var t sessions.TranscriptBatch
	from := 0
	if q.Offset != "" {
		from, _ = strconv.Atoi(string(q.Offset))
	}
	for _, s := range a.messages[from:] {
		if q.Offset != "" || !s.At.Before(q.Since) {
			t.Messages = append(t.Messages, s)
		}
	}
	t.Next, t.Turn = sessions.Offset(strconv.Itoa(len(a.messages))), a.turn
	return t, nil
}

package threads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
)

// pages has each part between bars as a message, and what follows "whole:" as a file.
func pages(_ sessions.Ref, s sessions.Said) Rendering {
	text, whole, long := strings.Cut(s.Text, "whole:")
	r := Rendering{Texts: strings.Split(text, "|")}
	if long {
		r.Whole = &Whole{Name: "answer.md", Content: whole, Text: "all of it", Instead: "attach"}
	}
	return r
}

func (a alive) Noted(_ context.Context, q sessions.NotedRequest) (sessions.Noted, error) {
	if a.over() {
		return sessions.Noted{}, context.Canceled // the one who relays has no end of his own
	}
	a.w.agent.mu.Lock()
	defer a.w.agent.mu.Unlock()
	from, _ := strconv.Atoi(q.Place)
	return sessions.Noted{Files: slices.Clone(a.w.agent.notes[from:]), Next: strconv.Itoa(len(a.w.agent.notes)), Cwd: a.w.cwd}, nil
}

func (a alive) Attend(context.Context, sessions.AttendRequest) error { return nil }
func (a alive) Answer(context.Context, sessions.AnswerRequest) error { return nil }

func (a alive) Upload(ctx context.Context, f Parcel, content io.Reader) (string, error) {
	data, err := io.ReadAll(content)
	if err = errors.Join(err, a.carry(ctx, "upload", f)); err != nil {
		return "", err
	}
	s := a.w.slack
	s.mu.Lock()
	id := fmt.Sprint("F", len(s.uploads))
	if s.uploads == nil {
		s.uploads = map[string]string{}
	}
	s.uploads[id] = string(data)
	s.mu.Unlock()
	return id, a.carry(ctx, "uploaded", f)
}

func (a alive) Share(ctx context.Context, f Parcel, p Post) error {
	if err := a.carry(ctx, "share", f); err != nil {
		return err
	}
	s := a.w.slack
	s.mu.Lock()
	if _, ok := s.uploads[f.ID]; !ok {
		s.mu.Unlock()
		return ErrNotUploaded
	}
	s.add(&message{root: p.Root, text: f.Name + "=" + s.uploads[f.ID] + " " + p.Text, post: &Post{}, parcel: &f})
	s.mu.Unlock()
	return a.carry(ctx, "shared", f)
}

func (a alive) FindFile(ctx context.Context, f Parcel, p Post, since time.Time) (string, error) {
	if err := a.carry(ctx, "find", f); err != nil {
		return "", err
	}
	s := a.w.slack
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.parcel == nil || m.root != p.Root || TSTime(m.ts).Before(since.Add(-time.Minute)) {
			continue
		}
		if m.parcel.ID == f.ID || f.ID == "" && m.parcel.Name == f.Name && m.parcel.Size == f.Size {
			return m.ts, nil
		}
	}
	return "", nil
}

func (a alive) carry(ctx context.Context, step string, f Parcel) error {
	if err := errors.Join(a.err(ctx), a.w.slack.fails()); err != nil {
		return err
	}
	a.w.slack.mu.Lock()
	on := a.w.slack.onCarry
	a.w.slack.mu.Unlock()
	if on == nil {
		return nil
	}
	if err := on(a.life, step, f); err != nil {
		return err
	}
	return a.err(ctx)
}

func (s *slack) carrying(f func(l *life, step string, f Parcel) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCarry = f
}

// make writes a file in the session's folder.
func (w *world) make(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.cwd, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// reports has the agent report a file, and the bot hear of it.
func (w *world) reports(path, comment string) {
	w.agent.mu.Lock()
	w.agent.notes = append(w.agent.notes, sessions.NotedFile{Path: path, Comment: comment, At: time.Now()})
	w.agent.mu.Unlock()
	w.relay()
}

// left are the files in the outbox.
func (w *world) left() (names []string) {
	all, _ := os.ReadDir(filepath.Join(w.root, "outbox"))
	for _, n := range all {
		names = append(names, n.Name())
	}
	return names
}

func TestAReportedFileIsPostedInOrderWithItsComment(t *testing.T) {
	run(t, func(w *world) {
		w.posts = AnswersFinal
		w.make("out/plot.png", "pixels")
		w.agent.speaks("before", true)
		w.relay()
		w.reports("out/plot.png", "the plot")
		w.make("out/plot.png", "later pixels") // what was reported is what is posted
		w.agent.speaks("after", true)
		w.relay()
		w.after(time.Minute)
		w.wantPosts("before", "plot.png=pixels the plot", "after")
		if left := w.left(); len(left) != 0 {
			t.Errorf("left in the outbox: %v", left)
		}
	})
}

func TestAForgedReportIsRefused(t *testing.T) {
	run(t, func(w *world) {
		outside := filepath.Join(t.TempDir(), "passwd")
		if err := os.WriteFile(outside, []byte("root"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]string{"link": outside, "up": filepath.Dir(outside)} {
			if err := os.Symlink(to, filepath.Join(w.cwd, name)); err != nil {
				t.Fatal(err)
			}
		}
		w.make("dir/inner", "x")
		w.make("secret", strings.Repeat("x", lookPart-10)+"hunter2")
		w.make("big", strings.Repeat("x", 1<<20+1))
		w.make("empty", "")
		if err := syscall.Mkfifo(filepath.Join(w.cwd, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, c := range [][2]string{{outside, "outside"}, {"../x", "outside"}, {"dir/../../x", "outside"}, {"link", "opened"}, {"up/passwd", "opened"},
			{"dir", "folder"}, {"pipe", "a pipe"}, {"none", "no such file"}, {"secret", "value of the environment"}, {"big", "larger than 1 MB"}, {"empty", "is empty"}} {
			w.reports(c[0], "look")
			want = append(want, c[1])
		}
		w.after(time.Minute)
		w.wantPosts(want...)
		if len(w.slack.uploads) != 0 || len(w.left()) != 0 {
			t.Errorf("uploaded %d, left %v", len(w.slack.uploads), w.left())
		}
	})
}

// Killed at any step, the bot posts a file once.
func TestAFileIsPostedOnceThoughTheBotIsKilled(t *testing.T) {
	for _, step := range []string{"upload", "uploaded", "share", "shared", "find"} {
		t.Run(step, func(t *testing.T) {
			run(t, func(w *world) {
				w.make("a.txt", "content")
				killed := false
				w.slack.carrying(func(l *life, at string, _ Parcel) error {
					if step == "find" && at == "shared" { // so that the next run looks for it
						return ErrUnknown
					}
					var now bool
					w.set(func() { now = at == step && !killed; killed = killed || now })
					if now {
						w.kill(l)
					}
					return nil
				})
				w.reports("a.txt", "look")
				w.after(time.Minute)
				w.stop()
				w.start()
				w.relay()
				w.after(5 * time.Minute)
				if !killed {
					t.Error("it was not killed")
				}
				w.wantPosts("a.txt=content look")
				if left := w.left(); len(left) != 0 {
					t.Errorf("left in the outbox: %v", left)
				}
			})
		})
	}
}

// The file was posted, and the bot is killed before it is stored how far the reports were read.
func TestAFileThatIsReportedAgainAfterACrashIsPostedOnce(t *testing.T) {
	run(t, func(w *world) {
		w.make("a.txt", "content")
		before := bindingFile(t, w)
		w.reports("a.txt", "")
		w.after(time.Minute)
		w.stop()
		if err := (bindings{dir: filepath.Join(w.root, "threads")}).save(before); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.relay()
		w.after(time.Minute)
		w.wantPosts("a.txt=content")
	})
}

func TestAFileWaitsForSlackInItsPlace(t *testing.T) {
	run(t, func(w *world) {
		w.posts = AnswersFinal
		w.make("a.txt", "content")
		fails := 3
		w.slack.carrying(func(_ *life, at string, _ Parcel) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if at == "upload" && fails > 0 {
				fails--
				return &RateLimitedError{After: 10 * time.Second}
			}
			return nil
		})
		w.reports("a.txt", "")
		w.agent.speaks("after", true)
		w.relay()
		w.after(5 * time.Second)
		w.wantPosts()
		w.after(time.Minute)
		w.wantPosts("a.txt=content", "after")
	})
}

// A large file takes its time: what follows in its thread waits for it, and other threads do not.
func TestAnUploadThatTakesLongHoldsUpItsOwnThreadAlone(t *testing.T) {
	run(t, func(w *world) {
		other := Announcing{ID: "id-2", Ref: "standing:other", Channel: channel, Started: time.Now(), Post: Post{Text: "I am other"}}
		if err := w.m.Announce(context.Background(), other); err != nil {
			t.Fatal(err)
		}
		w.posts = AnswersFinal
		w.make("a.txt", "content")
		w.slack.carrying(func(_ *life, at string, _ Parcel) error {
			if at == "upload" {
				time.Sleep(30 * time.Second) // the bubble's time
			}
			return nil
		})
		w.reports("a.txt", "")
		w.agent.speaks("after", true)
		w.relay()
		w.m.Tell(context.Background(), "id-2", Telling{Text: "meanwhile"})
		w.after(20 * time.Second)
		w.wantPosts("meanwhile")
		w.after(time.Minute)
		w.wantPosts("meanwhile", "a.txt=content", "after")
		if n := len(w.slack.uploads); n != 1 {
			t.Errorf("uploaded %d times", n)
		}
	})
}

func TestAnUploadThatSlackForgotIsMadeAgain(t *testing.T) {
	run(t, func(w *world) {
		w.make("a.txt", "content")
		forgot := false
		w.slack.carrying(func(_ *life, at string, f Parcel) error {
			if at == "share" && !forgot {
				forgot = true
				w.slack.mu.Lock()
				delete(w.slack.uploads, f.ID)
				w.slack.mu.Unlock()
			}
			return nil
		})
		w.reports("a.txt", "")
		w.after(time.Minute)
		w.wantPosts("a.txt=content")
	})
}

func TestWhereFilesMayNotBePostedTheThreadIsTold(t *testing.T) {
	run(t, func(w *world) {
		w.posts = AnswersFinal
		w.make("a.txt", "content")
		w.slack.carrying(func(*life, string, Parcel) error { return &FileError{"the app lacks files:write"} })
		w.reports("a.txt", "look")
		w.agent.speaks("beginning|morewhole:everything", true)
		w.relay()
		w.after(time.Minute)
		w.wantPosts("`a.txt`, and it cannot be: the app lacks files:write", "beginning", "more", "attach")
		if left := w.left(); len(left) != 0 {
			t.Errorf("left in the outbox: %v", left)
		}
	})
}

func TestALongAnswerIsFollowedByTheWholeOfIt(t *testing.T) {
	run(t, func(w *world) {
		w.posts = AnswersFinal
		w.agent.speaks("beginning|morewhole:everything", true)
		w.agent.speaks("bigwhole:"+strings.Repeat("x", 1<<20+1), true)
		w.agent.speaks("secretwhole:hunter2", true)
		w.relay()
		w.after(time.Minute)
		w.wantPosts("beginning", "more", "answer.md=everything all of it", "big", "attach", "secret", "attach")
	})
}

func TestAnAgentCannotFillTheDiskWithFiles(t *testing.T) {
	run(t, func(w *world) {
		w.make("a.txt", "content")
		w.slack.fail(errors.New("away"))
		for range maxWaiting + 2 {
			w.reports("a.txt", "")
			w.after(time.Millisecond)
		}
		n := 0
		for _, name := range w.left() {
			if strings.HasSuffix(name, contentSuffix) {
				n++
			}
		}
		if n != maxWaiting {
			t.Errorf("%d files wait", n)
		}
		w.slack.fail(nil)
		w.after(10 * time.Minute)
		if posts := w.slack.posted(); len(posts) != maxWaiting+2 || !strings.Contains(posts[maxWaiting], "32 files wait") {
			t.Errorf("posted %d: %q", len(posts), posts[len(posts)-1])
		}
	})
}

// A value that lies across the parts in which a file is looked through is found.
func TestASecretIsFoundWhereverItLies(t *testing.T) {
	t.Parallel()
	o := &outbox{m: &Manager{o: Options{Secret: func(text string) bool { return strings.Contains(text, "hunter2") }}}}
	for _, at := range []int{0, lookPart - lookOverlap - 3, lookPart - 3, 2*lookPart - lookOverlap - 3, 3 * lookPart} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(strings.Repeat("x", at)+"hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := o.innocent(f); err == nil {
			t.Errorf("at %d it is not found", at)
		}
	}
}

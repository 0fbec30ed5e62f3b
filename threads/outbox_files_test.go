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
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/relay"
)

// renderPages has each part between bars as a message, and what follows "whole:" as a file.
func renderPages(_ sessions.Ref, s sessions.AgentMessage) relay.Rendering {
	text, whole, long := strings.Cut(s.Text, "whole:")
	r := relay.Rendering{Texts: strings.Split(text, "|")}
	if long {
		r.FullText = &relay.FullText{Name: "answer.md", Content: whole, Text: "all of it", Fallback: "attach"}
	}
	return r
}

func (a fakeAPI) ReadReports(_ context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error) {
	if a.hasEnded() {
		return sessions.ReportBatch{}, context.Canceled // the one who relays has no end of his own
	}
	a.w.agent.mu.Lock()
	defer a.w.agent.mu.Unlock()
	from, _ := strconv.Atoi(string(q.Offset))
	return sessions.ReportBatch{Files: slices.Clone(a.w.agent.reportedFiles[from:]), Next: sessions.Offset(strconv.Itoa(len(a.w.agent.reportedFiles))), Cwd: a.w.cwd}, nil
}

func (a fakeAPI) WaitResolved(context.Context, sessions.WaitResolvedRequest) error { return nil }
func (a fakeAPI) AnswerPermission(context.Context, sessions.AnswerPermissionRequest) error {
	return nil
}

func (a fakeAPI) Upload(ctx context.Context, f chat.FileUpload, content io.Reader) (string, error) {
	data, err := io.ReadAll(content)
	if err = errors.Join(err, a.uploadStep(ctx, "upload", f)); err != nil {
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
	return id, a.uploadStep(ctx, "uploaded", f)
}

func (a fakeAPI) Share(ctx context.Context, f chat.FileUpload, p chat.Post) error {
	if err := a.uploadStep(ctx, "share", f); err != nil {
		return err
	}
	s := a.w.slack
	s.mu.Lock()
	if _, ok := s.uploads[f.ID]; !ok {
		s.mu.Unlock()
		return chat.ErrNotUploaded
	}
	s.add(&message{root: p.Root, text: f.Name + "=" + s.uploads[f.ID] + " " + p.Text, post: &chat.Post{}, upload: &f})
	s.mu.Unlock()
	return a.uploadStep(ctx, "shared", f)
}

func (a fakeAPI) FindFile(ctx context.Context, f chat.FileUpload, p chat.Post, since time.Time) (string, error) {
	if err := a.uploadStep(ctx, "find", f); err != nil {
		return "", err
	}
	s := a.w.slack
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.upload == nil || m.root != p.Root || chat.TSTime(m.ts).Before(since.Add(-time.Minute)) {
			continue
		}
		if m.upload.ID == f.ID || f.ID == "" && m.upload.Name == f.Name && m.upload.Size == f.Size {
			return m.ts, nil
		}
	}
	return "", nil
}

func (a fakeAPI) uploadStep(ctx context.Context, step string, f chat.FileUpload) error {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure()); err != nil {
		return err
	}
	a.w.slack.mu.Lock()
	on := a.w.slack.onUpload
	a.w.slack.mu.Unlock()
	if on == nil {
		return nil
	}
	if err := on(a.managerRun, step, f); err != nil {
		return err
	}
	return a.blockIfEnded(ctx)
}

func (s *fakeSlack) setOnUpload(f func(l *managerRun, step string, f chat.FileUpload) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onUpload = f
}

// createFile writes a file in the session's folder.
func (w *env) createFile(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.cwd, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// reportFile has the agent report a file, and the bot hear of it.
func (w *env) reportFile(path, comment string) {
	w.agent.mu.Lock()
	w.agent.reportedFiles = append(w.agent.reportedFiles, sessions.ReportedFile{Path: path, Comment: comment, At: time.Now()})
	w.agent.mu.Unlock()
	w.relay()
}

// outboxFiles are the files in the outbox.
func (w *env) outboxFiles() (names []string) {
	all, _ := os.ReadDir(filepath.Join(w.root, "outbox"))
	for _, n := range all {
		names = append(names, n.Name())
	}
	return names
}

func TestAReportedFileIsPostedInOrderWithItsComment(t *testing.T) {
	withEnv(t, func(w *env) {
		w.answerMode = relay.AnswersFinal
		w.createFile("out/plot.png", "pixels")
		w.agent.addMessage("before", true)
		w.relay()
		w.reportFile("out/plot.png", "the plot")
		w.createFile("out/plot.png", "later pixels") // what was reported is what is posted
		w.agent.addMessage("after", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("before", "plot.png=pixels the plot", "after")
		if left := w.outboxFiles(); len(left) != 0 {
			t.Errorf("left in the outbox: %v", left)
		}
	})
}

func TestAForgedReportIsRefused(t *testing.T) {
	withEnv(t, func(w *env) {
		outside := filepath.Join(t.TempDir(), "passwd")
		if err := os.WriteFile(outside, []byte("root"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]string{"link": outside, "up": filepath.Dir(outside)} {
			if err := os.Symlink(to, filepath.Join(w.cwd, name)); err != nil {
				t.Fatal(err)
			}
		}
		w.createFile("dir/inner", "x")
		w.createFile("secret", strings.Repeat("x", 1<<20-20)+"hunter2")
		w.createFile("big", strings.Repeat("x", 1<<20+1))
		w.createFile("empty", "")
		if err := syscall.Mkfifo(filepath.Join(w.cwd, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, c := range [][2]string{{outside, "outside"}, {"../x", "outside"}, {"dir/../../x", "outside"}, {"link", "opened"}, {"up/passwd", "opened"},
			{"dir", "folder"}, {"pipe", "a pipe"}, {"none", "no such file"}, {"secret", "value of the environment"}, {"big", "larger than 1 MB"}, {"empty", "is empty"}} {
			w.reportFile(c[0], "look")
			want = append(want, c[1])
		}
		w.advance(time.Minute)
		w.wantPosts(want...)
		if len(w.slack.uploads) != 0 || len(w.outboxFiles()) != 0 {
			t.Errorf("uploaded %d, left %v", len(w.slack.uploads), w.outboxFiles())
		}
	})
}

// Killed at any step, the bot posts a file once.
func TestAFileIsPostedOnceThoughTheBotIsKilled(t *testing.T) {
	for _, step := range []string{"upload", "uploaded", "share", "shared", "find"} {
		t.Run(step, func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.createFile("a.txt", "content")
				killed := false
				w.slack.setOnUpload(func(l *managerRun, at string, _ chat.FileUpload) error {
					if step == "find" && at == "shared" { // so that the next run looks for it
						return chat.ErrOutcomeUnknown
					}
					var now bool
					w.locked(func() { now = at == step && !killed; killed = killed || now })
					if now {
						w.kill(l)
					}
					return nil
				})
				w.reportFile("a.txt", "look")
				w.advance(time.Minute)
				w.stop()
				w.start()
				w.relay()
				w.advance(5 * time.Minute)
				if !killed {
					t.Error("it was not killed")
				}
				w.wantPosts("a.txt=content look")
				if left := w.outboxFiles(); len(left) != 0 {
					t.Errorf("left in the outbox: %v", left)
				}
			})
		})
	}
}

// The file was posted, and the bot is killed before it is stored how far the reports were read.
func TestAFileThatIsReportedAgainAfterACrashIsPostedOnce(t *testing.T) {
	withEnv(t, func(w *env) {
		w.createFile("a.txt", "content")
		before := bindingFile(t, w)
		w.reportFile("a.txt", "")
		w.advance(time.Minute)
		w.stop()
		if err := binding.NewStore(filepath.Join(w.root, "threads"), nil).Save(before); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("a.txt=content")
	})
}

func TestAFileWaitsForSlackInItsPlace(t *testing.T) {
	withEnv(t, func(w *env) {
		w.answerMode = relay.AnswersFinal
		w.createFile("a.txt", "content")
		fails := 3
		w.slack.setOnUpload(func(_ *managerRun, at string, _ chat.FileUpload) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if at == "upload" && fails > 0 {
				fails--
				return &chat.RateLimitedError{After: 10 * time.Second}
			}
			return nil
		})
		w.reportFile("a.txt", "")
		w.agent.addMessage("after", true)
		w.relay()
		w.advance(5 * time.Second)
		w.wantPosts()
		w.advance(time.Minute)
		w.wantPosts("a.txt=content", "after")
	})
}

// A large file takes its time: what follows in its thread waits for it, and other threads do not.
func TestAnUploadThatTakesLongHoldsUpItsOwnThreadAlone(t *testing.T) {
	withEnv(t, func(w *env) {
		other := AnnounceRequest{ID: "id-2", Ref: "standing:other", Channel: channel, Started: time.Now(), Post: chat.Post{Text: "I am other"}}
		if err := w.m.Announce(context.Background(), other); err != nil {
			t.Fatal(err)
		}
		w.answerMode = relay.AnswersFinal
		w.createFile("a.txt", "content")
		w.slack.setOnUpload(func(_ *managerRun, at string, _ chat.FileUpload) error {
			if at == "upload" {
				time.Sleep(30 * time.Second) // the bubble's time
			}
			return nil
		})
		w.reportFile("a.txt", "")
		w.agent.addMessage("after", true)
		w.relay()
		w.m.Notify(context.Background(), "id-2", Notification{Text: "meanwhile"})
		w.advance(20 * time.Second)
		w.wantPosts("meanwhile")
		w.advance(time.Minute)
		w.wantPosts("meanwhile", "a.txt=content", "after")
		if n := len(w.slack.uploads); n != 1 {
			t.Errorf("uploaded %d times", n)
		}
	})
}

func TestAnUploadThatSlackForgotIsMadeAgain(t *testing.T) {
	withEnv(t, func(w *env) {
		w.createFile("a.txt", "content")
		forgot := false
		w.slack.setOnUpload(func(_ *managerRun, at string, f chat.FileUpload) error {
			if at == "share" && !forgot {
				forgot = true
				w.slack.mu.Lock()
				delete(w.slack.uploads, f.ID)
				w.slack.mu.Unlock()
			}
			return nil
		})
		w.reportFile("a.txt", "")
		w.advance(time.Minute)
		w.wantPosts("a.txt=content")
	})
}

func TestWhereFilesMayNotBePostedTheThreadIsTold(t *testing.T) {
	withEnv(t, func(w *env) {
		w.answerMode = relay.AnswersFinal
		w.createFile("a.txt", "content")
		w.slack.setOnUpload(func(*managerRun, string, chat.FileUpload) error {
			return &chat.FileError{Why: "the app lacks files:write"}
		})
		w.reportFile("a.txt", "look")
		w.agent.addMessage("beginning|morewhole:everything", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("`a.txt`, but it cannot be posted: the app lacks files:write", "beginning", "more", "attach")
		if left := w.outboxFiles(); len(left) != 0 {
			t.Errorf("left in the outbox: %v", left)
		}
	})
}

func TestALongAnswerIsFollowedByTheWholeOfIt(t *testing.T) {
	withEnv(t, func(w *env) {
		w.answerMode = relay.AnswersFinal
		w.agent.addMessage("beginning|morewhole:everything", true)
		w.agent.addMessage("bigwhole:"+strings.Repeat("x", 1<<20+1), true)
		w.agent.addMessage("secretwhole:hunter2", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("beginning", "more", "answer.md=everything all of it", "big", "attach", "secret", "attach")
	})
}

// pendingFiles is how many files of a session may wait.
const pendingFiles = 32

func TestAnAgentCannotFillTheDiskWithFiles(t *testing.T) {
	withEnv(t, func(w *env) {
		w.createFile("a.txt", "content")
		w.slack.setErr(errors.New("away"))
		for range pendingFiles + 2 {
			w.reportFile("a.txt", "")
			w.advance(time.Millisecond)
		}
		n := 0
		for _, name := range w.outboxFiles() {
			if strings.HasSuffix(name, ".file") {
				n++
			}
		}
		if n != pendingFiles {
			t.Errorf("%d files wait", n)
		}
		w.slack.setErr(nil)
		w.advance(10 * time.Minute)
		if posts := w.slack.posted(); len(posts) != pendingFiles+2 || !strings.Contains(posts[pendingFiles], "32 files wait") {
			t.Errorf("posted %d: %q", len(posts), posts[len(posts)-1])
		}
	})
}

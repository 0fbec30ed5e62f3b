package threads

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// replyWithFiles writes a reply with files and delivers its event.
func (w *env) replyWithFiles(text string, files ...chat.File) string {
	ts := w.slack.write(ann, text)
	w.slack.get(ts).files = files
	w.deliverEvent(ts)
	return ts
}

func (w *env) inboxPath(ts, name string) string {
	return filepath.Join(w.cwd, ".the-loop-inbox", ts, name)
}

func (w *env) wantFile(path, content string) {
	w.t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != content {
		w.t.Errorf("%s holds %.100q, %v; want %.100q", path, data, err, content)
	}
}

func TestTheTextNamesTheFilesThatCameWithIt(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.replyWithFiles("look", chat.File{ID: "one", Name: "a.txt"}, chat.File{ID: "two", Name: "../a.txt"},
			chat.File{ID: "three", Name: "plan\n!x", Elsewhere: true, Link: "https://drive.example/x"}, chat.File{ID: "four", Name: "big", Size: 2 << 20})
		w.wantTyped("look\nAttached file: " + w.inboxPath(ts, "a.txt") + "\nAttached file: " + w.inboxPath(ts, "a-2.txt") +
			"\nAttached link: plan__x https://drive.example/x\nAttachment big could not be downloaded: it is larger than 1 MB")
		w.wantFile(w.inboxPath(ts, "a.txt"), "one")
		w.wantFile(w.inboxPath(ts, "a-2.txt"), "two")
		w.wantPosts("did not get the file `big`: it is larger than 1 MB")
		bare := w.replyWithFiles("", chat.File{ID: "five", Name: "b.png"})
		w.advance(time.Second)
		if got := w.agent.typed[len(w.agent.typed)-1]; got != "Attached file: "+w.inboxPath(bare, "b.png") {
			t.Errorf("typed %q", got)
		}
	})
}

// What the text of a reply can only name is told to the thread as well, beside the files that are missing.
func TestTheThreadIsToldWhatTheAgentDoesNotGet(t *testing.T) {
	withEnv(t, func(w *env) {
		for _, files := range [][]chat.File{nil, {{ID: "one", Name: "big", Size: 2 << 20}}} {
			ts := w.slack.write(ann, "look\n[not readable here: a part of the kind “x”]")
			w.slack.get(ts).files = files
			w.slack.get(ts).unreadable = []string{"a part of the kind “x”", "a <b>", "c", "d", "e", "f"}
			w.deliverEvent(ts)
			w.advance(5 * time.Second)
		}
		w.wantPosts("The agent did not get all of this message, I cannot read: a part of the kind “x”, a &lt;b&gt;, c, d, e and 1 more. Write it as text.",
			"Write it as text.\nThe agent did not get the file `big`: it is larger than 1 MB.")
		w.wantTyped("look\n[not readable here: a part of the kind “x”]",
			"look\n[not readable here: a part of the kind “x”]\nAttachment big could not be downloaded: it is larger than 1 MB")
	})
}

// Whatever its size was said to be, no more than the limit is taken.
func TestAFileIsCutOffAtTheLimit(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.replyWithFiles("look", chat.File{ID: strings.Repeat("x", 1<<20+1), Name: "a.txt", Size: 5})
		w.wantTyped("look\nAttachment a.txt could not be downloaded: it is larger than 1 MB")
		if left, _ := os.ReadDir(filepath.Dir(w.inboxPath(ts, "a.txt"))); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

func TestAFileThatCannotBeFetchedNowIsWaitedFor(t *testing.T) {
	withEnv(t, func(w *env) {
		tries, failures := 0, 3
		w.slack.onFetch = func(f chat.File) error {
			if f.ID != "two" {
				return nil
			}
			if tries++; tries > failures {
				return nil
			}
			return fmt.Errorf("fetch: %w", &chat.RateLimitedError{After: 20 * time.Second})
		}
		ts := w.replyWithFiles("look", chat.File{ID: "one", Name: "a"}, chat.File{ID: "two", Name: "b"})
		after := w.reply("and this")
		w.wantTyped()
		w.advance(70 * time.Second)
		w.wantTyped("look\nAttached file: "+w.inboxPath(ts, "a")+"\nAttached file: "+w.inboxPath(ts, "b"), "and this")
		w.wantReceipt(after, "white_check_mark")
		w.wantPosts()
	})
}

func TestAFileIsNotWaitedForWithoutEnd(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.onFetch = func(chat.File) error { return errors.New("no route") }
		w.replyWithFiles("look", chat.File{ID: "one", Name: "a"})
		w.advance(4 * time.Minute)
		w.wantTyped()
		w.advance(2 * time.Minute)
		w.wantTyped("look\nAttachment a could not be downloaded: it could not be fetched: no route")
		w.wantPosts("did not get the file `a`: it could not be fetched: no route")
	})
}

// While a dialog holds a reply, it is tried again and again with the same text, and its files are fetched once.
func TestFilesAreFetchedOnceForAReplyThatIsHeld(t *testing.T) {
	withEnv(t, func(w *env) {
		fetched, texts, open := 0, map[string]bool{}, false // w.mu guards them
		w.slack.onFetch = func(f chat.File) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if fetched++; f.Name == "gone" {
				return &chat.FileError{Why: "it is no longer in Slack"}
			}
			return nil
		}
		w.agent.setOnStep(func(_ *managerRun, step string, q sessions.SubmitRequest) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if texts[q.Text] = true; step == "look" && !open {
				return &sessions.HeldError{State: sessions.ViewDialog}
			}
			return nil
		})
		ts := w.replyWithFiles("look", chat.File{ID: "one", Name: "a", Size: 99}, chat.File{ID: "two", Name: "gone"}) // Slack may be wrong about the size
		w.advance(10 * time.Second)
		w.wantTyped()
		w.locked(func() { open = true })
		w.advance(2 * time.Second)
		w.wantTyped("look\nAttached file: " + w.inboxPath(ts, "a") + "\nAttachment gone could not be downloaded: it is no longer in Slack")
		if fetched != 2 || len(texts) != 1 {
			t.Errorf("fetched %d times, for %d texts", fetched, len(texts))
		}
		w.wantPosts("Held", "did not get the file `gone`")
	})
}

// A bot that is killed between the fetch and the paste fetches nothing again, and the thread is told once what is missing.
func TestAKillBetweenFetchAndPaste(t *testing.T) {
	for _, step := range []string{"look", "intended", "typed"} {
		t.Run(step, func(t *testing.T) {
			withEnv(t, func(w *env) {
				fetched, killed := 0, false // w.mu guards them
				w.slack.onFetch = func(f chat.File) error {
					if f.Name == "gone" {
						return &chat.FileError{Why: "it is no longer in Slack"}
					}
					w.locked(func() { fetched++ })
					return nil
				}
				w.agent.setOnStep(func(l *managerRun, at string, _ sessions.SubmitRequest) error {
					var now bool
					w.locked(func() { now = at == step && !killed; killed = killed || now })
					if now {
						w.kill(l)
					}
					return nil
				})
				w.replyWithFiles("look", chat.File{ID: "one", Name: "a", Size: 3}, chat.File{ID: "two", Name: "gone"})
				w.stop()
				w.start()
				w.advance(time.Minute)
				if fetched != 1 {
					t.Errorf("fetched %d times", fetched)
				}
				w.agent.mu.Lock()
				defer w.agent.mu.Unlock()
				told := strings.Count(strings.Join(w.slack.posted(), "\n"), "did not get the file")
				if asked := step == "intended"; told != 1 || len(w.agent.typed) != 1 && !asked {
					t.Errorf("told %d times, typed %q", told, w.agent.typed)
				}
			})
		})
	}
}

func TestAFileThatIsTakenBackWhileItIsFetchedIsNotTyped(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.onFetch = func(chat.File) error { return errors.New("slow") }
		ts := w.replyWithFiles("look", chat.File{ID: "one", Name: "a"})
		w.slack.remove(ts)
		w.m.ReplyDeleted(channel, w.slack.rootTS(), ts)
		w.advance(10 * time.Minute)
		w.wantTyped()
	})
}

package bot_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/bot/workspace"
)

// inbox is where a file of a reply lies.
func (a *agent) inbox(ts, name string) string {
	return filepath.Join(a.w.plan.TmuxDir, ".the-loop-inbox", ts, name)
}

// holds fails unless the file has this content, and nobody else may read it.
func (a *agent) holds(path, content string) {
	a.w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		a.w.t.Errorf("%s holds %.100q, %v; want %.100q", path, data, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		a.w.t.Errorf("%v, %v", info, err)
	}
}

func TestFilesOfAReplyReachTheAgentsFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	log, picture := strings.Repeat("a line of the log\n", 30_000), "\x89PNG\r\n\x1a\n\x00\xff"
	ts := a.tells("look at these", workspace.WithFiles(workspace.File{Name: "build.log", Content: []byte(log)},
		workspace.File{Name: "../../.ssh/\x1b[31mid rsa`", Content: []byte(picture), Mimetype: "image/png"}))
	a.wants("look at these\nAttached file: " + a.inbox(ts, "build.log") + "\nAttached file: " + a.inbox(ts, "31mid_rsa_"))
	a.holds(a.inbox(ts, "build.log"), log)
	a.holds(a.inbox(ts, "31mid_rsa_"), picture)
	if ignore, err := os.ReadFile(filepath.Join(w.plan.TmuxDir, ".the-loop-inbox", ".gitignore")); string(ignore) != "*\n" {
		t.Errorf("%q, %v", ignore, err)
	}
}

func TestFilesThatAreNotToBeHadAreNamedToBothSides(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	t.Cleanup(foreign.Close)
	w := newWorld(t)
	a := w.agent("helper")
	for name, c := range map[string]struct {
		file workspace.File
		why  string
	}{
		"too large":      {workspace.File{Name: "big.bin", Content: make([]byte, 1<<20+1)}, "larger than 1 MB"},
		"a foreign host": {workspace.File{Name: "evil.txt", URLPrivate: foreign.URL + "/evil"}, "not one of Slack's"},
	} {
		ts := a.tells(name, workspace.WithFiles(c.file, workspace.File{Name: "good.txt", Content: []byte(name)}))
		a.answer("did not get the file", c.file.Name, c.why)
		a.holds(a.inbox(ts, "good.txt"), name)
		if got := a.got(); !contains(got[len(got)-1], name+"\nAttached, but not here: "+c.file.Name, c.why) {
			t.Errorf("%s: the agent was told %q", name, got[len(got)-1])
		}
	}
	w.Faults().API("file", 1, workspace.HTML(http.StatusOK))
	a.tells("", workspace.WithFiles(workspace.File{Name: "x.txt", Content: []byte("x")}))
	a.answer("did not get the file", "x.txt", "sign-in page")
	a.tells("", workspace.WithFiles(workspace.File{Name: "Doc", IsExternal: true, URLPrivate: "https://docs.example/doc"}))
	if got := a.got(); got[len(got)-1] != "Attached link: Doc https://docs.example/doc" {
		t.Errorf("the agent was told %q", got[len(got)-1])
	}
	if asked.Load() != 0 {
		t.Error("the foreign host was spoken to")
	}
}

func TestALinkInPlaceOfTheInboxIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(w.plan.TmuxDir, ".the-loop-inbox")); err != nil {
		t.Fatal(err)
	}
	a.tells("look", workspace.WithFiles(workspace.File{Name: "a.txt", Content: []byte("x")}))
	a.answer("did not get the file", "a.txt", ".the-loop-inbox is a link", "remove it")
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("written: %v, %v", left, err)
	}
}

// Slack in trouble: the file comes later, and so does the reply, in its place.
func TestAReplyWaitsForItsFileWhileSlackIsInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.Faults().API("file", 1, workspace.RateLimited("1"))
	ts := a.reply("look", workspace.WithFiles(workspace.File{Name: "a.txt", Content: []byte("x")}))
	a.tells("and then")
	a.wants("look\nAttached file: "+a.inbox(ts, "a.txt"), "and then")
}

// Killed at any moment of a reply with a file: it is typed once, with the file there, and the file is fetched once or, when
// the kill came in the middle of it, once more.
func TestABotThatIsKilledWhileItFetchesTypesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk, unattended)
	bot := w.spawn()
	a := w.agent("helper")
	texts := map[string]string{}
	const rounds = 8
	for i := range rounds {
		content := fmt.Sprintf("content %d", i)
		if i%2 == 0 {
			w.Faults().API("file", 1, workspace.Delay(50*time.Millisecond))
		}
		ts := a.reply(fmt.Sprint("round ", i), workspace.WithFiles(workspace.File{Name: "a.txt", Content: []byte(content)}))
		texts[ts] = fmt.Sprintf("round %d\nAttached file: %s", i, a.inbox(ts, "a.txt"))
		w.after(150 * time.Millisecond)
		bot.kill()
		bot = w.spawn()
	}
	t.Logf("%d in doubt", a.accounts(texts))
	a.tells("the end")
	for ts := range texts {
		a.holds(a.inbox(ts, "a.txt"), strings.Replace(strings.SplitN(texts[ts], "\n", 2)[0], "round", "content", 1))
	}
	if n := len(w.RequestsOf("file")); n > 2*rounds {
		t.Errorf("fetched %d times", n)
	}
}

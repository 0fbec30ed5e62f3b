package bot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack/app"
	"the-loop/sessions"
	"the-loop/sessions/harness/report"
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
	ts := a.tells("look at these", localslack.WithFiles(localslack.File{Name: "build.log", Content: []byte(log)},
		localslack.File{Name: "../../.ssh/\x1b[31mid rsa`", Content: []byte(picture), Mimetype: "image/png"}))
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
		file localslack.File
		why  string
	}{
		"too large":      {localslack.File{Name: "big.bin", Content: make([]byte, 1<<20+1)}, "larger than 1 MB"},
		"a foreign host": {localslack.File{Name: "evil.txt", URLPrivate: foreign.URL + "/evil"}, "not one of Slack's"},
	} {
		ts := a.tells(name, localslack.WithFiles(c.file, localslack.File{Name: "good.txt", Content: []byte(name)}))
		a.answer("did not get the file", c.file.Name, c.why)
		a.holds(a.inbox(ts, "good.txt"), name)
		if got := a.got(); !contains(got[len(got)-1], name+"\nAttachment "+c.file.Name+" could not be downloaded", c.why) {
			t.Errorf("%s: the agent was told %q", name, got[len(got)-1])
		}
	}
	w.Faults().InjectAPI("file", 1, localslack.HTML(http.StatusOK))
	a.tells("", localslack.WithFiles(localslack.File{Name: "x.txt", Content: []byte("x")}))
	a.answer("did not get the file", "x.txt", "sign-in page")
	a.tells("", localslack.WithFiles(localslack.File{Name: "Doc", IsExternal: true, URLPrivate: "https://docs.example/doc"}))
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
	a.tells("look", localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte("x")}))
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
	w.Faults().InjectAPI("file", 1, localslack.RateLimited("1"))
	ts := a.reply("look", localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte("x")}))
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
			w.Faults().InjectAPI("file", 1, localslack.Delay(50*time.Millisecond))
		}
		ts := a.reply(fmt.Sprint("round ", i), localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte(content)}))
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

// file waits for a file of the bot's in the thread, and returns what is in it.
func (a *agent) file(name string) string {
	a.w.t.Helper()
	var content string
	a.w.until("the file "+name, func() bool {
		for _, m := range a.answers() {
			for _, f := range m.Files {
				if f.Name == name {
					content = string(f.Content)
					return true
				}
			}
		}
		return false
	})
	return content
}

// posts reports a file as the agent does.
func (a *agent) posts(path, comment string) {
	a.w.t.Helper()
	file, err := report.Path(filepath.Join(a.w.plan.Root, "reports"), a.id)
	if err != nil {
		a.w.t.Fatal(err)
	}
	payload, err := json.Marshal(report.FilePayload{Path: path, Comment: comment})
	if err == nil {
		err = report.Append(file, report.Report{At: time.Now(), Event: report.EventFile, Payload: payload})
	}
	if err != nil {
		a.w.t.Fatal(err)
	}
}

// makes writes a file in the session's folder.
func (a *agent) makes(name, content string) {
	a.w.t.Helper()
	path := filepath.Join(a.w.plan.TmuxDir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		a.w.t.Fatal(err)
	}
}

// listed waits until the bot follows the session's reports: what was reported before its thread is not posted.
func (a *agent) listed() {
	a.w.t.Helper()
	a.w.until("the reports to be followed", func() bool {
		b, _ := a.binding()
		return b.ReportOffset != ""
	})
}

func TestAFileThatTheAgentReportsArrivesInItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listed()
	a.makes("out/plot.png", "\x89PNG pixels")
	a.posts("out/plot.png", "The **plot** for <!channel> & @here")
	if got := a.file("plot.png"); got != "\x89PNG pixels" {
		t.Errorf("the file holds %q", got)
	}
	m := a.answer("The *plot* for")
	if !contains(m.Text, "&lt;!channel&gt; &amp;") || strings.Contains(m.Text, "@here") || m.ThreadTS != a.root || len(m.Files) != 1 {
		t.Errorf("posted as %+v", m)
	}
	w.outboxEmpty()
}

func TestNothingFromOutsideTheSessionsFolderIsPosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.options = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		}
	})
	a := w.agent("helper")
	a.listed()
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := errors.Join(os.WriteFile(outside, []byte("root"), 0o600), os.Symlink(outside, filepath.Join(w.plan.TmuxDir, "link"))); err != nil {
		t.Fatal(err)
	}
	a.makes("keys.txt", "key: "+secret+"\n")
	a.makes("big.bin", strings.Repeat("x", 1<<20+1))
	for path, why := range map[string]string{"link": "cannot be opened", outside: "outside of the session's folder", "../x": "outside of the session's folder",
		"keys.txt": "value of the environment", "big.bin": "larger than 1 MB"} {
		a.posts(path, "look: "+secret)
		a.answer("The agent wanted to post the file", filepath.Base(path), why)
	}
	if n := len(w.RequestsOf("upload")); n != 0 {
		t.Errorf("%d uploads", n)
	}
	for _, m := range a.answers() {
		if strings.Contains(m.Text, secret) || len(m.Files) > 0 {
			t.Errorf("posted %q with %d files", m.Text, len(m.Files))
		}
	}
}

func TestFilesReportedWhileTheBotWasDownArePostedInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listed()
	w.stop()
	for i := range 3 {
		name := fmt.Sprintf("%d.txt", i)
		a.makes(name, "content "+name)
		a.posts(name, "file "+name)
	}
	w.start()
	a.file("2.txt")
	var got []string
	for _, m := range a.answers() {
		for _, f := range m.Files {
			got = append(got, f.Name+" "+string(f.Content)+" "+m.Text)
		}
	}
	if want := []string{"0.txt content 0.txt file 0.txt", "1.txt content 1.txt file 1.txt", "2.txt content 2.txt file 2.txt"}; !slices.Equal(got, want) {
		t.Errorf("posted %q", got)
	}
}

// Slack posted the file, and its answer was lost: it is found and not posted again.
func TestAFileWhoseAnswerIsLostIsPostedOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]localslack.APIFault{"cut": localslack.CutAfter(), "internal error": localslack.Error("internal_error"), "nothing done": localslack.CutBefore()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.agent("helper")
			a.listed()
			w.Faults().InjectAPI("files.completeUploadExternal", 1, fault)
			a.makes("a.txt", "content")
			a.posts("a.txt", "look")
			a.file("a.txt")
			w.outboxEmpty()
			if n := a.count("look"); n != 1 {
				t.Errorf("posted %d times", n)
			}
		})
	}
}

func TestABotThatIsKilledAnywherePostsEachFileOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unattended, bulk)
	child := w.spawn()
	a := w.agent("helper")
	a.listed()
	const rounds = 8
	for i := range rounds {
		name := fmt.Sprintf("file-%d.txt", i)
		a.makes(name, "content of "+name)
		if i%2 == 0 {
			w.Faults().InjectAPI([]string{"upload", "files.completeUploadExternal"}[i/2%2], 1, localslack.Delay(50*time.Millisecond))
		}
		a.posts(name, "")
		w.after(150 * time.Millisecond)
		child.kill()
		child = w.spawn()
	}
	a.file(fmt.Sprintf("file-%d.txt", rounds-1))
	w.outboxEmpty()
	var got, want []string
	for _, m := range a.answers() {
		for _, f := range m.Files {
			got = append(got, f.Name)
		}
	}
	for i := range rounds {
		want = append(want, fmt.Sprintf("file-%d.txt", i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("posted %q", got)
	}
}

func TestWithoutTheScopeTheThreadSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering, func(s *setup) {
		s.workspace.Scopes = slices.DeleteFunc(app.Scopes(), func(s string) bool { return s == "files:write" })
	})
	a := w.agent("helper")
	a.listed()
	a.makes("a.txt", "content")
	a.posts("a.txt", "look")
	a.answer("`a.txt`", "lacks the scope files:write", "reinstall")
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: "say: " + strings.Repeat("a long line of words\n", 2_000)}); err != nil {
		t.Fatal(err)
	}
	a.answer("This was the beginning of", "the-loop attach helper")
	w.outboxEmpty()
}

func TestAnAnswerOf400kBIsPostedAsItsBeginningAndTheWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering, func(s *setup) {
		s.options = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		}
	})
	a := w.agent("helper")
	text := "# All of it\n\n" + strings.Repeat("A line with <marks> & ünïcode, and "+secret+".\n", 8_000) + "the end"
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: "say: " + text}); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(text, secret, "[API_KEY]")
	if got := a.file("answer.md"); got != want {
		t.Errorf("the whole has %d bytes; want %d", len(got), len(want))
	}
	if a.count("All of it") == 0 || a.count(secret) != 0 {
		t.Errorf("the beginning is %.200q", a.texts())
	}
	a.answer("This was the beginning of")
	w.outboxEmpty()
}

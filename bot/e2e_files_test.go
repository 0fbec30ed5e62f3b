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

// inboxPath is where a file of a reply lies.
func (a *testSession) inboxPath(ts, name string) string {
	return filepath.Join(a.env.botConfig.TmuxDir, ".the-loop-inbox", ts, name)
}

// wantFile fails unless the file has this content, and nobody else may read it.
func (a *testSession) wantFile(path, content string) {
	a.env.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		a.env.t.Errorf("%s holds %.100q, %v; want %.100q", path, data, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		a.env.t.Errorf("%v, %v", info, err)
	}
}

func TestFilesOfAReplyReachTheAgentsFolder(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	log, picture := strings.Repeat("a line of the log\n", 30_000), "\x89PNG\r\n\x1a\n\x00\xff"
	ts := a.replyAccepted("look at these", localslack.WithFiles(localslack.File{Name: "build.log", Content: []byte(log)},
		localslack.File{Name: "../../.ssh/\x1b[31mid rsa`", Content: []byte(picture), Mimetype: "image/png"}))
	a.wantReceived("look at these\nAttached file: " + a.inboxPath(ts, "build.log") + "\nAttached file: " + a.inboxPath(ts, "31mid_rsa_"))
	a.wantFile(a.inboxPath(ts, "build.log"), log)
	a.wantFile(a.inboxPath(ts, "31mid_rsa_"), picture)
	if ignore, err := os.ReadFile(filepath.Join(w.botConfig.TmuxDir, ".the-loop-inbox", ".gitignore")); string(ignore) != "*\n" {
		t.Errorf("%q, %v", ignore, err)
	}
}

func TestFilesThatCannotBeDownloadedAreNamedToBothSides(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	t.Cleanup(foreign.Close)
	w := newEnv(t)
	a := w.startSession("helper")
	for name, c := range map[string]struct {
		file localslack.File
		why  string
	}{
		"too large":      {localslack.File{Name: "big.bin", Content: make([]byte, 1<<20+1)}, "larger than 1 MB"},
		"a foreign host": {localslack.File{Name: "evil.txt", URLPrivate: foreign.URL + "/evil"}, "not one of Slack's"},
	} {
		ts := a.replyAccepted(name, localslack.WithFiles(c.file, localslack.File{Name: "good.txt", Content: []byte(name)}))
		a.waitBotMessage("did not get the file", c.file.Name, c.why)
		a.wantFile(a.inboxPath(ts, "good.txt"), name)
		if got := a.receivedTexts(); !containsAll(got[len(got)-1], name+"\nAttachment "+c.file.Name+" could not be downloaded", c.why) {
			t.Errorf("%s: the agent was told %q", name, got[len(got)-1])
		}
	}
	w.Faults().InjectAPI("file", 1, localslack.HTML(http.StatusOK))
	a.replyAccepted("", localslack.WithFiles(localslack.File{Name: "x.txt", Content: []byte("x")}))
	a.waitBotMessage("did not get the file", "x.txt", "sign-in page")
	a.replyAccepted("", localslack.WithFiles(localslack.File{Name: "Doc", IsExternal: true, URLPrivate: "https://docs.example/doc"}))
	if got := a.receivedTexts(); got[len(got)-1] != "Attached link: Doc https://docs.example/doc" {
		t.Errorf("the agent was told %q", got[len(got)-1])
	}
	if asked.Load() != 0 {
		t.Error("the foreign host was spoken to")
	}
}

func TestALinkInPlaceOfTheInboxIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(w.botConfig.TmuxDir, ".the-loop-inbox")); err != nil {
		t.Fatal(err)
	}
	a.replyAccepted("look", localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte("x")}))
	a.waitBotMessage("did not get the file", "a.txt", ".the-loop-inbox is a link", "remove it")
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("written: %v, %v", left, err)
	}
}

// Slack in trouble: the file comes later, and so does the reply, in its place.
func TestAReplyWaitsForItsFileWhileSlackIsInTrouble(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.Faults().InjectAPI("file", 1, localslack.RateLimited("1"))
	ts := a.reply("look", localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte("x")}))
	a.replyAccepted("and then")
	a.wantReceived("look\nAttached file: "+a.inboxPath(ts, "a.txt"), "and then")
}

// Killed at any moment of a reply with a file: it is typed once, with the file there, and the file is fetched once or, when
// the kill came in the middle of it, once more.
func TestABotThatIsKilledDuringADownloadTypesOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	bot := w.startBotProcess()
	a := w.startSession("helper")
	texts := map[string]string{}
	const rounds = 8
	for i := range rounds {
		content := fmt.Sprintf("content %d", i)
		if i%2 == 0 {
			w.Faults().InjectAPI("file", 1, localslack.Delay(50*time.Millisecond))
		}
		ts := a.reply(fmt.Sprint("round ", i), localslack.WithFiles(localslack.File{Name: "a.txt", Content: []byte(content)}))
		texts[ts] = fmt.Sprintf("round %d\nAttached file: %s", i, a.inboxPath(ts, "a.txt"))
		w.sleepRandom(150 * time.Millisecond)
		bot.kill()
		bot = w.startBotProcess()
	}
	t.Logf("%d in doubt", a.checkReplies(texts))
	a.replyAccepted("the end")
	for ts := range texts {
		a.wantFile(a.inboxPath(ts, "a.txt"), strings.Replace(strings.SplitN(texts[ts], "\n", 2)[0], "round", "content", 1))
	}
	if n := len(w.RequestsOf("file")); n > 2*rounds {
		t.Errorf("fetched %d times", n)
	}
}

// waitPostedFile waits for a file of the bot's in the thread, and returns what is in it.
func (a *testSession) waitPostedFile(name string) string {
	a.env.t.Helper()
	var content string
	a.env.waitUntil("the file "+name, func() bool {
		for _, m := range a.botMessages() {
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

// reportFile reports a file as the agent does.
func (a *testSession) reportFile(path, comment string) {
	a.env.t.Helper()
	file, err := report.Path(filepath.Join(a.env.botConfig.Root, "reports"), a.id)
	if err != nil {
		a.env.t.Fatal(err)
	}
	payload, err := json.Marshal(report.FilePayload{Path: path, Comment: comment})
	if err == nil {
		err = report.Append(file, report.Report{At: time.Now(), Event: report.EventFile, Payload: payload})
	}
	if err != nil {
		a.env.t.Fatal(err)
	}
}

// writeFile writes a file in the session's folder.
func (a *testSession) writeFile(name, content string) {
	a.env.t.Helper()
	path := filepath.Join(a.env.botConfig.TmuxDir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		a.env.t.Fatal(err)
	}
}

// waitReportsFollowed waits until the bot follows the session's reports: what was reported before its thread is not posted.
func (a *testSession) waitReportsFollowed() {
	a.env.t.Helper()
	a.env.waitUntil("the reports to be followed", func() bool {
		b, _ := a.binding()
		return b.ReportOffset != ""
	})
}

func TestAFileThatTheAgentReportsArrivesInItsThread(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitReportsFollowed()
	a.writeFile("out/plot.png", "\x89PNG pixels")
	a.reportFile("out/plot.png", "The **plot** for <!channel> & @here")
	if got := a.waitPostedFile("plot.png"); got != "\x89PNG pixels" {
		t.Errorf("the file holds %q", got)
	}
	m := a.waitBotMessage("The *plot* for")
	if !containsAll(m.Text, "&lt;!channel&gt; &amp;") || strings.Contains(m.Text, "@here") || m.ThreadTS != a.root || len(m.Files) != 1 {
		t.Errorf("posted as %+v", m)
	}
	w.waitOutboxEmpty()
}

func TestNothingFromOutsideTheSessionsFolderIsPosted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		}
	})
	a := w.startSession("helper")
	a.waitReportsFollowed()
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := errors.Join(os.WriteFile(outside, []byte("root"), 0o600), os.Symlink(outside, filepath.Join(w.botConfig.TmuxDir, "link"))); err != nil {
		t.Fatal(err)
	}
	a.writeFile("keys.txt", "key: "+secret+"\n")
	a.writeFile("big.bin", strings.Repeat("x", 1<<20+1))
	for path, why := range map[string]string{"link": "cannot be opened", outside: "outside of the session's folder", "../x": "outside of the session's folder",
		"keys.txt": "value of the environment", "big.bin": "larger than 1 MB"} {
		a.reportFile(path, "look: "+secret)
		a.waitBotMessage("The agent wanted to post the file", filepath.Base(path), why)
	}
	if n := len(w.RequestsOf("upload")); n != 0 {
		t.Errorf("%d uploads", n)
	}
	for _, m := range a.botMessages() {
		if strings.Contains(m.Text, secret) || len(m.Files) > 0 {
			t.Errorf("posted %q with %d files", m.Text, len(m.Files))
		}
	}
}

func TestFilesReportedWhileTheBotWasDownArePostedInOrder(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitReportsFollowed()
	w.stopBot()
	for i := range 3 {
		name := fmt.Sprintf("%d.txt", i)
		a.writeFile(name, "content "+name)
		a.reportFile(name, "file "+name)
	}
	w.startBot()
	a.waitPostedFile("2.txt")
	var got []string
	for _, m := range a.botMessages() {
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
			w := newEnv(t)
			a := w.startSession("helper")
			a.waitReportsFollowed()
			w.Faults().InjectAPI("files.completeUploadExternal", 1, fault)
			a.writeFile("a.txt", "content")
			a.reportFile("a.txt", "look")
			a.waitPostedFile("a.txt")
			w.waitOutboxEmpty()
			if n := a.countBotMessages("look"); n != 1 {
				t.Errorf("posted %d times", n)
			}
		})
	}
}

func TestABotThatIsKilledAnywherePostsEachFileOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutBot, withoutRateLimits)
	child := w.startBotProcess()
	a := w.startSession("helper")
	a.waitReportsFollowed()
	const rounds = 8
	for i := range rounds {
		name := fmt.Sprintf("file-%d.txt", i)
		a.writeFile(name, "content of "+name)
		if i%2 == 0 {
			w.Faults().InjectAPI([]string{"upload", "files.completeUploadExternal"}[i/2%2], 1, localslack.Delay(50*time.Millisecond))
		}
		a.reportFile(name, "")
		w.sleepRandom(150 * time.Millisecond)
		child.kill()
		child = w.startBotProcess()
	}
	a.waitPostedFile(fmt.Sprintf("file-%d.txt", rounds-1))
	w.waitOutboxEmpty()
	var got, want []string
	for _, m := range a.botMessages() {
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
	w := newEnv(t, withFinalAnswers, func(s *envOptions) {
		s.workspace.Scopes = slices.DeleteFunc(app.Scopes(), func(s string) bool { return s == "files:write" })
	})
	a := w.startSession("helper")
	a.waitReportsFollowed()
	a.writeFile("a.txt", "content")
	a.reportFile("a.txt", "look")
	a.waitBotMessage("`a.txt`", "lacks the scope files:write", "reinstall")
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: "say: " + strings.Repeat("a long line of words\n", 2_000)}); err != nil {
		t.Fatal(err)
	}
	a.waitBotMessage("This was the beginning of", "the-loop attach helper")
	w.waitOutboxEmpty()
}

func TestAnAnswerOf400kBIsPostedAsItsBeginningAndTheWhole(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[API_KEY]") }
		}
	})
	a := w.startSession("helper")
	text := "# All of it\n\n" + strings.Repeat("A line with <marks> & ünïcode, and "+secret+".\n", 8_000) + "the end"
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: "say: " + text}); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(text, secret, "[API_KEY]")
	if got := a.waitPostedFile("answer.md"); got != want {
		t.Errorf("the whole has %d bytes; want %d", len(got), len(want))
	}
	if a.countBotMessages("All of it") == 0 || a.countBotMessages(secret) != 0 {
		t.Errorf("the beginning is %.200q", a.answerTexts())
	}
	a.waitBotMessage("This was the beginning of")
	w.waitOutboxEmpty()
}

package localslack

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestAFileNeedsTheBotToken(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	ts := f.post("look", WithFiles(store.File{Name: "a.txt", Content: []byte("content")}))
	m, _ := f.Message(f.ch, ts)
	file := m.Files[0]
	var out bytes.Buffer
	if err := f.api.GetFileContext(f.ctx, file.URLPrivate, &out); err != nil || out.String() != "content" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	req := must[*http.Request](t)(http.NewRequestWithContext(f.ctx, http.MethodGet, file.URLPrivate, nil))
	res := must[*http.Response](t)(http.DefaultClient.Do(req))
	defer res.Body.Close()
	body := must[[]byte](t)(io.ReadAll(res.Body))
	if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(body), "Sign in") {
		t.Errorf("vercel/eve#1317: %d, %s", res.StatusCode, body)
	}
	f.CallOK("files.info", wiretest.Form("file", file.ID))
	f.CallFails("file_not_found", "files.info", wiretest.Form("file", "F0NONE"))
}

func TestAFileMayBeExternal(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	ts := f.post("look", WithFiles(store.File{Name: "a.txt", URLPrivate: "http://127.0.0.1:1/evil", IsExternal: true}))
	if m, _ := f.Message(f.ch, ts); m.Files[0].URLPrivate != "http://127.0.0.1:1/evil" || !m.Files[0].IsExternal {
		t.Errorf("GHSA-3q3v-34v2-g88f: %+v", m.Files[0])
	}
}

func TestAnUploadIsSharedInItsThread(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	_, err := f.api.UploadFileContext(f.ctx, slack.UploadFileParameters{Channel: f.ch, ThreadTimestamp: root, Filename: "log.txt",
		Title: "The log", FileSize: 5, Reader: strings.NewReader("lines"), InitialComment: "here"})
	if err != nil {
		t.Fatal(err)
	}
	th := f.Thread(f.ch, root)
	if len(th) != 2 || th[1].Text != "here" || len(th[1].Files) != 1 || string(th[1].Files[0].Content) != "lines" {
		t.Fatalf("thread %+v", th)
	}
	var out bytes.Buffer
	if err := f.api.GetFileContext(f.ctx, th[1].Files[0].URLPrivate, &out); err != nil || out.String() != "lines" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	f.CallFails("file_not_found", "files.completeUploadExternal", wiretest.Form("files", `[{"id":"F0NONE"}]`))
	f.CallFails("file_not_found", "files.completeUploadExternal", wiretest.Form("files", `[{"id":"`+th[1].Files[0].ID+`"}]`)) // it is complete
}

// uploadFile hands over a file and returns its id.
func (f *fixture) uploadFile(name, data string) string {
	f.t.Helper()
	out := f.CallOK("files.getUploadURLExternal", wiretest.Form("filename", name, "length", strconv.Itoa(len(data))))
	res := must[*http.Response](f.t)(http.Post(blockkit.Str(out["upload_url"]), "application/octet-stream", strings.NewReader(data)))
	if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
		f.t.Errorf("the upload got %s", res.Status)
	}
	return blockkit.Str(out["file_id"])
}

func TestAnUploadThatCannotBeSharedIsNotComplete(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	id := f.uploadFile("a.txt", "content")
	f.CallFails("file_not_found", "files.info", wiretest.Form("file", id))
	f.CallFails("channel_not_found", "files.completeUploadExternal", wiretest.Form("files", `[{"id":"`+id+`"}]`, "channel_id", "C404"))
	f.CallFails("file_not_found", "files.info", wiretest.Form("file", id))
	f.CallOK("files.completeUploadExternal", wiretest.Form("files", `[{"id":"`+id+`"}]`, "channel_id", f.ch))
	info := f.CallOK("files.info", wiretest.Form("file", id))["file"].(map[string]any)
	if channels, _ := info["channels"].([]any); len(channels) != 1 || channels[0] != f.ch {
		t.Errorf("shared in %v", info["channels"])
	}
}

func TestDownloadsAndUploadsCanFail(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	m, _ := f.Message(f.ch, f.post("look", WithFiles(store.File{Name: "a b\x1b.txt", Content: []byte("content")})))
	get := func() *http.Response {
		req := must[*http.Request](t)(http.NewRequestWithContext(f.ctx, http.MethodGet, m.Files[0].URLPrivate, nil))
		req.Header.Set("Authorization", "Bearer "+f.BotToken())
		res := must[*http.Response](t)(http.DefaultTransport.RoundTrip(req))
		_ = res.Body.Close()
		return res
	}
	if res := get(); res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	f.Faults().InjectAPI("file", 1, faults.Redirect("/?redir=x"))
	if res := get(); res.StatusCode != http.StatusFound || res.Header.Get("Location") != "/?redir=x" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	f.Faults().InjectAPI("upload", 1, faults.HTML(http.StatusServiceUnavailable))
	out := f.CallOK("files.getUploadURLExternal", wiretest.Form("filename", "a", "length", "1"))
	res := must[*http.Response](t)(http.Post(blockkit.Str(out["upload_url"]), "", strings.NewReader("x")))
	if _ = res.Body.Close(); res.StatusCode != http.StatusServiceUnavailable {
		t.Error(res.Status)
	}
}

package workspace

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

func TestAFileNeedsTheBotToken(t *testing.T) {
	t.Parallel()
	f := start(t)
	ts := f.post("look", WithFiles(File{Name: "a.txt", Content: []byte("content")}))
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
	f.allows("files.info", form("file", file.ID))
	f.refuses("file_not_found", "files.info", form("file", "F0NONE"))
}

func TestAFileMayLieElsewhere(t *testing.T) {
	t.Parallel()
	f := start(t)
	ts := f.post("look", WithFiles(File{Name: "a.txt", URLPrivate: "http://127.0.0.1:1/evil", IsExternal: true}))
	if m, _ := f.Message(f.ch, ts); m.Files[0].URLPrivate != "http://127.0.0.1:1/evil" || !m.Files[0].IsExternal {
		t.Errorf("GHSA-3q3v-34v2-g88f: %+v", m.Files[0])
	}
}

func TestAnUploadIsSharedInItsThread(t *testing.T) {
	t.Parallel()
	f := start(t)
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
	f.refuses("file_not_found", "files.completeUploadExternal", form("files", `[{"id":"F0NONE"}]`))
}

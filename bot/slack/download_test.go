package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/bot/localslack"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// postFile posts a file and returns it as the bot reads it from the thread.
func (x *env) postFile(f localslack.File) chat.File {
	x.t.Helper()
	ts := x.reply(x.postRoot(), "look", localslack.WithFiles(f))
	m, ok := x.Message(x.ch, ts)
	raw, err := json.Marshal(m)
	if !ok || err != nil {
		x.t.Fatal(err)
	}
	return message{Object: lenientjson.Parse(raw)}.files()[0]
}

func (x *env) fetch(f chat.File) (string, error) {
	var b bytes.Buffer
	err := x.client.Fetch(x.ctx, f, &b)
	return b.String(), err
}

// wantRefused fails unless fetching the file returns a FileError with these words and writes nothing.
func (x *env) wantRefused(f chat.File, parts ...string) {
	x.t.Helper()
	got, err := x.fetch(f)
	var final *chat.FileError
	if !errors.As(err, &final) || got != "" {
		x.t.Fatalf("%q, %v", got, err)
	}
	for _, p := range parts {
		if !strings.Contains(final.Why, p) {
			x.t.Errorf("refused with %q; want %q in it", final.Why, p)
		}
	}
}

func TestAFileIsFetched(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	want := strings.Repeat("content ", 100_000)
	f := x.postFile(localslack.File{Name: "a.txt", Content: []byte(want)})
	if f.Name != "a.txt" || f.Size != int64(len(want)) || f.Type != "text/plain" || f.Elsewhere {
		t.Errorf("%+v", f)
	}
	if got, err := x.fetch(f); err != nil || got != want {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	f.URL = "" // as in shared channels
	if got, err := x.fetch(f); err != nil || got != want {
		t.Errorf("asked for by its id: %d bytes, %v", len(got), err)
	}
	x.wantRefused(chat.File{ID: "F404"}, "no longer in Slack", "file_not_found")
	x.wantRefused(chat.File{ID: "F404", URL: strings.Replace(x.postFile(localslack.File{Name: "b"}).URL, "/files/", "/files/F404", 1)}, "no longer in Slack")
}

func TestAnHTMLFileIsDistinguishedFromTheSignInPage(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	page := x.postFile(localslack.File{Name: "p.html", Mimetype: "text/html", Content: []byte("<html>hello</html>")})
	if got, err := x.fetch(page); err != nil || got != "<html>hello</html>" {
		t.Errorf("%q, %v", got, err)
	}
	plain := x.postFile(localslack.File{Name: "a.txt", Content: []byte("x")})
	x.Faults().InjectAPI("file", 1, localslack.HTML(http.StatusOK))
	x.wantRefused(plain, "sign-in page")
	x.Faults().InjectAPI("file", 1, localslack.HTML(http.StatusOK))
	if _, err := x.fetch(page); err == nil || !strings.Contains(err.Error(), "sign-in page") {
		t.Errorf("a page of another length: %v", err)
	}
	x.Faults().InjectAPI("file", 1, localslack.Redirect("/?redir=%2Ffiles-pri%2Fa.txt"))
	x.wantRefused(plain, "sign-in page")
	x.RevokeToken(x.BotToken(), "token_revoked")
	x.wantRefused(plain, "sign-in page")
}

func TestAMissingScopeIsNamedAsTheReason(t *testing.T) {
	t.Parallel()
	x := newEnv(t, func(o *localslack.Options) {
		o.Scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == ScopeFetch })
	}).identified()
	f := x.postFile(localslack.File{Name: "a.txt", Content: []byte("x")})
	x.wantRefused(f, "lacks the scope files:read", "reinstall")
	if len(x.RequestsOf("file")) != 0 {
		t.Error("it was tried all the same")
	}
}

// foreignServer is a server that is not Slack's.
type foreignServer struct {
	*httptest.Server
	mu             sync.Mutex
	authorizations []string // the authorizations that came
}

func newForeignServer(t *testing.T) *foreignServer {
	e := &foreignServer{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.authorizations = append(e.authorizations, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("x"))
	}))
	t.Cleanup(e.Close)
	return e
}

// GHSA-3q3v-34v2-g88f: the token is sent to whatever host a file names.
func TestTheTokenGoesToSlackOnly(t *testing.T) {
	t.Parallel()
	x, e := newEnv(t).identified(), newForeignServer(t)
	f := x.postFile(localslack.File{Name: "a.txt", URLPrivate: e.URL + "/a.txt", Content: []byte("x")})
	x.wantRefused(f, "not one of Slack's")
	good := x.postFile(localslack.File{Name: "b.txt", Content: []byte("x")})
	x.Faults().InjectAPI("file", 1, localslack.Redirect(e.URL+"/b.txt"))
	x.wantRefused(good, "not one of Slack's")
	x.Faults().InjectAPI("file", 1, localslack.Redirect(strings.TrimPrefix(good.URL, "http://"+x.client.transport.base.Host)))
	if got, err := x.fetch(good); err != nil || got != "x" {
		t.Errorf("sent on within Slack: %q, %v", got, err)
	}
	x.Faults().InjectAPI("file", -1, localslack.Redirect(good.URL))
	x.wantRefused(good, "redirects it too often")
	if len(e.authorizations) != 0 {
		t.Errorf("another host was spoken to: %q", e.authorizations)
	}
	for address, want := range map[string]bool{"https://files.slack.com/x": true, "https://slack.com/x": true, "https://FILES.SLACK.COM/x": true,
		"https://files.slack-gov.com/": true, "http://files.slack.com/x": false, "https://slack.com.evil.example/x": false,
		"https://evilslack.com/": false, "https://slack.com@evil.example/": false, "ftp://files.slack.com/": false} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.client.transport.isTrusted(req.URL); got != want {
			t.Errorf("%s is trusted: %t", address, got)
		}
	}
}

func TestTemporaryFailuresAreDistinguishedFromPermanentOnes(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	f := x.postFile(localslack.File{Name: "a.txt", Content: []byte("x")})
	for name, fault := range map[string]localslack.APIFault{"503": localslack.HTML(http.StatusServiceUnavailable), "cut": localslack.CutBefore()} {
		x.Faults().InjectAPI("file", 2, fault) // the HTTP client may try a cut connection again
		var final *chat.FileError
		if _, err := x.fetch(f); err == nil || errors.As(err, &final) || strings.Contains(err.Error(), "http://") {
			t.Errorf("%s: %v", name, err)
		}
		x.Faults().Clear()
	}
	x.Faults().InjectAPI("file", 1, localslack.RateLimited("7"))
	var limited *chat.RateLimitedError
	if _, err := x.fetch(f); !errors.As(err, &limited) || limited.After != 7*time.Second {
		t.Errorf("429: %v", err)
	}
	x.Faults().InjectAPI("file", 1, localslack.HTML(http.StatusForbidden))
	x.wantRefused(f, "403")
	x.Faults().InjectAPI(MethodFile, 1, localslack.Error("internal_error"))
	var final *chat.FileError
	if _, err := x.fetch(chat.File{ID: f.ID}); err == nil || errors.As(err, &final) {
		t.Errorf("files.info in trouble: %v", err)
	}
}

func TestFilesAreReadAsSlackWritesThem(t *testing.T) {
	t.Parallel()
	m := message{Object: lenientjson.Parse(json.RawMessage(`{"files":[
		{"id":"F1","name":"a.png","mimetype":"image/png","size":12,"url_private":"https://files.slack.com/a","url_private_download":"https://files.slack.com/d/a","permalink":"https://x.slack.com/a"},
		{"id":"F2","title":"Plan","is_external":true,"url_private":"https://docs.example/plan","permalink":"https://x.slack.com/b"},
		{"id":"F3","mode":"tombstone"},
		{"id":"F4","file_access":"check_file_info","size":"9"}]}`))}
	want := []chat.File{
		{ID: "F1", Name: "a.png", Type: "image/png", Size: 12, URL: "https://files.slack.com/d/a", Link: "https://x.slack.com/a"},
		{ID: "F2", Name: "Plan", URL: "https://docs.example/plan", Link: "https://docs.example/plan", Elsewhere: true},
		{ID: "F3"}, {ID: "F4", Size: 9}}
	if diff := cmp.Diff(want, m.files()); diff != "" {
		t.Error(diff)
	}
}

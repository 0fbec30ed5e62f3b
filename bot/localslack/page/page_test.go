package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

// pageFixture is a page with a browser that was let in.
type pageFixture struct {
	*fixture
	page   *Page
	client *http.Client
	bob    *localslack.Person
	base   string
	demo   *fakeDemoController
}

// fakeDemoController is a backstage that says what it was asked for.
type fakeDemoController struct{ controls []string }

func (s *fakeDemoController) State(_ context.Context, channel, thread string) State {
	return State{Title: channel + "/" + thread, Screen: [][]Run{{{Text: "<b>screen</b>", FG: "#ff0000"}}}}
}

func (s *fakeDemoController) RunControl(_ context.Context, control, _, _ string) (string, error) {
	if control == "fail" {
		return "", errors.New("it does not want to")
	}
	s.controls = append(s.controls, control)
	return "played " + control, nil
}

func startPage(t *testing.T, change ...func(*store.Options)) *pageFixture {
	t.Helper()
	f := startFixture(t, append(change, noRates)...)
	p := &pageFixture{fixture: f, bob: f.AddUser("bob"), demo: &fakeDemoController{}}
	f.Join(f.ch, p.bob.ID)
	p.page = New(f.Workspace, Options{Channel: f.ch, Demo: p.demo,
		Personas:  []Persona{{User: f.ann.ID, Role: "authorized", Authorized: true}, {User: p.bob.ID, Role: "not on it"}},
		Commands:  []Command{{Name: "/the-loop", Verb: "status", Description: "how it is"}},
		Shortcuts: []Shortcut{{ID: "session", Name: "Session"}}})
	if err := p.page.Start(f.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.page.Close(); err != nil {
			t.Error(err)
		}
	})
	jar, _ := cookiejar.New(nil) // never fails
	p.client = &http.Client{Jar: jar}
	t.Cleanup(p.client.CloseIdleConnections)
	p.base, _, _ = strings.Cut(p.page.URL(), "/?")
	if res := p.get(strings.TrimPrefix(p.page.URL(), p.base)); res.StatusCode != http.StatusOK {
		t.Fatalf("the address does not open the page: %s", res.Status)
	}
	return p
}

// request makes one, as a browser does from the page itself.
func (p *pageFixture) request(method, path string, body io.Reader) *http.Request {
	p.t.Helper()
	r := must[*http.Request](p.t)(http.NewRequestWithContext(p.ctx, method, p.base+path, body))
	if method == http.MethodPost {
		r.Header.Set("Origin", p.base)
		r.Header.Set(sameSiteHeader, "1")
	}
	return r
}

// roundTrip sends a request and returns the response with its whole body.
func (p *pageFixture) roundTrip(r *http.Request) (*http.Response, []byte) {
	p.t.Helper()
	res := must[*http.Response](p.t)(p.client.Do(r))
	defer res.Body.Close()
	return res, must[[]byte](p.t)(io.ReadAll(res.Body))
}

func (p *pageFixture) get(path string) *http.Response {
	p.t.Helper()
	res, _ := p.roundTrip(p.request(http.MethodGet, path, nil))
	return res
}

// getJSON gets JSON.
func (p *pageFixture) getJSON(path string, into any) {
	p.t.Helper()
	res, body := p.roundTrip(p.request(http.MethodGet, path, nil))
	if err := json.Unmarshal(body, into); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s %s", path, res.Status, body)
	}
}

// runAction does something on the page and returns what went wrong, and what came of it.
func (p *pageFixture) runAction(name string, a pageAction) (wrong string, result map[string]any) {
	p.t.Helper()
	body := must[[]byte](p.t)(json.Marshal(a))
	r := p.request(http.MethodPost, "/api/act/"+name, bytes.NewReader(body))
	_, got := p.roundTrip(r)
	var out struct {
		Error  string
		Result map[string]any
	}
	if err := json.Unmarshal(got, &out); err != nil {
		p.t.Fatalf("%s: %s", name, got)
	}
	return out.Error, out.Result
}

func TestThePageRequiresItsKey(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	stranger := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(stranger.CloseIdleConnections)
	for name, change := range map[string]func(*http.Request) *http.Client{
		"without the key":  func(*http.Request) *http.Client { return stranger },
		"with another key": func(r *http.Request) *http.Client { r.URL.RawQuery = "key=0"; return stranger },
		"a name that points here": func(r *http.Request) *http.Client {
			for _, c := range p.client.Jar.Cookies(r.URL) {
				r.AddCookie(c)
			}
			r.Host = "evil.example:80"
			return stranger
		},
		"another port's origin":     func(r *http.Request) *http.Client { r.Header.Set("Origin", "http://127.0.0.1:1"); return p.client },
		"a page of another site":    func(r *http.Request) *http.Client { r.Header.Set("Origin", "https://evil.example"); return p.client },
		"a frame of another site":   func(r *http.Request) *http.Client { r.Header.Set("Sec-Fetch-Site", "cross-site"); return p.client },
		"a sandbox's opaque origin": func(r *http.Request) *http.Client { r.Header.Set("Origin", "null"); return p.client },
	} {
		for _, path := range []string{"/", "/app.js", "/api/state", "/api/stream", "/files/F1"} {
			r := p.request(http.MethodGet, path, nil)
			client := change(r)
			res := must[*http.Response](t)(client.Do(r))
			_ = res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s: GET %s: %s", name, path, res.Status)
			}
		}
	}
}

func TestAPostToThePageNeedsItsOwnOriginAndHeader(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	for name, change := range map[string]func(*http.Request){
		"no header":      func(r *http.Request) { r.Header.Del(sameSiteHeader) },
		"no origin":      func(r *http.Request) { r.Header.Del("Origin") },
		"another origin": func(r *http.Request) { r.Header.Set("Origin", "http://localhost:1") },
		"https":          func(r *http.Request) { r.Header.Set("Origin", strings.Replace(p.base, "http:", "https:", 1)) },
	} {
		r := p.request(http.MethodPost, "/api/act/post", strings.NewReader(`{"as":"`+p.ann.ID+`","channel":"`+p.ch+`","text":"hi"}`))
		change(r)
		if res, _ := p.roundTrip(r); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	if got := p.Messages(p.ch); len(got) > 1 { // bob's joining is one
		t.Errorf("something was posted: %v", got)
	}
}

func TestASingleUseURLWorksOnce(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	once := strings.TrimPrefix(p.page.SingleUseURL(), p.base)
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		p.client.Jar, _ = cookiejar.New(nil) // another browser
		if res := p.get(once); res.StatusCode != want {
			t.Errorf("got %s, want %d", res.Status, want)
		}
	}
}

func TestThePageSendsAStrictSecurityPolicy(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	res := p.get("/")
	csp := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %s", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers: %v", res.Header)
	}
	for _, file := range []string{"index.html", "page.css", "app.js", "text.js", "blocks.js", "message.js", "modal.js", "demo.js", "composer.js", "dom.js", "api.js", "emoji.js", "icon.svg"} {
		text := string(must[[]byte](t)(webFiles.ReadFile("web/" + file)))
		for _, never := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"", "onclick=", "//cdn", "@import", "url("} {
			if strings.Contains(text, never) {
				t.Errorf("%s has %q", file, never)
			}
		}
	}
}

func TestWhatIsDoneOnThePageIsDoneInTheWorkspace(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	p.connectAcking()
	_, posted := p.runAction("post", pageAction{As: p.ann.ID, Channel: p.ch, Text: "root <b>"})
	root := blockkit.Str(posted["ts"])
	_, replied := p.runAction("post", pageAction{As: p.bob.ID, Channel: p.ch, Thread: root, Text: "reply"})
	steps := []struct {
		name  string
		act   pageAction
		wrong string
	}{
		{"react", pageAction{As: p.ann.ID, Channel: p.ch, TS: root, Name: "eyes"}, ""},
		{"edit", pageAction{As: p.bob.ID, Channel: p.ch, TS: blockkit.Str(replied["ts"]), Text: "reply, edited"}, ""},
		{"edit", pageAction{As: p.ann.ID, Channel: p.ch, TS: blockkit.Str(replied["ts"]), Text: "not hers"}, "the message is not ann's"},
		{"slash", pageAction{As: p.ann.ID, Channel: p.ch, Name: "/the-loop", Text: "status"}, ""},
		{"slash", pageAction{As: p.ann.ID, Channel: p.ch, Thread: root, Name: "/the-loop"}, "/the-loop is not supported in threads. Sorry!"},
		{"shortcut", pageAction{As: p.ann.ID, Channel: p.ch, TS: root, Name: "session"}, ""},
		{"home", pageAction{As: p.ann.ID}, ""},
		{"play", pageAction{As: p.ann.ID, Name: "drop"}, ""},
		{"play", pageAction{As: p.ann.ID, Name: "fail"}, "it does not want to"},
		{"post", pageAction{As: p.BotUserID(), Channel: p.ch, Text: "as the bot"}, `"` + p.BotUserID() + `" is nobody to write as`},
		{"post", pageAction{As: p.ann.ID, Channel: "C0", Text: "nowhere"}, "there is no channel C0"},
	}
	for _, s := range steps {
		if wrong, _ := p.runAction(s.name, s.act); wrong != s.wrong {
			t.Errorf("%s %+v: got %q, want %q", s.name, s.act, wrong, s.wrong)
		}
	}
	got := p.Thread(p.ch, root)
	if len(got) != 2 || got[0].Text != "root &lt;b&gt;" || got[1].Text != "reply, edited" || got[0].Reactions[0].Name != "eyes" {
		t.Errorf("the thread is %+v", got)
	}
	if !slices.Equal(p.demo.controls, []string{"drop"}) {
		t.Errorf("played %v", p.demo.controls)
	}
	p.runAction("react", pageAction{As: p.ann.ID, Channel: p.ch, TS: root, Name: "eyes"})
	p.runAction("delete", pageAction{As: p.bob.ID, Channel: p.ch, TS: blockkit.Str(replied["ts"])})
	if got := p.Thread(p.ch, root); len(got) != 1 || len(got[0].Reactions) != 0 {
		t.Errorf("the thread is %+v", got)
	}
}

// connectAcking is an app that acks everything.
func (f *fixture) connectAcking() {
	f.t.Helper()
	s := f.DialReady()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			data, err := s.Read()
			if err != nil {
				return
			}
			var env struct {
				ID string `json:"envelope_id"`
			}
			if json.Unmarshal(data, &env) == nil && env.ID != "" {
				ack, _ := json.Marshal(map[string]string{"envelope_id": env.ID})
				_ = s.Write(ack) // it ends with the test
			}
		}
	}()
	f.t.Cleanup(func() { _ = s.Conn.Close(); <-done })
}

func TestFilesGoBothWaysAndNeverRunInThePage(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range map[string]string{"as": p.ann.ID, "channel": p.ch, "text": "two files"} {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"evil.html": "<script>alert(1)</script>", "dot.png": "\x89PNG\r\n\x1a\n0000"} {
		part := must[io.Writer](t)(w.CreateFormFile("files", name))
		_, _ = part.Write([]byte(content)) // into memory
	}
	_ = w.Close()
	r := p.request(http.MethodPost, "/api/files", &form)
	r.Header.Set("Content-Type", w.FormDataContentType())
	if res, body := p.roundTrip(r); res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", res.Status, body)
	}
	all := p.Messages(p.ch)
	for _, f := range all[len(all)-1].Files {
		res, body := p.roundTrip(p.request(http.MethodGet, "/files/"+f.ID, nil))
		kind, way := "application/octet-stream", "attachment"
		if f.Name == "dot.png" {
			kind, way = "image/png", "inline"
		}
		if res.Header.Get("Content-Type") != kind || !strings.HasPrefix(res.Header.Get("Content-Disposition"), way) || len(body) != f.Size ||
			!strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v, %d bytes", f.Name, res.Header, len(body))
		}
	}
	if p.get("/files/F0NONE").StatusCode != http.StatusNotFound {
		t.Error("there is a file that there is not")
	}
}

func TestHistoryComesInPages(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	root := p.post("root 0")
	for range 3 {
		p.post("root")
		p.reply(root, "reply")
	}
	var h pageHistory
	query := func(more ...string) string {
		return "/api/history?" + url.Values{"as": {p.ann.ID}, "channel": {p.ch}, "limit": {"2"}}.Encode() + strings.Join(more, "")
	}
	p.getJSON(query(), &h)
	if len(h.Messages) != 2 || !h.More || h.Messages[1].Text != "root" {
		t.Errorf("the newest: %+v", h)
	}
	p.getJSON(query("&before="+h.Messages[0].TS), &h)
	if len(h.Messages) != 2 || h.Messages[0].TS != root || !h.More { // bob joined before that
		t.Errorf("before them: %+v", h)
	}
	p.getJSON(query("&thread="+root), &h)
	if len(h.Messages) != 2 || h.Root == nil || h.Root.ReplyCount != 3 || !h.More {
		t.Errorf("the thread: %+v", h)
	}
	other := p.AddChannel("secret", store.Private(), store.Members(p.bob.ID)).ID
	if res := p.get("/api/history?as=" + p.ann.ID + "&channel=" + other); res.StatusCode != http.StatusConflict {
		t.Errorf("a channel that ann is not in: %s", res.Status)
	}
}

// sseReader reads a stream of server-sent events.
type sseReader struct {
	t      *testing.T
	lines  *bufio.Scanner
	lastID string
}

func (p *pageFixture) openStream(query string, header ...string) *sseReader {
	p.t.Helper()
	r := p.request(http.MethodGet, "/api/stream?"+query, nil)
	if len(header) > 0 {
		r.Header.Set("Last-Event-ID", header[0])
	}
	res := must[*http.Response](p.t)(p.client.Do(r))
	p.t.Cleanup(func() { _ = res.Body.Close() })
	l := &sseReader{t: p.t, lines: bufio.NewScanner(res.Body)}
	l.lines.Buffer(nil, 1<<20)
	return l
}

// next is the next event of a name, with its data.
func (l *sseReader) next(name string, into any) {
	l.t.Helper()
	event := ""
	for l.lines.Scan() {
		field, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch {
		case field == "event":
			event = value
		case field == "id":
			l.lastID = value
		case field == "data" && event == name:
			if err := json.Unmarshal([]byte(value), into); err != nil {
				l.t.Fatalf("%s: %v", value, err)
			}
			return
		}
	}
	l.t.Fatalf("the stream ended before there was %q: %v", name, l.lines.Err())
}

func TestTheStreamSendsEveryChangeOnceAcrossReloads(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	var s pageSnapshot
	p.getJSON("/api/state?as="+p.ann.ID, &s)
	l := p.openStream("as=" + p.ann.ID + "&since=" + s.Position)
	var news []pageChange
	ts := p.post("first")
	l.next("news", &news)
	if len(news) != 1 || news[0].Message.TS != ts {
		t.Fatalf("got %+v", news)
	}
	last := l.lastID
	second := p.post("second") // while nobody listens
	p.mustSucceed(p.ann.React(p.ch, second, "eyes"))
	p.mustSucceed(p.ann.Delete(p.ch, ts))
	again := p.openStream("as="+p.ann.ID, last)
	again.next("news", &news)
	if len(news) != 2 || news[0].Message.TS != second || len(news[0].Message.Reactions) != 1 || !news[1].Message.Deleted {
		t.Errorf("after the reload: %+v", news)
	}
	var none map[string]any
	p.openStream("as="+p.ann.ID+"&since=another-7").next("reset", &none)
}

func (p *pageFixture) mustSucceed(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestTheStreamHidesWhatOnlyOtherMembersSee(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	var s pageSnapshot
	p.getJSON("/api/state?as="+p.bob.ID, &s)
	l := p.openStream("as=" + p.bob.ID + "&since=" + s.Position)
	p.CallOK("chat.postEphemeral", wiretest.Form("channel", p.ch, "user", p.ann.ID, "text", "for ann"))
	secret := p.AddChannel("secret", store.Private(), store.Members(p.ann.ID)).ID
	must[string](t)(p.ann.Post(secret, "not for bob"))
	p.post("for all")
	var news []pageChange
	for len(news) == 0 || news[len(news)-1].Message == nil {
		var more []pageChange
		l.next("news", &more)
		news = append(news, more...)
	}
	for _, n := range news {
		if n.Ephemeral != nil || n.Message != nil && n.Message.Text != "for all" {
			t.Errorf("bob was told %+v", n)
		}
	}
}

func TestTheStreamSendsStateFramesAndCallsOnRequest(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	p.connectAcking()
	l := p.openStream("as=" + p.ann.ID + "&wire=1&channel=C1&thread=2.3")
	var scene State
	l.next("scene", &scene)
	if scene.Title != "C1/2.3" || scene.Screen[0][0].Text != "<b>screen</b>" {
		t.Errorf("the scene is %+v", scene)
	}
	p.post("hello")
	var frames []pageFrame
	seen := map[string]bool{}
	for !seen["event"] || !seen["ack"] || !seen["apps.connections.open"] {
		l.next("wire", &frames)
		for _, f := range frames {
			seen["event"] = seen["event"] || f.Dir == "out" && strings.Contains(f.Data, "hello")
			seen["ack"] = seen["ack"] || f.Note == "ack"
			seen[f.Method] = true
		}
	}
}

func TestModalsAndTheHomeTabAreShownAndAnswered(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	p.CallOK("views.publish", wiretest.Form("user_id", p.ann.ID, "view", `{"type":"home","blocks":[
		{"type":"actions","block_id":"one","elements":[{"type":"button","action_id":"go","value":"1","text":{"type":"plain_text","text":"Go"}}]},
		{"type":"actions","block_id":"two","elements":[{"type":"button","action_id":"go","value":"2","text":{"type":"plain_text","text":"Go"}}]}]}`))
	var s pageSnapshot
	p.getJSON("/api/state?as="+p.ann.ID, &s)
	if s.Home == nil {
		t.Fatal("no Home tab")
	}
	socket := p.DialReady()
	pressed := make(chan string, 1)
	go func() {
		data, _ := socket.Read() // nothing is pressed then
		var env struct {
			ID      string `json:"envelope_id"`
			Payload struct{ Actions []struct{ Value string } }
		}
		if json.Unmarshal(data, &env) == nil && len(env.Payload.Actions) == 1 {
			socket.Send(map[string]any{"envelope_id": env.ID})
			pressed <- env.Payload.Actions[0].Value
		}
		close(pressed)
	}()
	if wrong, _ := p.runAction("click", pageAction{As: p.ann.ID, View: s.Home.ID, Block: "two", Action: "go"}); wrong != "" {
		t.Fatal(wrong)
	}
	if got := <-pressed; got != "2" {
		t.Errorf("the button of block %q was pressed", got)
	}
}

func TestAStreamThatMissedTooMuchIsReset(t *testing.T) {
	t.Parallel()
	p := startPage(t)
	var s pageSnapshot
	p.getJSON("/api/state?as="+p.ann.ID, &s)
	p.Mu.Lock()
	for range 3 * store.JournalLength {
		p.RecordChange(store.Change{Kind: store.DirectoryChanged})
	}
	p.Mu.Unlock()
	var none map[string]any
	l := p.openStream("as=" + p.ann.ID + "&since=" + s.Position)
	l.next("reset", &none)
	ts := p.post("after that")
	var news []pageChange
	l.next("news", &news)
	if len(news) != 1 || news[0].Message.TS != ts {
		t.Errorf("got %+v", news)
	}
}

func TestThePageIsServedOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	for addr, want := range map[string]string{"0.0.0.0:0": "not a loopback address", "127.0.0.1:99999": "listen for the page"} {
		page := New(f.Workspace, Options{Addr: addr, Personas: []Persona{{User: f.ann.ID}}})
		if err := page.Start(f.ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addr, err)
		}
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := New(f.Workspace, Options{}).Start(f.ctx); err == nil {
		t.Error("a page with nobody to write as started")
	}
}

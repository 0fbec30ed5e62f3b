package workspace

import (
	"net/http"
	"sync"
	"time"
)

// Faults is the script of what goes wrong. A fault is used up after the given number of times; a negative number means
// always. Clear ends all of them.
type Faults struct {
	w *Workspace

	mu         sync.Mutex // guards the fields that follow
	api        []*scripted[APIFault]
	refusals   []refusal
	connects   []*scripted[ConnectFault]
	deliveries []*scripted[DeliveryFault]
	shuffle    int
	ignoreAcks int
	closeAfter int // frames until the socket is closed; 0: never
	noClosing  bool
	pingEvery  time.Duration
}

// scripted is a fault with how often it still plays and what it is for.
type scripted[T any] struct {
	times int
	match string
	what  T
}

func newFaults(w *Workspace) *Faults { return &Faults{w: w} }

func add[T any](list *[]*scripted[T], times int, match string, what T) {
	if times != 0 {
		*list = append(*list, &scripted[T]{times: times, match: match, what: what})
	}
}

// take returns the first fault of a list that matches, and counts it.
func take[T any](list *[]*scripted[T], match string) *T {
	for i, s := range *list {
		if s.match != "" && s.match != "*" && s.match != match {
			continue
		}
		if s.times > 0 {
			s.times--
		}
		if s.times == 0 {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
		}
		return &s.what
	}
	return nil
}

// Clear ends every fault that is still to come. Sockets that were stalled stay so.
func (f *Faults) Clear() {
	f.Unshuffle()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api, f.refusals, f.connects, f.deliveries = nil, nil, nil, nil
	f.ignoreAcks, f.closeAfter, f.noClosing, f.pingEvery = 0, 0, false, 0
}

// APIFault is what a call of the Web API gets instead of its answer.
type APIFault struct {
	name   string
	code   string
	status int
	header http.Header
	body   string
	delay  time.Duration
	play   apiPlay
}

type apiPlay int

const (
	playAnswer    apiPlay = iota // answer with status and body, nothing is done
	playHang                     // never answer, nothing is done
	playHangAfter                // never answer, but it is done
	playCut                      // close the connection, nothing is done
	playCutAfter                 // close the connection, but it is done
	playDelay                    // wait, then as usual
)

const maintenance = "<!DOCTYPE html><html><head><title>Server Error | Slack</title></head><body><h1>Something went wrong</h1></body></html>"

// Error answers with a Slack error such as internal_error, fatal_error or token_revoked.
func Error(code string) APIFault {
	return APIFault{name: "error " + code, code: code, status: http.StatusOK, body: `{"ok":false,"error":"` + code + `"}`,
		header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
}

// RateLimited answers 429 with this Retry-After, in seconds; an empty one leaves the header out.
func RateLimited(retryAfter string) APIFault {
	f := Error("ratelimited")
	f.name, f.status = "429", http.StatusTooManyRequests
	if retryAfter != "" {
		f.header.Set("Retry-After", retryAfter)
	}
	return f
}

// HTML answers with a page and this status; 503 is Slack in trouble, 200 a proxy or a sign-in page.
func HTML(status int) APIFault {
	return APIFault{name: "html", status: status, body: maintenance, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}
}

// Redirect answers 302 with another address, as Slack does with its sign-in page for a file.
func Redirect(to string) APIFault {
	return APIFault{name: "redirect", status: http.StatusFound, header: http.Header{"Location": {to}}}
}

// BadJSON answers 200 with JSON that ends in the middle.
func BadJSON() APIFault {
	return APIFault{name: "bad json", status: http.StatusOK, body: `{"ok":true,"ts":"17`, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
}

// Hang never answers and does nothing.
func Hang() APIFault { return APIFault{name: "hang", play: playHang} }

// HangAfter does what was asked and never answers: the client cannot know.
func HangAfter() APIFault { return APIFault{name: "hang after", play: playHangAfter} }

// CutBefore closes the connection and does nothing.
func CutBefore() APIFault { return APIFault{name: "cut before", play: playCut} }

// CutAfter does what was asked and closes the connection without an answer: the client cannot know.
func CutAfter() APIFault { return APIFault{name: "cut after", play: playCutAfter} }

// Delay answers as usual after d of the workspace's time.
func Delay(d time.Duration) APIFault { return APIFault{name: "delay", play: playDelay, delay: d} }

// API makes the next calls of a method ("*" for any; "file" is a download, "upload" the bytes of an upload) fail. Faults of one method play in the order they were given.
func (f *Faults) API(method string, times int, fault APIFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.api, times, method, fault)
}

// refusal is an error that some calls of a method always get.
type refusal struct {
	method string
	match  func(args map[string]string) bool
	fault  APIFault
}

// Refuse answers those calls of a method with a Slack error whose arguments match, such as invalid_blocks, msg_too_long or
// too_many_emoji, until Clear: what Slack says of one message or one channel again and again.
func (f *Faults) Refuse(method, code string, match func(args map[string]string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals = append(f.refusals, refusal{method: method, match: match, fault: Error(code)})
}

// takeCall is takeAPI for a call with its arguments.
func (f *Faults) takeCall(method string, args map[string]string) *APIFault {
	if fault := f.takeAPI(method); fault != nil {
		return fault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.refusals {
		if r.method == method && r.match(args) {
			return &r.fault
		}
	}
	return nil
}

func (f *Faults) takeAPI(method string) *APIFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return take(&f.api, method)
}

func (f *APIFault) title() string {
	if f == nil {
		return ""
	}
	return f.name
}

// before plays what happens instead of the call; it says whether the call is over.
func (f *APIFault) before(w *Workspace, rw http.ResponseWriter, r *http.Request) bool {
	switch f.play {
	case playHang:
		<-r.Context().Done()
	case playCut:
		cut(rw)
	case playDelay:
		select {
		case <-w.clock.After(f.delay):
			return false
		case <-r.Context().Done():
		}
	case playAnswer:
		for k, v := range f.header {
			rw.Header()[k] = v
		}
		rw.WriteHeader(f.status)
		_, _ = rw.Write([]byte(f.body)) // the client may be gone
	}
	return true
}

// swallows says whether the call is done and its answer is not sent.
func (f *APIFault) swallows() bool {
	return f != nil && (f.play == playHangAfter || f.play == playCutAfter)
}

// preempts says whether something happens before the call.
func (f *APIFault) preempts() bool { return f != nil && !f.swallows() }

// after plays what happens once the call was done.
func (f *APIFault) after(r *http.Request, rw http.ResponseWriter) {
	if f.play == playHangAfter {
		<-r.Context().Done()
		return
	}
	cut(rw)
}

// cut closes the connection under a response.
func cut(rw http.ResponseWriter) {
	if c, _, err := http.NewResponseController(rw).Hijack(); err == nil {
		_ = c.Close()
	}
}

// Package faults is the script of what goes wrong in the local workspace: calls that fail, sockets that are refused, and
// events that are lost, doubled or broken.
package faults

import (
	"net/http"
	"sync"
	"time"

	"the-loop/bot/localslack/slacktime"
)

// Script is what goes wrong, as it was told. A fault is used up after the given number of times; a negative number means
// always.
type Script struct {
	mu                 sync.Mutex // guards the fields that follow
	api                []*scheduledFault[APIFault]
	persistent         []persistentFault
	connects           []*scheduledFault[ConnectFault]
	deliveries         []*scheduledFault[DeliveryFault]
	shuffle            int
	ignoreAcks         int
	closeAfter         int // frames until the socket is closed; 0: never
	neverFinishClosing bool
	pingEvery          time.Duration
}

// scheduledFault is a fault with how often it still plays and what it is for.
type scheduledFault[T any] struct {
	times int
	match string
	fault T
}

func addFault[T any](list *[]*scheduledFault[T], times int, match string, what T) {
	if times != 0 {
		*list = append(*list, &scheduledFault[T]{times: times, match: match, fault: what})
	}
}

// takeFault returns the first fault of a list that matches, and counts it.
func takeFault[T any](list *[]*scheduledFault[T], match string) *T {
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
		return &s.fault
	}
	return nil
}

// Reset forgets every fault that is still to come.
func (f *Script) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api, f.persistent, f.connects, f.deliveries = nil, nil, nil, nil
	f.shuffle, f.ignoreAcks, f.closeAfter, f.neverFinishClosing, f.pingEvery = 0, 0, 0, false, 0
}

// APIFault is what a call of the Web API gets instead of its answer.
type APIFault struct {
	Name   string
	Code   string
	Status int
	header http.Header
	body   string
	delay  time.Duration
	mode   apiFaultMode
}

type apiFaultMode int

const (
	modeAnswer    apiFaultMode = iota // answer with status and body, nothing is done
	modeHang                          // never answer, nothing is done
	modeHangAfter                     // never answer, but it is done
	modeCut                           // close the connection, nothing is done
	modeCutAfter                      // close the connection, but it is done
	modeDelay                         // wait, then as usual
)

const maintenancePage = "<!DOCTYPE html><html><head><title>Server Error | Slack</title></head><body><h1>Something went wrong</h1></body></html>"

// Error answers with a Slack error such as internal_error, fatal_error or token_revoked.
func Error(code string) APIFault {
	return APIFault{Name: "error " + code, Code: code, Status: http.StatusOK, body: `{"ok":false,"error":"` + code + `"}`,
		header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
}

// RateLimited answers 429 with this Retry-After, in seconds; an empty one leaves the header out.
func RateLimited(retryAfter string) APIFault {
	f := Error("ratelimited")
	f.Name, f.Status = "429", http.StatusTooManyRequests
	if retryAfter != "" {
		f.header.Set("Retry-After", retryAfter)
	}
	return f
}

// HTML answers with a page and this status; 503 is Slack in trouble, 200 a proxy or a sign-in page.
func HTML(status int) APIFault {
	return APIFault{Name: "html", Status: status, body: maintenancePage, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}
}

// Redirect answers 302 with another address, as Slack does with its sign-in page for a file.
func Redirect(to string) APIFault {
	return APIFault{Name: "redirect", Status: http.StatusFound, header: http.Header{"Location": {to}}}
}

// BadJSON answers 200 with JSON that ends in the middle.
func BadJSON() APIFault {
	return APIFault{Name: "bad json", Status: http.StatusOK, body: `{"ok":true,"ts":"17`, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
}

// Hang never answers and does nothing.
func Hang() APIFault { return APIFault{Name: "hang", mode: modeHang} }

// HangAfter does what was asked and never answers: the client cannot know.
func HangAfter() APIFault { return APIFault{Name: "hang after", mode: modeHangAfter} }

// CutBefore closes the connection and does nothing.
func CutBefore() APIFault { return APIFault{Name: "cut before", mode: modeCut} }

// CutAfter does what was asked and closes the connection without an answer: the client cannot know.
func CutAfter() APIFault { return APIFault{Name: "cut after", mode: modeCutAfter} }

// Delay answers as usual after d of the workspace's time.
func Delay(d time.Duration) APIFault { return APIFault{Name: "delay", mode: modeDelay, delay: d} }

// InjectAPI makes the next calls of a method ("*" for any; "file" is a download, "upload" the bytes of an upload) fail. Faults of one method play in the order they were given.
func (f *Script) InjectAPI(method string, times int, fault APIFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addFault(&f.api, times, method, fault)
}

// persistentFault is an error that some calls of a method always get.
type persistentFault struct {
	method string
	match  func(args map[string]string) bool
	fault  APIFault
}

// RefuseMatching answers those calls of a method with a Slack error whose arguments match, such as invalid_blocks, msg_too_long or
// too_many_emoji, until Clear: what Slack says of one message or one channel again and again.
func (f *Script) RefuseMatching(method, code string, match func(args map[string]string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.persistent = append(f.persistent, persistentFault{method: method, match: match, fault: Error(code)})
}

// TakeForCall is takeForMethod for a call with its arguments.
func (f *Script) TakeForCall(method string, args map[string]string) *APIFault {
	if fault := f.TakeForMethod(method); fault != nil {
		return fault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.persistent {
		if r.method == method && r.match(args) {
			return &r.fault
		}
	}
	return nil
}

// TakeForMethod is the fault that the next call of a method meets, used up once; nil for none.
func (f *Script) TakeForMethod(method string) *APIFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return takeFault(&f.api, method)
}

// NameOrEmpty is the name of a fault; empty for none.
func (f *APIFault) NameOrEmpty() string {
	if f == nil {
		return ""
	}
	return f.Name
}

// ApplyBefore plays what happens instead of the call; it says whether the call is over.
func (f *APIFault) ApplyBefore(clock slacktime.Clock, rw http.ResponseWriter, r *http.Request) bool {
	switch f.mode {
	case modeHang:
		<-r.Context().Done()
	case modeCut:
		closeConnection(rw)
	case modeDelay:
		select {
		case <-clock.After(f.delay):
			return false
		case <-r.Context().Done():
		}
	case modeAnswer:
		for k, v := range f.header {
			rw.Header()[k] = v
		}
		rw.WriteHeader(f.Status)
		_, _ = rw.Write([]byte(f.body)) // the client may be gone
	}
	return true
}

// DropsAnswer says whether the call is done and its answer is not sent.
func (f *APIFault) DropsAnswer() bool {
	return f != nil && (f.mode == modeHangAfter || f.mode == modeCutAfter)
}

// AppliesBefore says whether something happens before the call.
func (f *APIFault) AppliesBefore() bool { return f != nil && !f.DropsAnswer() }

// ApplyAfter plays what happens once the call was done.
func (f *APIFault) ApplyAfter(r *http.Request, rw http.ResponseWriter) {
	if f.mode == modeHangAfter {
		<-r.Context().Done()
		return
	}
	closeConnection(rw)
}

// closeConnection closes the connection under a response.
func closeConnection(rw http.ResponseWriter) {
	if c, _, err := http.NewResponseController(rw).Hijack(); err == nil {
		_ = c.Close()
	}
}

package store

import "slices"

// LogRequest keeps a call that has begun; seq is its number.
func (w *Base) LogRequest(method string, args map[string]string) (seq int) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.requests.add(func(n int) Request {
		seq = n
		return Request{Seq: n, Time: w.Clock.Now(), Method: method, Args: args}
	})
	w.Notify()
	return seq
}

// FinishRequest notes how a call ended: its HTTP status, whether it succeeded, its Slack error and the fault that was played.
func (w *Base) FinishRequest(seq, status int, ok bool, slackError, fault string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if r := w.requests.at(seq); r != nil {
		r.Status, r.OK, r.Error, r.Fault = status, ok, slackError, fault
	}
	w.Notify()
}

// Requests returns the last API calls, oldest first (Options.RequestLog of them).
func (w *Base) Requests() []Request { return w.RequestsSince(0) }

// RequestsSince returns the API calls after a sequence number.
func (w *Base) RequestsSince(seq int) []Request {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.requests.since(seq)
}

// RequestsOf returns the last calls of one method.
func (w *Base) RequestsOf(method string) []Request {
	return slices.DeleteFunc(w.Requests(), func(r Request) bool { return r.Method != method })
}

package store

import "slices"

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

func (w *Base) FinishRequest(seq, status int, ok bool, slackError, fault string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if r := w.requests.at(seq); r != nil {
		r.Status, r.OK, r.Error, r.Fault = status, ok, slackError, fault
	}
	w.Notify()
}

// Requests returns the last InjectAPI calls, oldest first (Options.RequestLog of them).
func (w *Base) Requests() []Request { return w.RequestsSince(0) }

// RequestsSince returns the InjectAPI calls after a sequence number.
func (w *Base) RequestsSince(seq int) []Request {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.requests.since(seq)
}

// RequestsOf returns the last calls of one method.
func (w *Base) RequestsOf(method string) []Request {
	return slices.DeleteFunc(w.Requests(), func(r Request) bool { return r.Method != method })
}

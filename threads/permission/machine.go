package permission

import (
	"time"

	"the-loop/sessions"
)

// Kind is a kind of [Event].
type Kind int

// The kinds of events.
const (
	Opened         Kind = iota // the agent waits for the answer
	Resolved                   // the agent does not wait for it any more
	Posted                     // the message is in the thread, at TS
	Decide                     // somebody decides: Verdict, By and HasReason, with TS where it is known
	Delivered                  // the agent took the decision
	TooLate                    // it did not: it had stopped waiting
	Unconfirmed                // it may have
	Undelivered                // it did not, and still waits
	Interrupted                // the bot stops before it is known which of these is true
	AnswerReported             // the agent reports that it got an answer from us
)

// Event is something that happens to a request.
type Event struct {
	Kind      Kind
	At        time.Time // now
	TS        string
	Verdict   sessions.Verdict
	By        string // member id
	HasReason bool
	Choice    string // see [Request]
	HasFile   bool   // of Opened: the file above the message is there to be posted
}

// Names of the events that are recorded about requests.
const (
	EventRequested = "channel.asked"
	EventDecided   = "channel.ask_decided"
	EventEnded     = "channel.ask_over"
)

// Effects are what is to be done after an event, in this order. None are wanted after an event that changes nothing.
type Effects struct {
	Post    *Request // post the message, as it shows this
	Edit    *Request // edit the message, to show this
	Emit    string   // record the event of this name
	Waiting bool     // the agent waits for its operator now
	Watch   bool     // watch again for the end of the request
	Deliver bool     // give the agent the decision, once the request is stored
	Forget  bool     // remove the request
	Store   bool     // store the request
}

// Next is the request after an event, and what is to be done.
func (r Request) Next(e Event) (Request, Effects) {
	switch e.Kind {
	case Opened:
		return r.opened(e)
	case Resolved:
		return r.resolved(e)
	case Posted:
		if r.TS != "" {
			return r, Effects{}
		}
		r.TS = e.TS
		return r, Effects{Store: true}
	case Decide:
		return r.decide(e)
	case AnswerReported:
		if r.State == InDoubt || r.State == Deciding && !r.Delivering {
			return r.end(Decided, EventDecided, e.At)
		}
		return r, Effects{}
	}
	return r.delivered(e)
}

// opened posts a new request. One that an earlier run was deciding, and that is open all the same, was not answered.
func (r Request) opened(e Event) (Request, Effects) {
	fx := Effects{Waiting: true, Store: true}
	switch {
	case !r.IsOpen():
		return r, Effects{}
	case r.State == New:
		r.State = Open
		r.Decidable = r.Decidable && (!r.HasFile || e.HasFile) // an earlier run ended before it posted the file
		posted := r
		fx.Post, fx.Emit = &posted, EventRequested
	case r.State == Deciding && !r.Delivering:
		r = r.reopened()
	}
	return r, fx
}

// resolved ends a request, unless a decision is on its way: then that one's outcome tells more.
func (r Request) resolved(e Event) (Request, Effects) {
	switch {
	case r.Delivering:
	case r.State == New: // nobody saw it
		return r, Effects{Forget: true}
	case r.State == Open:
		return r.end(Ended, EventEnded, e.At)
	case r.State == Deciding:
		return r.end(InDoubt, EventEnded, e.At)
	}
	return r, Effects{}
}

// decide starts to deliver a decision, where one can be made.
func (r Request) decide(e Event) (Request, Effects) {
	if r.WhyUndecidable() != "" {
		return r, Effects{}
	}
	r.State, r.Verdict, r.DecidedBy, r.HasReason, r.Choice, r.Ended, r.Delivering = Deciding, e.Verdict, e.By, e.HasReason, e.Choice, e.At, true
	if e.TS != "" {
		r.TS = e.TS
	}
	return r, Effects{Deliver: true}
}

// delivered handles what became of a decision that this run delivered.
func (r Request) delivered(e Event) (Request, Effects) {
	if !r.Delivering {
		return r, Effects{}
	}
	r.Delivering = false
	switch e.Kind {
	case Delivered:
		return r.end(Decided, EventDecided, e.At)
	case TooLate:
		return r.reopened().end(Ended, EventEnded, e.At)
	case Unconfirmed:
		return r.end(InDoubt, EventEnded, e.At)
	case Undelivered:
		return r.reopened(), Effects{Watch: true, Store: true} // it may have ended meanwhile
	}
	return r, Effects{} // the next run finds out
}

// reopened is a request that nobody decided after all.
func (r Request) reopened() Request {
	r.State, r.Verdict, r.DecidedBy, r.HasReason, r.Ended = Open, "", "", false, time.Time{}
	return r
}

// end ends a request. Its message says what became of it; the text of the question is kept only as long as that may still change.
func (r Request) end(s State, event string, at time.Time) (Request, Effects) {
	r.State = s
	if r.Ended.IsZero() {
		r.Ended = at
	}
	shown := r
	if s != InDoubt {
		r.Text = ""
	}
	return r, Effects{Edit: &shown, Emit: event, Store: true}
}

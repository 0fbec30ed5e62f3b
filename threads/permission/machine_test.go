package permission

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
)

var (
	began = time.Unix(1700000000, 0)
	now   = began.Add(time.Minute)
)

// states are requests in every state that there is.
var states = map[string]Request{
	"new":         {Token: "t", Decidable: true, Text: "do it"},
	"open":        {Token: "t", Decidable: true, Text: "do it", TS: "1.0", State: Open},
	"terminal":    {Token: "t", Text: "do it", TS: "1.0", State: Open},
	"unposted":    {Token: "t", Decidable: true, Text: "do it", State: Open},
	"delivering":  {Token: "t", Decidable: true, Text: "do it", TS: "1.0", State: Deciding, Verdict: sessions.VerdictAllow, DecidedBy: "U1", Ended: began, Delivering: true},
	"interrupted": {Token: "t", Decidable: true, Text: "do it", TS: "1.0", State: Deciding, Verdict: sessions.VerdictAllow, DecidedBy: "U1", Ended: began},
	"decided":     {Token: "t", Decidable: true, TS: "1.0", State: Decided, Verdict: sessions.VerdictAllow, DecidedBy: "U1", Ended: began},
	"ended":       {Token: "t", Decidable: true, TS: "1.0", State: Ended, Ended: began},
	"in doubt":    {Token: "t", Decidable: true, Text: "do it", TS: "1.0", State: InDoubt, Verdict: sessions.VerdictAllow, DecidedBy: "U1", Ended: began},
}

var events = map[string]Event{
	"Opened":         {Kind: Opened, At: now},
	"Resolved":       {Kind: Resolved, At: now},
	"Posted":         {Kind: Posted, At: now, TS: "2.0"},
	"Decide":         {Kind: Decide, At: now, TS: "3.0", Verdict: sessions.VerdictDeny, By: "U2", HasReason: true},
	"Delivered":      {Kind: Delivered, At: now},
	"TooLate":        {Kind: TooLate, At: now},
	"Unconfirmed":    {Kind: Unconfirmed, At: now},
	"Undelivered":    {Kind: Undelivered, At: now},
	"Interrupted":    {Kind: Interrupted, At: now},
	"AnswerReported": {Kind: AnswerReported, At: now},
}

// want is what becomes of a request: its state, and what is to be done. What is not listed changes nothing.
var want = map[string]string{
	"new + Opened":                 "open: post emit channel.asked waiting store",
	"new + Resolved":               "new: forget",
	"new + Posted":                 "new: store",
	"open + Opened":                "open: waiting store",
	"open + Resolved":              "over: edit emit channel.ask_over store",
	"open + Decide":                "delivering: deliver",
	"terminal + Opened":            "open: waiting store",
	"terminal + Resolved":          "over: edit emit channel.ask_over store",
	"unposted + Opened":            "open: waiting store",
	"unposted + Resolved":          "over: edit emit channel.ask_over store",
	"unposted + Posted":            "open: store",
	"unposted + Decide":            "delivering: deliver",
	"delivering + Opened":          "delivering: waiting store",
	"delivering + Delivered":       "decided: edit emit channel.ask_decided store",
	"delivering + TooLate":         "over: edit emit channel.ask_over store",
	"delivering + Unconfirmed":     "unsure: edit emit channel.ask_over store",
	"delivering + Undelivered":     "open: watch store",
	"delivering + Interrupted":     "deciding:",
	"interrupted + Opened":         "open: waiting store",
	"interrupted + Resolved":       "unsure: edit emit channel.ask_over store",
	"interrupted + AnswerReported": "decided: edit emit channel.ask_decided store",
	"in doubt + AnswerReported":    "decided: edit emit channel.ask_decided store",
}

func TestEveryEventInEveryState(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for state, r := range states {
		for name, e := range events {
			at := state + " + " + name
			next, fx := r.Next(e)
			got := describe(next, fx)
			expected, changes := want[at]
			if seen[at] = true; !changes {
				if expected = describe(r, Effects{}); !reflect.DeepEqual(next, r) {
					t.Errorf("%s: changed to %+v", at, next)
				}
			}
			if got != expected {
				t.Errorf("%s: %q; want %q", at, got, expected)
			}
			checkTruth(t, at, next, fx)
		}
	}
	for at := range want {
		if !seen[at] {
			t.Errorf("there is no %q", at)
		}
	}
}

// The file above a request that was not posted is lost with the run of the bot that made it.
func TestARequestWhoseFileIsLostIsNotDecided(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		r, fx := Request{Token: "t", Decidable: true, HasFile: true, Text: "do it"}.Next(Event{Kind: Opened, At: now, HasFile: there})
		if r.Decidable != there || fx.Post == nil || fx.Post.Decidable != there || r.State != Open {
			t.Errorf("with the file there: %t, it is %+v and posted as %+v", there, r, fx.Post)
		}
	}
}

func describe(r Request, fx Effects) string {
	state := string(r.State)
	switch {
	case r.State == New:
		state = "new"
	case r.Delivering:
		state = "delivering"
	}
	var b strings.Builder
	for _, f := range []struct {
		is   bool
		name string
	}{{fx.Post != nil, "post"}, {fx.Edit != nil, "edit"}, {fx.Emit != "", "emit " + fx.Emit}, {fx.Waiting, "waiting"}, {fx.Watch, "watch"},
		{fx.Deliver, "deliver"}, {fx.Forget, "forget"}, {fx.Store, "store"}} {
		if f.is {
			b.WriteString(" " + f.name)
		}
	}
	return fmt.Sprint(state, ":", b.String())
}

// checkTruth holds what is true in every state.
func checkTruth(t *testing.T, at string, r Request, fx Effects) {
	t.Helper()
	if ended := !r.IsOpen(); ended && (r.Ended.IsZero() || r.Delivering) {
		t.Errorf("%s: ended without a time, or still being delivered: %+v", at, r)
	}
	if r.Delivering && r.State != Deciding {
		t.Errorf("%s: delivered in state %q", at, r.State)
	}
	if known := r.State == Decided || r.State == Ended; known && r.Text != "" {
		t.Errorf("%s: the text is kept", at)
	}
	if r.State == Open && (r.DecidedBy != "" || r.Verdict != "" || !r.Ended.IsZero()) {
		t.Errorf("%s: open, and decided by %q", at, r.DecidedBy)
	}
	if fx.Edit != nil {
		text, buttons := fx.Edit.Message("name")
		if !strings.Contains(text, r.Outcome()) || len(buttons) != 0 {
			t.Errorf("%s: the message shows %q with %d buttons", at, text, len(buttons))
		}
	}
	if fx.Post != nil {
		if text, buttons := fx.Post.Message("name"); text != "do it" || len(buttons) != 3 {
			t.Errorf("%s: the message shows %q with %d buttons", at, text, len(buttons))
		}
	}
	if _, buttons := r.Message("name"); (len(buttons) > 0) != (r.WhyUndecidable() == "") {
		t.Errorf("%s: %d buttons, and a click says %q", at, len(buttons), r.WhyUndecidable())
	}
}

func TestRequestsThatEndedAreForgottenTheOldestFirst(t *testing.T) {
	t.Parallel()
	all := Requests{"open": {State: Open}, "new": {}}
	for i := range maxEnded + 3 {
		all[fmt.Sprint(i)] = Request{State: Decided, Ended: began.Add(time.Duration(i) * time.Second)}
	}
	all.Prune()
	for name, kept := range map[string]bool{"open": true, "new": true, "0": false, "2": false, "3": true} {
		if _, ok := all[name]; ok != kept {
			t.Errorf("%s is kept: %t", name, ok)
		}
	}
	if len(all) != maxEnded+2 {
		t.Errorf("%d are kept", len(all))
	}
}

package bot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

// backoff decides whether and when a connection is tried again. It is one goroutine's.
type backoff struct {
	o            SocketOptions
	failures     int       // in a row
	tokenWorked  bool      // Slack has taken the token
	refusedSince time.Time // since when it refuses it, having taken it before; zero: it does not
}

func newBackoff(o SocketOptions) *backoff { return &backoff{o: o} }

// transientRefusals are the refusals of a token that Slack also gives while something is wrong on its side. The others say what
// somebody has done to the app, its token or the workspace: token_revoked, missing_scope, app_not_found and so on.
var transientRefusals = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "access_denied": true,
	"org_login_required": true}

// markAccepted notes that Slack took the token.
func (b *backoff) markAccepted() { b.tokenWorked, b.refusedSince = true, time.Time{} }

// judge says what an attempt's error means: as an error to show, and whether it ends the attempts for good. A token that
// worked before is tried on for a time; one that never did is refused at once.
func (b *backoff) assess(err error, now time.Time) (shown error, over bool) {
	var f *slack.FatalError
	if !errors.As(err, &f) {
		return err, false
	}
	if !b.tokenWorked || !transientRefusals[f.Code] {
		return f, true
	}
	if b.refusedSince.IsZero() {
		b.refusedSince, b.failures = now, 0
	}
	until := b.refusedSince.Add(b.o.Grace)
	if !now.Before(until) {
		return f, true
	}
	return &refusedError{refusal: f, until: until}, false
}

// next is how long to wait before the next attempt: nothing after a connection that lived, then more with each failure, and
// never less than Slack asks for.
func (b *backoff) nextDelay(lived bool, err error) time.Duration {
	if lived {
		b.failures = 0
		return 0
	}
	b.failures++
	most := b.o.BackoffMax
	var refused *refusedError
	if errors.As(err, &refused) {
		most = b.o.GraceMax
	}
	d := most
	if b.failures < 16 {
		d = min(d, b.o.BackoffMin<<(b.failures-1))
	}
	d -= rand.N(d/4 + 1) // so that many bots do not come back at once
	var limited *chat.RateLimitedError
	if errors.As(err, &limited) {
		d = max(d, limited.After)
	}
	return d
}

// refusedError says that Slack refuses a token that it took before, and that it is tried again.
type refusedError struct {
	refusal *slack.FatalError
	until   time.Time
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("Slack refuses the %s (%s), which it took before; it is tried again until %s, and then the bot ends. If it was changed: %s",
		e.refusal.Token, e.refusal.Code, e.until.Format("15:04"), e.refusal.Remedy)
}

// shouldLog reports whether the log should have the failure: the third in a row, and then more and more seldom.
func (b *backoff) shouldLog() bool {
	return b.failures == 3 || b.failures > 3 && b.failures&(b.failures-1) == 0
}

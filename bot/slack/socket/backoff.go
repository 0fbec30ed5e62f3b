package socket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

// backoff decides whether and when to connect again. One goroutine uses it.
type backoff struct {
	o            Options
	failures     int       // in a row
	tokenWorked  bool      // Slack has accepted the token
	refusedSince time.Time // since when it refuses a token that it accepted before; zero: it does not
}

func newBackoff(o Options) *backoff { return &backoff{o: o} }

// transientRefusals are the refusals of a token that Slack also sends during its own failures. The others tell of a change of the
// app, its token or the workspace: token_revoked, missing_scope, app_not_found and so on.
var transientRefusals = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "access_denied": true,
	"org_login_required": true}

// markAccepted records that Slack accepted the token.
func (b *backoff) markAccepted() { b.tokenWorked, b.refusedSince = true, time.Time{} }

// assess returns the error to show for a failed attempt, and whether it was the last. A token that worked before is tried again
// for some time; one that never did is not.
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

// nextDelay is how long to wait before the next attempt: nothing after a stable connection, then more with each failure, and never
// less than Slack asks for.
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

// refusedError says that Slack refuses a token that it accepted before, and that it is tried again.
type refusedError struct {
	refusal *slack.FatalError
	until   time.Time
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("Slack refuses the %s (%s), which it accepted before; retrying until %s, then the bot stops. If the token was changed: %s",
		e.refusal.Token, e.refusal.Code, e.until.Format("15:04"), e.refusal.Remedy)
}

// shouldLog reports whether to log the failure: the third in a row, and then ever more rarely.
func (b *backoff) shouldLog() bool {
	return b.failures == 3 || b.failures > 3 && b.failures&(b.failures-1) == 0
}

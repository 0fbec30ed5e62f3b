package webapi

import (
	"time"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

// Slack's tiers, in calls a minute, and its own rules for chat.postMessage: one message a second and channel with
// short bursts over it, and some hundred a minute in all.
const (
	tier2 = 20
	tier3 = 50
	tier4 = 100

	PostBurst     = 4
	postPerMinute = 300
)

// bucket lets size calls through at once and refills over time.
type bucket struct {
	tokens float64
	last   time.Time
}

// take returns 0, or how long to wait for the next token.
func (b *bucket) take(now time.Time, size, perSecond float64) time.Duration {
	b.tokens = min(size, b.tokens+now.Sub(b.last).Seconds()*perSecond)
	b.last = now
	if b.tokens >= 1-1e-9 {
		b.tokens--
		return 0
	}
	return time.Duration((1 - b.tokens) / perSecond * float64(time.Second))
}

// limitRate counts one call against a method's tier. The caller holds Mu.
func (w *API) limitRate(name string, m method) error {
	if m.Tier == 0 {
		return nil
	}
	return w.takeToken(name, float64(m.Tier), float64(m.Tier)/60)
}

// limitPost counts one message against its channel and the workspace. The caller holds Mu.
func (w *API) limitPost(channel string) error {
	if err := w.takeToken("post/"+channel, PostBurst, 1); err != nil {
		return err
	}
	return w.takeToken("post", postPerMinute, postPerMinute/60)
}

func (w *API) takeToken(key string, size, perSecond float64) error {
	if w.Opts.RateLimits == store.RateLimitsOff {
		return nil
	}
	now := w.Clock.Now()
	b := w.rates[key]
	if b == nil {
		b = &bucket{tokens: size, last: now}
		w.rates[key] = b
	}
	if wait := b.take(now, size, perSecond); wait > 0 {
		return &slackerr.Error{Code: "ratelimited", RetryAfter: wait}
	}
	return nil
}

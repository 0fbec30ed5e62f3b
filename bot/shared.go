package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// SharedError says that a channel gets nothing of ours, since another organisation can read it.
type SharedError struct{ Channel string }

func (e *SharedError) Error() string {
	return fmt.Sprintf("the channel %s is shared with another organisation, which could read what agents say: stop sharing it, "+
		"use another channel, or set channels.slack.allowSharedChannels", e.Channel)
}

func (e *SharedError) Unwrap() error { return chat.ErrUnavailable }

const (
	// sharedAge is how long it counts what Slack said of a channel. The events that tell of a change come sooner.
	sharedAge = time.Minute
	// sharedTimeout bounds what is asked and told because of one channel.
	sharedTimeout = 30 * time.Second
)

// sharing knows which channels another organisation can read. Everything that the client posts asks it first. Its run tells
// the operator of the channels that are held back, where no stranger reads.
type sharing struct {
	b    *Bot
	ask  singleflight.Group
	wake chan struct{}

	mu    sync.Mutex // guards the fields that follow
	known map[string]knownChannel
	told  map[string]map[string]bool // by channel, which members know that it is held back
}

// knownChannel is what Slack last said of a channel.
type knownChannel struct {
	shared bool
	until  time.Time
	heard  int  // counts the events that may have changed it
	ask    bool // one of them says so: it is asked at once, and not with the next message
}

func newSharing(b *Bot) *sharing {
	return &sharing{b: b, wake: make(chan struct{}, 1), known: map[string]knownChannel{}, told: map[string]map[string]bool{}}
}

// check fails with a [*SharedError] when nothing may be posted in a channel, and also when that cannot be found out. A direct
// message is always fine: only members who are let in are written to.
func (s *sharing) check(ctx context.Context, channel string) error {
	if s.b.o.Config().AllowShared || channel == "" || !strings.ContainsAny(channel[:1], "CG") {
		return nil
	}
	s.mu.Lock()
	known := s.known[channel]
	s.mu.Unlock()
	if !time.Now().Before(known.until) {
		answer, err, _ := s.ask.Do(channel, func() (any, error) { return s.look(ctx, channel) })
		if err != nil {
			return err
		}
		known.shared = answer.(bool)
	}
	if known.shared {
		return &SharedError{Channel: channel}
	}
	return nil
}

// look asks Slack. What it says counts only as long as no event says that something changed. A channel of which it says
// nothing is not written to: the refusal is the channel's, never one of the message that waits.
func (s *sharing) look(ctx context.Context, channel string) (bool, error) {
	s.mu.Lock()
	before := s.known[channel].heard
	s.mu.Unlock()
	shared, err := s.b.o.Client.shared(ctx, channel)
	switch {
	case err != nil && chat.FailureOf(err) == chat.FailureMessage:
		return false, fmt.Errorf("look whether the channel %s is shared: %w (%s)", channel, chat.ErrUnavailable, code(err))
	case err != nil:
		return false, fmt.Errorf("look whether the channel %s is shared: %w", channel, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[channel]; known.heard == before {
		s.learn(channel, shared)
	}
	return shared, nil
}

// learn takes that a channel is shared, or is not. The caller holds mu.
func (s *sharing) learn(channel string, shared bool) {
	was := s.known[channel]
	s.known[channel] = knownChannel{shared: shared, until: time.Now().Add(sharedAge), heard: was.heard}
	if was.shared != shared || was.ask {
		s.poke()
	}
}

// heardShared takes that an event came out of a channel that is shared.
func (s *sharing) heardShared(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[channel]; !known.shared && !s.b.o.Config().AllowShared {
		known.heard++
		s.known[channel] = known
		s.learn(channel, true)
	}
}

// doubt has Slack asked again before the next message, or at once: an event says that something may have changed.
func (s *sharing) doubt(channel string, atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[channel]
	known.heard++
	known.until, known.ask = time.Time{}, atOnce
	s.known[channel] = known
	s.poke()
}

func (s *sharing) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// held lists the channels that nothing is posted in, sorted.
func (s *sharing) held() (channels []string) {
	if s.b.o.Config().AllowShared {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, known := range s.known {
		if known.shared {
			channels = append(channels, channel)
		}
	}
	slices.Sort(channels)
	return channels
}

// problems says which channels are held back, and how much waits.
func (s *sharing) problems() (all []string) {
	for _, channel := range s.held() {
		all = append(all, fmt.Sprintf("%v (%d messages wait)", &SharedError{Channel: channel}, s.b.threads.PendingPosts(channel)))
	}
	return all
}

// run looks at the channels that are held back until they are not any more, and tells the operator of them, until ctx ends.
func (s *sharing) run(ctx context.Context) {
	for {
		for _, channel := range s.shared() {
			s.tend(ctx, channel)
		}
		timer := time.NewTimer(sharedAge)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// shared lists the channels that are held back, or may be.
func (s *sharing) shared() (channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, known := range s.known {
		if known.shared || known.ask || s.told[channel] != nil {
			channels = append(channels, channel)
		}
	}
	return channels
}

// tend tells of one channel, or has what waited there go on.
func (s *sharing) tend(ctx context.Context, channel string) {
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()
	var shared *SharedError
	switch err := s.check(ctx, channel); {
	case errors.As(err, &shared):
		s.tell(ctx, channel)
	case err == nil && s.forget(channel):
		s.b.o.Log.Info("a channel takes messages again that was shared with another organisation", "channel", channel)
		s.b.opened(channel)
	}
}

// forget takes that a channel is not held back, and reports whether it was.
func (s *sharing) forget(channel string) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, told := s.known[channel], s.told[channel] != nil
	was = known.shared || told
	known.shared, known.ask = false, false
	if was {
		known.until = time.Time{} // it may only be allowed: when that ends, it is asked anew
	}
	s.known[channel] = known
	delete(s.told, channel)
	return was
}

// tell writes to each member who is let in, once, as long as the channel is held back. Where Slack does not take that, the log
// and the status have it.
func (s *sharing) tell(ctx context.Context, channel string) {
	s.mu.Lock()
	told := s.told[channel]
	if told == nil {
		told = map[string]bool{}
		s.told[channel] = told
		s.b.o.Log.Warn("nothing is posted in a channel that another organisation can read", "channel", channel)
	}
	s.mu.Unlock()
	for _, user := range s.b.o.Config().Users {
		if told[user] || !s.b.allows(ctx, user) {
			continue
		}
		_, err := s.b.o.Client.Post(ctx, chat.Post{Channel: user, Nonce: rand.Text(), Text: fmt.Sprintf(":no_entry: <#%s> is shared with another "+
			"organisation now. Nothing of the sessions is posted there any more, and it waits: stop sharing the channel, use another one, or set "+
			"`channels.slack.allowSharedChannels`.", channel)})
		if failure := chat.FailureOf(err); err != nil && (failure == chat.FailureRetry || failure == chat.FailureWait) && !errors.Is(err, chat.ErrOutcomeUnknown) {
			continue // the next look tries again
		}
		if err != nil {
			s.b.o.Log.Warn("a member could not be told by direct message", "member", user, "err", err)
		}
		told[user] = true // only this goroutine looks
	}
}

// allows reports whether a member is let in now.
func (b *Bot) allows(ctx context.Context, user string) bool {
	actor, _, err := b.o.Client.People().Complete(ctx, authz.Actor{User: user})
	verdict, _ := b.Policy().Authorize(actor)
	return err == nil && verdict == authz.Allowed
}

// opened has everything tried at once that a channel did not take.
func (b *Bot) opened(channel string) {
	b.threads.ChannelOpened(channel)
	b.announcer.retry()
}

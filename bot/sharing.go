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

	"the-loop/bot/slack"
	"the-loop/threads/chat"
)

// SharedChannelError says that a channel gets nothing of ours, since another organisation can read it.
type SharedChannelError struct{ Channel string }

func (e *SharedChannelError) Error() string {
	return fmt.Sprintf("the channel %s is shared with another organisation, which could read what agents say: stop sharing it, "+
		"use another channel, or set channels.slack.allowSharedChannels", e.Channel)
}

func (e *SharedChannelError) Unwrap() error { return chat.ErrUnavailable }

const (
	// sharingTTL is how long it counts what Slack said of a channel. The events that tell of a change come sooner.
	sharingTTL = time.Minute
	// sharingTimeout bounds what is asked and told because of one channel.
	sharingTimeout = 30 * time.Second
)

// sharingGuard knows which channels another organisation can read. Everything that the client posts asks it first. Its run tells
// the operator of the channels that are held back, where no stranger reads.
type sharingGuard struct {
	b        *Bot
	inFlight singleflight.Group
	wakeup   chan struct{}

	mu       sync.Mutex // guards the fields that follow
	channels map[string]channelSharing
	notified map[string]map[string]bool // by channel, which members know that it is held back
}

// channelSharing is what Slack last said of a channel.
type channelSharing struct {
	shared     bool
	until      time.Time
	eventCount int  // counts the events that may have changed it
	recheckNow bool // one of them says so: it is asked at once, and not with the next message
}

func newSharingGuard(b *Bot) *sharingGuard {
	return &sharingGuard{b: b, wakeup: make(chan struct{}, 1), channels: map[string]channelSharing{}, notified: map[string]map[string]bool{}}
}

// check fails with a [*SharedChannelError] when nothing may be posted in a channel, and also when that cannot be found out. A direct
// message is always fine: only members who are let in are written to.
func (s *sharingGuard) check(ctx context.Context, channel string) error {
	if s.b.o.Config().AllowShared || channel == "" || !strings.ContainsAny(channel[:1], "CG") {
		return nil
	}
	s.mu.Lock()
	known := s.channels[channel]
	s.mu.Unlock()
	if !time.Now().Before(known.until) {
		answer, err, _ := s.inFlight.Do(channel, func() (any, error) { return s.fetchSharing(ctx, channel) })
		if err != nil {
			return err
		}
		known.shared = answer.(bool)
	}
	if known.shared {
		return &SharedChannelError{Channel: channel}
	}
	return nil
}

// look asks Slack. What it says counts only as long as no event says that something changed. A channel of which it says
// nothing is not written to: the refusal is the channel's, never one of the message that waits.
func (s *sharingGuard) fetchSharing(ctx context.Context, channel string) (bool, error) {
	s.mu.Lock()
	before := s.channels[channel].eventCount
	s.mu.Unlock()
	ch, err := s.b.o.Client.ChannelInfo(ctx, channel)
	switch {
	case err != nil && chat.FailureOf(err) == chat.FailureMessage:
		return false, fmt.Errorf("look whether the channel %s is shared: %w (%s)", channel, chat.ErrUnavailable, slack.ErrorCode(err))
	case err != nil:
		return false, fmt.Errorf("look whether the channel %s is shared: %w", channel, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.channels[channel]; known.eventCount == before {
		s.setSharedLocked(channel, ch.Shared)
	}
	return ch.Shared, nil
}

// setSharedLocked takes that a channel is shared, or is not. The caller holds mu.
func (s *sharingGuard) setSharedLocked(channel string, shared bool) {
	was := s.channels[channel]
	s.channels[channel] = channelSharing{shared: shared, until: time.Now().Add(sharingTTL), eventCount: was.eventCount}
	if was.shared != shared || was.recheckNow {
		s.wake()
	}
}

// onSharedEvent takes that an event came out of a channel that is shared.
func (s *sharingGuard) onSharedEvent(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.channels[channel]; !known.shared && !s.b.o.Config().AllowShared {
		known.eventCount++
		s.channels[channel] = known
		s.setSharedLocked(channel, true)
	}
}

// invalidate has Slack asked again before the next message, or at once: an event says that something may have changed.
func (s *sharingGuard) invalidate(channel string, atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.channels[channel]
	known.eventCount++
	known.until, known.recheckNow = time.Time{}, atOnce
	s.channels[channel] = known
	s.wake()
}

func (s *sharingGuard) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// heldChannels lists the channels that nothing is posted in, sorted.
func (s *sharingGuard) heldChannels() (channels []string) {
	if s.b.o.Config().AllowShared {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, known := range s.channels {
		if known.shared {
			channels = append(channels, channel)
		}
	}
	slices.Sort(channels)
	return channels
}

// problems says which channels are held back, and how much waits.
func (s *sharingGuard) problems() (all []string) {
	for _, channel := range s.heldChannels() {
		all = append(all, fmt.Sprintf("%v (%d messages wait)", &SharedChannelError{Channel: channel}, s.b.threads.PendingPosts(channel)))
	}
	return all
}

// run looks at the channels that are held back until they are not any more, and tells the operator of them, until ctx ends.
func (s *sharingGuard) run(ctx context.Context) {
	for {
		for _, channel := range s.channelsToCheck() {
			s.process(ctx, channel)
		}
		timer := time.NewTimer(sharingTTL)
		select {
		case <-ctx.Done():
		case <-s.wakeup:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// shared lists the channels that are held back, or may be.
func (s *sharingGuard) channelsToCheck() (channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, known := range s.channels {
		if known.shared || known.recheckNow || s.notified[channel] != nil {
			channels = append(channels, channel)
		}
	}
	return channels
}

// process tells of one channel, or has what waited there go on.
func (s *sharingGuard) process(ctx context.Context, channel string) {
	ctx, cancel := context.WithTimeout(ctx, sharingTimeout)
	defer cancel()
	var shared *SharedChannelError
	switch err := s.check(ctx, channel); {
	case errors.As(err, &shared):
		s.notifyMembers(ctx, channel)
	case err == nil && s.release(channel):
		s.b.o.Log.Info("a channel takes messages again that was shared with another organisation", "channel", channel)
		s.b.retryChannel(channel)
	}
}

// release takes that a channel is not held back, and reports whether it was.
func (s *sharingGuard) release(channel string) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, told := s.channels[channel], s.notified[channel] != nil
	was = known.shared || told
	known.shared, known.recheckNow = false, false
	if was {
		known.until = time.Time{} // it may only be allowed: when that ends, it is asked anew
	}
	s.channels[channel] = known
	delete(s.notified, channel)
	return was
}

// tell writes to each member who is let in, once, as long as the channel is held back. Where Slack does not take that, the log
// and the status have it.
func (s *sharingGuard) notifyMembers(ctx context.Context, channel string) {
	s.mu.Lock()
	told := s.notified[channel]
	if told == nil {
		told = map[string]bool{}
		s.notified[channel] = told
		s.b.o.Log.Warn("nothing is posted in a channel that another organisation can read", "channel", channel)
	}
	s.mu.Unlock()
	for _, user := range s.b.o.Config().Users {
		if told[user] || s.b.authorizeMember(ctx, user) != nil {
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

// retryChannel retries at once what the channel refused.
func (b *Bot) retryChannel(channel string) {
	b.threads.ChannelOpened(channel)
	b.announcer.Retry()
}

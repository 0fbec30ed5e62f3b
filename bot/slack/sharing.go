package slack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"the-loop/threads/chat"
)

// SharedChannelError says that nothing may be posted in a channel, since another organisation can read it.
type SharedChannelError struct{ Channel string }

func (e *SharedChannelError) Error() string {
	return fmt.Sprintf("the channel %s is shared with another organisation, which could read what agents say: stop sharing it, "+
		"use another channel, or set channels.slack.allowSharedChannels", e.Channel)
}

func (e *SharedChannelError) Unwrap() error { return chat.ErrUnavailable }

const (
	// sharingTTL is how long an answer of Slack about a channel is used. The events that tell of a change come sooner.
	sharingTTL = time.Minute
	// sharingTimeout bounds the calls because of one channel.
	sharingTimeout = 30 * time.Second
)

// SharingGuardOptions are what a [SharingGuard] is made of. All are required.
type SharingGuardOptions struct {
	Client      *Client
	AllowShared func() bool                        // whether shared channels may be written to
	Members     func(ctx context.Context) []string // whom to tell by direct message of a channel that is held back
	OnRelease   func(channel string)               // called when a channel may be written to again
	Log         *slog.Logger
}

// SharingGuard knows which channels another organisation can read, and holds messages back there. Its Run tells members of
// such channels, in direct messages.
type SharingGuard struct {
	o        SharingGuardOptions
	inFlight singleflight.Group
	wakeup   chan struct{}

	mu       sync.Mutex // guards the fields that follow
	channels map[string]channelSharing
	notified map[string]map[string]bool // by channel, the members who were told
}

// channelSharing is what Slack last said of a channel.
type channelSharing struct {
	shared     bool
	until      time.Time
	eventCount int  // the number of events that may have changed it
	recheckNow bool // ask at once, not with the next message
}

// NewSharingGuard returns a guard; it calls nothing yet.
func NewSharingGuard(o SharingGuardOptions) *SharingGuard {
	return &SharingGuard{o: o, wakeup: make(chan struct{}, 1), channels: map[string]channelSharing{}, notified: map[string]map[string]bool{}}
}

// Check returns a [*SharedChannelError] when nothing may be posted in a channel, and another error when that cannot be found out.
// Direct messages are always allowed: only authorized members get them.
func (s *SharingGuard) Check(ctx context.Context, channel string) error {
	if s.o.AllowShared() || channel == "" || !strings.ContainsAny(channel[:1], "CG") {
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

// fetchSharing asks Slack. The answer is remembered unless an event of a change came meanwhile. A refusal counts for the channel,
// never for the message that waits.
func (s *SharingGuard) fetchSharing(ctx context.Context, channel string) (bool, error) {
	s.mu.Lock()
	before := s.channels[channel].eventCount
	s.mu.Unlock()
	ch, err := s.o.Client.ChannelInfo(ctx, channel)
	switch {
	case err != nil && chat.FailureOf(err) == chat.FailureMessage:
		return false, fmt.Errorf("look whether the channel %s is shared: %w (%s)", channel, chat.ErrUnavailable, ErrorCode(err))
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

// setSharedLocked records whether a channel is shared. The caller holds mu.
func (s *SharingGuard) setSharedLocked(channel string, shared bool) {
	was := s.channels[channel]
	s.channels[channel] = channelSharing{shared: shared, until: time.Now().Add(sharingTTL), eventCount: was.eventCount}
	if was.shared != shared || was.recheckNow {
		s.wake()
	}
}

// OnSharedEvent records that an event came from a shared channel.
func (s *SharingGuard) OnSharedEvent(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.channels[channel]; !known.shared && !s.o.AllowShared() {
		known.eventCount++
		s.channels[channel] = known
		s.setSharedLocked(channel, true)
	}
}

// Invalidate makes the guard ask Slack again, at once or before the next message: an event says that something may have changed.
func (s *SharingGuard) Invalidate(channel string, atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.channels[channel]
	known.eventCount++
	known.until, known.recheckNow = time.Time{}, atOnce
	s.channels[channel] = known
	s.wake()
}

func (s *SharingGuard) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// HeldChannels are the channels where messages are held back, sorted.
func (s *SharingGuard) HeldChannels() (channels []string) {
	if s.o.AllowShared() {
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

// Run checks the channels that are held back, and tells members of them, until ctx ends.
func (s *SharingGuard) Run(ctx context.Context) {
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

// channelsToCheck are the channels that are held back, or may be.
func (s *SharingGuard) channelsToCheck() (channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, known := range s.channels {
		if known.shared || known.recheckNow || s.notified[channel] != nil {
			channels = append(channels, channel)
		}
	}
	return channels
}

// process tells members of one channel, or releases it.
func (s *SharingGuard) process(ctx context.Context, channel string) {
	ctx, cancel := context.WithTimeout(ctx, sharingTimeout)
	defer cancel()
	var shared *SharedChannelError
	switch err := s.Check(ctx, channel); {
	case errors.As(err, &shared):
		s.notifyMembers(ctx, channel)
	case err == nil && s.release(channel):
		s.o.Log.Info("posting again in a channel that was shared with another organisation", "channel", channel)
		s.o.OnRelease(channel)
	}
}

// release records that a channel is not held back, and reports whether it was.
func (s *SharingGuard) release(channel string) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, told := s.channels[channel], s.notified[channel] != nil
	was = known.shared || told
	known.shared, known.recheckNow = false, false
	if was {
		known.until = time.Time{} // it may still be shared, and only be allowed now
	}
	s.channels[channel] = known
	delete(s.notified, channel)
	return was
}

// notifyMembers writes to each member once while the channel is held back. Where Slack refuses that, the log and the status have
// it.
func (s *SharingGuard) notifyMembers(ctx context.Context, channel string) {
	s.mu.Lock()
	told := s.notified[channel] // only this goroutine uses it
	if told == nil {
		told = map[string]bool{}
		s.notified[channel] = told
		s.o.Log.Warn("nothing is posted in a channel that another organisation can read", "channel", channel)
	}
	s.mu.Unlock()
	for _, user := range s.o.Members(ctx) {
		if told[user] {
			continue
		}
		_, err := s.o.Client.Post(ctx, chat.Post{Channel: user, Nonce: rand.Text(), Text: fmt.Sprintf(":no_entry: <#%s> is shared with another "+
			"organisation now. Nothing of the sessions is posted there any more, and it waits: stop sharing the channel, use another one, or set "+
			"`channels.slack.allowSharedChannels`.", channel)})
		if failure := chat.FailureOf(err); err != nil && (failure == chat.FailureRetry || failure == chat.FailureWait) && !errors.Is(err, chat.ErrOutcomeUnknown) {
			continue // the next check tries again
		}
		if err != nil {
			s.o.Log.Warn("cannot send a direct message", "member", user, "err", err)
		}
		told[user] = true
	}
}

package localslack

import (
	"time"

	"the-loop/bot/localslack/slacktime"
)

// Clock is [slacktime.Clock].
type Clock = slacktime.Clock

// FakeClock is [slacktime.FakeClock].
type FakeClock = slacktime.FakeClock

// NewFakeClock is [slacktime.NewFakeClock].
func NewFakeClock(start time.Time) *FakeClock { return slacktime.NewFakeClock(start) }

// TSTime is [slacktime.TSTime].
func TSTime(ts string) time.Time { return slacktime.TSTime(ts) }

package localslack

import (
	"time"

	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
)

// Clock is [slacktime.Clock].
type Clock = slacktime.Clock

// FakeClock is [slacktime.FakeClock].
type FakeClock = slacktime.FakeClock

// NewFakeClock is [slacktime.NewFakeClock].
func NewFakeClock(start time.Time) *FakeClock { return slacktime.NewFakeClock(start) }

// TSTime is [slacktime.TSTime].
func TSTime(ts string) time.Time { return slacktime.TSTime(ts) }

// Bot is [store.Bot].
func Bot() UserOption { return store.Bot() }

// Deleted is [store.Deleted].
func Deleted() UserOption { return store.Deleted() }

// Ephemeral is [store.Ephemeral].
type Ephemeral = store.Ephemeral

// ExtShared is [store.ExtShared].
func ExtShared(teams ...string) ChannelOption { return store.ExtShared(teams...) }

// File is [store.File].
type File = store.File

// Frame is [store.Frame].
type Frame = store.Frame

// Guest is [store.Guest].
func Guest() UserOption { return store.Guest() }

// Members is [store.Members].
func Members(users ...string) ChannelOption { return store.Members(users...) }

// Message is [store.Message].
type Message = store.Message

// Named is [store.Named].
func Named(realName string, displayName string) UserOption { return store.Named(realName, displayName) }

// Options is [store.Options].
type Options = store.Options

// Private is [store.Private].
func Private() ChannelOption { return store.Private() }

// RateLimitsOff is [store.RateLimitsOff].
const RateLimitsOff = store.RateLimitsOff

// RateLimitsStrict is [store.RateLimitsStrict].
const RateLimitsStrict = store.RateLimitsStrict

// Stranger is [store.Stranger].
func Stranger(team string) UserOption { return store.Stranger(team) }

// View is [store.View].
type View = store.View

// UserOption is [store.UserOption].
type UserOption = store.UserOption

// ChannelOption is [store.ChannelOption].
type ChannelOption = store.ChannelOption

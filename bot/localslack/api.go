package localslack

import (
	"time"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/socket"
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

// APIFault is [faults.APIFault].
type APIFault = faults.APIFault

// BadBlocks is [faults.BadBlocks].
const BadBlocks = faults.BadBlocks

// BadJSON is [faults.BadJSON].
func BadJSON() APIFault { return faults.BadJSON() }

// BadText is [faults.BadText].
const BadText = faults.BadText

// ConnectFault is [faults.ConnectFault].
type ConnectFault = faults.ConnectFault

// CutAfter is [faults.CutAfter].
func CutAfter() APIFault { return faults.CutAfter() }

// CutBefore is [faults.CutBefore].
func CutBefore() APIFault { return faults.CutBefore() }

// Delay is [faults.Delay].
func Delay(d time.Duration) APIFault { return faults.Delay(d) }

// DeliveryFault is [faults.DeliveryFault].
type DeliveryFault = faults.DeliveryFault

// DisconnectFirst is [faults.DisconnectFirst].
func DisconnectFirst(reason string) ConnectFault { return faults.DisconnectFirst(reason) }

// Duplicate is [faults.Duplicate].
const Duplicate = faults.Duplicate

// DuplicateNewEnvelope is [faults.DuplicateNewEnvelope].
const DuplicateNewEnvelope = faults.DuplicateNewEnvelope

// Error is [faults.Error].
func Error(code string) APIFault { return faults.Error(code) }

// HTML is [faults.HTML].
func HTML(status int) APIFault { return faults.HTML(status) }

// Hang is [faults.Hang].
func Hang() APIFault { return faults.Hang() }

// HangAfter is [faults.HangAfter].
func HangAfter() APIFault { return faults.HangAfter() }

// LoseFirst is [faults.LoseFirst].
const LoseFirst = faults.LoseFirst

// NoHello is [faults.NoHello].
func NoHello() ConnectFault { return faults.NoHello() }

// RateLimited is [faults.RateLimited].
func RateLimited(retryAfter string) APIFault { return faults.RateLimited(retryAfter) }

// Redirect is [faults.Redirect].
func Redirect(to string) APIFault { return faults.Redirect(to) }

// RejectUpgrade is [faults.RejectUpgrade].
func RejectUpgrade(status int) ConnectFault { return faults.RejectUpgrade(status) }

// Suppress is [faults.Suppress].
const Suppress = faults.Suppress

// Faults is [socket.Faults].
type Faults = socket.Faults

// Package store is the state of the local workspace: its people, channels and messages, and what the app shows people there.
// It sends nothing.
package store

import (
	"context"
	"log/slog"
	"sync"

	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/slacktime"
)

// Base is what every part of the workspace shares: its options and identity, time, ids, the journal of changes, and
// what was asked of it.
type Base struct {
	Opts    Options
	Clock   slacktime.Clock
	Log     *slog.Logger
	Sched   *slacktime.Scheduler
	Ctx     context.Context // of the serving workspace; set before started
	BaseURL string          // http://127.0.0.1:PORT

	appID, botID, BotUser string

	Mu       sync.Mutex // guards the fields that follow, and all the state of the types that embed this one
	Started  bool
	changed  chan struct{}
	lastTS   int64
	lastID   int64
	frames   ring[Frame]
	requests ring[Request]
	Journal  ring[Change]
}

// Places are the people and the channels, with the messages in them.
type Places struct {
	*Base

	MembersByID  map[string]*Member
	PeopleOrder  []string
	Groups       []userGroup
	ChannelsByID map[string]*ChannelState
	ChannelOrder []string
}

// Store is the state of a workspace: its places, and what the app shows people there. It sends nothing.
type Store struct {
	*Places

	EphemeralsByUser   map[string][]Ephemeral
	ViewsByID          map[string]*OpenView
	ViewStacks         map[string][]string // user → open modals, bottom first
	Homes              map[string]*OpenView
	Triggers           map[string]*Trigger
	ResponseURLs       map[string]*ResponseURL
	Files              map[string]*StoredFile
	Statuses           map[string]string // channel/thread → assistant status
	cancelStatusExpiry map[string]func() // channel/thread → calls off that Slack takes the status away
}

// New makes the state of a workspace in which there is nobody but the app's bot.
func New(opts Options) *Store {
	base := &Base{Opts: opts, Clock: opts.Clock, Log: opts.Log, Sched: slacktime.NewScheduler(opts.Clock), changed: make(chan struct{}),
		frames: ring[Frame]{max: opts.FrameLog}, requests: ring[Request]{max: opts.RequestLog}, Journal: ring[Change]{max: JournalLength}}
	base.appID, base.botID = slackid.AppID(opts.AppToken), base.NewID("B")
	bot := &Member{ID: base.NewID("U"), Name: opts.BotName, TeamID: opts.TeamID, HomeTeam: opts.TeamID, Bot: true, BotID: base.botID, AppID: base.appID}
	base.BotUser = bot.ID
	places := &Places{Base: base, MembersByID: map[string]*Member{bot.ID: bot}, PeopleOrder: []string{bot.ID}, ChannelsByID: map[string]*ChannelState{}}
	return &Store{Places: places, EphemeralsByUser: map[string][]Ephemeral{}, ViewsByID: map[string]*OpenView{}, ViewStacks: map[string][]string{},
		Homes: map[string]*OpenView{}, Triggers: map[string]*Trigger{}, ResponseURLs: map[string]*ResponseURL{}, Files: map[string]*StoredFile{},
		Statuses: map[string]string{}, cancelStatusExpiry: map[string]func(){}}
}

package localslack

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
	opts    Options
	clock   Clock
	log     *slog.Logger
	sched   *slacktime.Scheduler
	ctx     context.Context // of the serving workspace; set before started
	baseURL string          // http://127.0.0.1:PORT

	appID, botID, botUser string

	mu       sync.Mutex // guards the fields that follow, and all the state of the types that embed this one
	started  bool
	changed  chan struct{}
	lastTS   int64
	lastID   int64
	frames   ring[Frame]
	requests ring[Request]
	journal  ring[change]
}

// Places are the people and the channels, with the messages in them.
type Places struct {
	*Base

	people       map[string]*Member
	peopleOrder  []string
	groups       []userGroup
	channels     map[string]*channelState
	channelOrder []string
}

// Store is the state of a workspace: its places, and what the app shows people there. It sends nothing.
type Store struct {
	*Places

	ephemerals         map[string][]Ephemeral
	views              map[string]*view
	viewStacks         map[string][]string // user → open modals, bottom first
	homes              map[string]*view
	triggers           map[string]*trigger
	responseURLs       map[string]*responseURL
	files              map[string]*storedFile
	statuses           map[string]string // channel/thread → assistant status
	cancelStatusExpiry map[string]func() // channel/thread → calls off that Slack takes the status away
}

// newStore makes the state of a workspace in which there is nobody but the app's bot.
func newStore(opts Options) *Store {
	base := &Base{opts: opts, clock: opts.Clock, log: opts.Log, sched: slacktime.NewScheduler(opts.Clock), changed: make(chan struct{}),
		frames: ring[Frame]{max: opts.FrameLog}, requests: ring[Request]{max: opts.RequestLog}, journal: ring[change]{max: journalLength}}
	base.appID, base.botID = slackid.AppID(opts.AppToken), base.newID("B")
	bot := &Member{ID: base.newID("U"), Name: opts.BotName, TeamID: opts.TeamID, HomeTeam: opts.TeamID, bot: true, botID: base.botID, appID: base.appID}
	base.botUser = bot.ID
	places := &Places{Base: base, people: map[string]*Member{bot.ID: bot}, peopleOrder: []string{bot.ID}, channels: map[string]*channelState{}}
	return &Store{Places: places, ephemerals: map[string][]Ephemeral{}, views: map[string]*view{}, viewStacks: map[string][]string{},
		homes: map[string]*view{}, triggers: map[string]*trigger{}, responseURLs: map[string]*responseURL{}, files: map[string]*storedFile{},
		statuses: map[string]string{}, cancelStatusExpiry: map[string]func(){}}
}

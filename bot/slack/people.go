package slack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"the-loop/authz"
	"the-loop/bot/slack/lenientjson"
)

// Person is what Slack says of a member.
type Person struct {
	ID         string
	Name       string // the display name
	Team       string
	Enterprise string
	Bot        bool
	Deleted    bool // deactivated
	Stranger   bool // of another organisation, seen in a shared channel
	Guest      bool
}

// ErrNoPerson says that Slack shows us no such member.
var ErrNoPerson = errors.New("no such member")

const (
	peopleTTL = 10 * time.Minute
	maxPeople = 4096 // entries of each kind; the oldest go first
)

// People knows members and channels: it asks Slack once in ten minutes for each, and once at a time.
type People struct {
	api      *API
	members  cache[Person]
	channels cache[string]
}

func newPeople(api *API) *People { return &People{api: api} }

// Person returns a member. [ErrNoPerson] when Slack shows us none of that id; that too is remembered.
func (p *People) Person(ctx context.Context, id string) (Person, error) {
	return p.members.get(ctx, id, func(ctx context.Context) (Person, error) {
		a, err := p.api.call(ctx, MethodUser, url.Values{"user": {id}})
		switch ErrorCode(err) {
		case "user_not_found", "user_not_visible", "users_not_found":
			return Person{}, ErrNoPerson
		}
		if err != nil {
			return Person{}, err
		}
		return parsePerson(id, a.Obj("user")), nil
	})
}

func parsePerson(id string, u lenientjson.Object) Person {
	profile, grid := u.Obj("profile"), u.Obj("enterprise_user")
	return Person{
		ID:         id,
		Name:       cmp.Or(profile.Str("display_name"), profile.Str("real_name"), u.Str("real_name"), u.Str("name")),
		Team:       u.Str("team_id"),
		Enterprise: cmp.Or(grid.Str("enterprise_id"), u.Str("enterprise_id")),
		Bot:        u.IsTrue("is_bot") || id == slackbot,
		Deleted:    u.IsTrue("deleted"),
		Stranger:   u.IsTrue("is_stranger"),
		Guest:      u.IsTrue("is_restricted") || u.IsTrue("is_ultra_restricted"),
	}
}

// ResolveActor adds to an actor what only Slack knows of the person. A member whom Slack does not show, or who is deactivated,
// gets no team and so is never authorized. It fails when Slack does not answer and the team is not known otherwise: then
// nothing can be decided yet.
func (p *People) ResolveActor(ctx context.Context, a authz.Actor) (authz.Actor, Person, error) {
	if a.User == "" {
		return a, Person{}, nil
	}
	person, err := p.Person(ctx, a.User)
	switch {
	case errors.Is(err, ErrNoPerson):
		a.Team, a.Enterprise = "", ""
		return a, Person{}, nil
	case err != nil && a.Team == "":
		return a, Person{}, err
	case err != nil:
		return a, Person{}, nil
	}
	self := p.api.Self()
	a.Bot = a.Bot || person.Bot
	a.Team = homeTeam(self, a.Team, person.Team)
	a.Enterprise = cmp.Or(person.Enterprise, a.Enterprise)
	if person.Deleted || person.Stranger && a.Team == self.Team {
		a.Team, a.Enterprise = "", ""
	}
	return a, person, nil
}

// ChannelName returns the name of a channel, without the #.
func (p *People) ChannelName(ctx context.Context, id string) (string, error) {
	return p.channels.get(ctx, id, func(ctx context.Context) (string, error) {
		ch, err := p.api.ChannelInfo(ctx, id)
		return ch.Name, err
	})
}

// nameLookup finds the names in the text of a message. Who is not authorized is shown by the member id, since everybody chooses
// the own name.
func (p *People) nameLookup(ctx context.Context) nameLookup {
	return nameLookup{
		TextRules: p.api.text,
		member: func(id string) string {
			if listed := p.api.hooks.Load().IsListed; id != p.api.Self().User && (listed == nil || !listed(id)) {
				return ""
			}
			person, err := p.Person(ctx, id)
			if err != nil {
				return ""
			}
			return person.Name
		},
		channel: func(id string) string {
			name, err := p.ChannelName(ctx, id)
			if err != nil {
				return ""
			}
			return name
		},
	}
}

// cache remembers what Slack said, for a while and within bounds.
type cache[V any] struct {
	inFlight singleflight.Group

	mu      sync.Mutex // guards the fields that follow
	entries map[string]entry[V]
}

type entry[V any] struct {
	value V
	err   error // nil or ErrNoPerson
	until time.Time
}

// get returns what is remembered, or fetches it. Concurrent calls for one key share a fetch; when the caller that fetches is
// canceled, another takes over.
func (c *cache[V]) get(ctx context.Context, key string, fetch func(context.Context) (V, error)) (V, error) {
	for {
		if e, ok := c.find(key); ok {
			return e.value, e.err
		}
		v, err, _ := c.inFlight.Do(key, func() (any, error) {
			v, err := fetch(ctx)
			if err == nil || errors.Is(err, ErrNoPerson) {
				c.store(key, entry[V]{value: v, err: err, until: time.Now().Add(peopleTTL)})
			}
			return v, err
		})
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			continue
		}
		value, _ := v.(V)
		return value, err
	}
}

func (c *cache[V]) find(key string) (entry[V], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e, ok && time.Now().Before(e.until)
}

func (c *cache[V]) store(key string, e entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]entry[V]{}
	}
	if len(c.entries) >= maxPeople {
		c.evict()
	}
	c.entries[key] = e
}

// evict removes expired entries and the one that expires next. The caller holds mu.
func (c *cache[V]) evict() {
	oldest, now := "", time.Now()
	for k, e := range c.entries {
		if now.After(e.until) {
			delete(c.entries, k)
		} else if oldest == "" || e.until.Before(c.entries[oldest].until) {
			oldest = k
		}
	}
	delete(c.entries, oldest)
}

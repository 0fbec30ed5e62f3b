package bot

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"the-loop/authz"
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

// ErrNoPerson says that Slack does not show us such a member.
var ErrNoPerson = errors.New("no such member")

const (
	peopleTTL = 10 * time.Minute
	maxPeople = 4096 // entries of each kind; the oldest go first
)

// People knows members and channels: it asks Slack once in ten minutes for each, and once at a time.
type People struct {
	client   *Client
	members  cache[Person]
	channels cache[string]
}

func newPeople(c *Client) *People { return &People{client: c} }

// Person returns a member. [ErrNoPerson] when Slack shows us none of that id; that too is remembered.
func (p *People) Person(ctx context.Context, id string) (Person, error) {
	return p.members.get(ctx, id, func(ctx context.Context) (Person, error) {
		a, err := p.client.call(ctx, methodUser, url.Values{"user": {id}})
		switch errorCode(err) {
		case "user_not_found", "user_not_visible", "users_not_found":
			return Person{}, ErrNoPerson
		}
		if err != nil {
			return Person{}, err
		}
		return parsePerson(id, a.obj("user")), nil
	})
}

func parsePerson(id string, u rawObject) Person {
	profile, grid := u.obj("profile"), u.obj("enterprise_user")
	return Person{
		ID:         id,
		Name:       firstNonEmpty(profile.str("display_name"), profile.str("real_name"), u.str("real_name"), u.str("name")),
		Team:       u.str("team_id"),
		Enterprise: firstNonEmpty(grid.str("enterprise_id"), u.str("enterprise_id")),
		Bot:        u.isTrue("is_bot") || id == slackbot,
		Deleted:    u.isTrue("deleted"),
		Stranger:   u.isTrue("is_stranger"),
		Guest:      u.isTrue("is_restricted") || u.isTrue("is_ultra_restricted"),
	}
}

// ResolveActor adds to an actor what only Slack knows of the person. A member that Slack does not show, and one that is
// deactivated, is of no team, so that nothing lets them in. It fails when Slack cannot be asked and the team is not
// known otherwise: then nobody can decide yet.
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
	self := p.client.Self()
	a.Bot = a.Bot || person.Bot
	a.Team = homeTeam(self, a.Team, person.Team)
	a.Enterprise = firstNonEmpty(person.Enterprise, a.Enterprise)
	if person.Deleted || person.Stranger && a.Team == self.Team {
		a.Team, a.Enterprise = "", ""
	}
	return a, person, nil
}

// ChannelName returns the name of a channel, without the #.
func (p *People) ChannelName(ctx context.Context, id string) (string, error) {
	return p.channels.get(ctx, id, func(ctx context.Context) (string, error) {
		a, err := p.client.call(ctx, methodChannel, url.Values{"channel": {id}})
		if err != nil {
			return "", err
		}
		return firstNonEmpty(a.obj("channel").str("name"), id), nil
	})
}

// nameLookup looks names up for the text of a message; whatever cannot be found is shown by its id, and so is who is not listed:
// he chose his name himself.
func (p *People) nameLookup(ctx context.Context) nameLookup {
	return nameLookup{
		member: func(id string) string {
			if listed := p.client.isListed.Load(); id != p.client.Self().User && (listed == nil || !(*listed)(id)) {
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

// get returns what is remembered, or fetches it. Callers that ask for the same key at once share one fetch; when the
// one that fetches is called off, another takes over.
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

// evict forgets what is out of date, and the entry that will be so next. The caller holds mu.
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

package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
)

// pagePerson is a member as the page shows one.
type pagePerson struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	RealName string `json:"realName"`
	Bot      bool   `json:"bot,omitempty"`
	Stranger bool   `json:"stranger,omitempty"` // of another company
}

// pageChannel is a channel as one member sees it.
type pageChannel struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Shared  bool   `json:"shared,omitempty"` // with another company
	Members int    `json:"members"`
	Joined  bool   `json:"in"`
}

// pageMessage is a message, or that there is none any more.
type pageMessage struct {
	store.Message
	Channel   string `json:"channel"`
	Broadcast bool   `json:"broadcast,omitempty"`
	Deleted   bool   `json:"gone,omitempty"`
}

type pageEphemeral struct {
	Channel string          `json:"channel"`
	Thread  string          `json:"thread,omitempty"`
	TS      string          `json:"ts"`
	Text    string          `json:"text"`
	Blocks  json.RawMessage `json:"blocks,omitempty"`
	Source  string          `json:"source"`
	Deleted bool            `json:"deleted,omitempty"`
}

type pageView struct {
	ID     string          `json:"id"`
	Hash   string          `json:"hash"`
	Title  string          `json:"title"`
	Submit string          `json:"submit,omitempty"`
	Close  string          `json:"close,omitempty"`
	Blocks json.RawMessage `json:"blocks"`
}

// pageSnapshot is everything that the page needs at first.
type pageSnapshot struct {
	Position  string            `json:"place"` // in the stream
	Me        string            `json:"me"`
	Bot       string            `json:"bot"`
	Team      string            `json:"team"`
	Channel   string            `json:"channel"`
	Personas  []Persona         `json:"visitors"`
	Commands  []Command         `json:"commands"`
	Shortcuts []Shortcut        `json:"shortcuts"`
	Tips      []string          `json:"tips"`
	HasDemo   bool              `json:"backstage"`
	People    []pagePerson      `json:"people"`
	Channels  []pageChannel     `json:"channels"`
	Ephemeral []pageEphemeral   `json:"ephemeral"`
	Views     []pageView        `json:"views"`
	Home      *pageView         `json:"home"`
	Statuses  map[string]string `json:"statuses"` // channel/thread → text
}

func (p *Page) serveSnapshot(rw http.ResponseWriter, r *http.Request) {
	me, err := p.persona(r.URL.Query().Get("as"))
	if err != nil {
		me, err = p.persona(p.opts.Personas[0].User)
	}
	if err != nil {
		writeFailure(rw, err)
		return
	}
	webapi.WriteJSON(rw, http.StatusOK, p.snapshot(me))
}

func (p *Page) snapshot(me *localslack.Person) pageSnapshot {
	w := p.w.Store
	w.Mu.Lock()
	defer w.Mu.Unlock()
	s := pageSnapshot{Position: formatPosition(w.Journal.Last), Me: me.ID, Bot: w.BotUser, Team: w.Opts.TeamDomain, Channel: p.opts.Channel,
		Personas: p.opts.Personas, Commands: p.opts.Commands, Shortcuts: p.opts.Shortcuts, Tips: p.opts.Tips, HasDemo: p.opts.Demo != nil,
		Views: pageViews(w, me.ID), Home: pageHome(w, me.ID), Statuses: map[string]string{}}
	s.People, s.Channels = directory(w, me.ID)
	for _, e := range w.EphemeralsByUser[me.ID] {
		if !e.Deleted {
			s.Ephemeral = append(s.Ephemeral, toPageEphemeral(e))
		}
	}
	s.Ephemeral = s.Ephemeral[max(0, len(s.Ephemeral)-maxPageEphemerals):]
	for key, text := range w.Statuses {
		s.Statuses[key] = text
	}
	if s.Channel == "" && len(s.Channels) > 0 {
		s.Channel = s.Channels[0].ID
	}
	return s
}

// maxPageEphemerals is how many of the last ephemeral messages a page is given.
const maxPageEphemerals = 50

// directory are the people and the channels that a member knows of. The caller holds Mu.
func directory(w *store.Store, me string) (people []pagePerson, channels []pageChannel) {
	for _, id := range w.PeopleOrder {
		o := w.MembersByID[id]
		people = append(people, pagePerson{ID: o.ID, Name: o.Name, RealName: orElse(o.RealName, o.Name), Bot: o.Bot, Stranger: o.IsStranger()})
	}
	for _, id := range w.ChannelOrder {
		c := w.ChannelsByID[id]
		if c.Kind == store.PublicChannel || c.Kind == store.PrivateChannel && c.HasMember(me) {
			channels = append(channels, pageChannel{ID: c.ID, Name: c.Name, Shared: c.ExtShared, Members: len(c.Members), Joined: c.HasMember(me)})
		}
	}
	return people, channels
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func toPageEphemeral(e store.Ephemeral) pageEphemeral {
	return pageEphemeral{Channel: e.Channel, Thread: e.ThreadTS, TS: e.TS, Text: e.Text, Blocks: e.Blocks, Source: e.Source, Deleted: e.Deleted}
}

// pageViews are the modals that a member has open, the topmost last. The caller holds Mu.
func pageViews(w *store.Store, user string) []pageView {
	all := []pageView{}
	for _, id := range w.ViewStacks[user] {
		all = append(all, toPageView(w.ViewsByID[id]))
	}
	return all
}

func pageHome(w *store.Store, user string) *pageView {
	if h := w.Homes[user]; h != nil {
		v := toPageView(h)
		return &v
	}
	return nil
}

func toPageView(v *store.OpenView) pageView {
	label := func(key string) string { t, _ := v.Body[key].(blockkit.Block); return blockkit.Str(t["text"]) }
	return pageView{ID: v.ID, Hash: v.Hash, Title: v.Title, Submit: label("submit"), Close: label("close"), Blocks: v.Blocks}
}

// pageHistory is a part of a channel or of a thread, oldest first.
type pageHistory struct {
	Root     *pageMessage  `json:"root,omitempty"` // of a thread
	Messages []pageMessage `json:"messages"`
	More     bool          `json:"more"` // there are older ones
}

// pageSize is the most messages that a page asks for at once.
const pageSize = 200

// serveHistory is the newest messages of a channel or of a thread, or those before a timestamp.
func (p *Page) serveHistory(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	me, err := p.persona(q.Get("as"))
	if err != nil {
		writeFailure(rw, err)
		return
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > pageSize {
		limit = pageSize
	}
	p.w.Mu.Lock()
	defer p.w.Mu.Unlock()
	ch := p.w.ChannelsByID[q.Get("channel")]
	if ch == nil || !ch.HasMember(me.ID) {
		writeFailure(rw, slackerr.Refusedf("%s is not in that channel", me.Name))
		return
	}
	webapi.WriteJSON(rw, http.StatusOK, history(ch, q.Get("thread"), q.Get("before"), limit))
}

// history is the last messages before a timestamp, of the channel itself, or of a thread.
func history(c *store.ChannelState, thread, before string, limit int) pageHistory {
	list := c.Messages
	h := pageHistory{Messages: []pageMessage{}}
	if thread != "" {
		list = c.Threads[thread]
		if root := c.ByTS[thread]; root != nil {
			m := toPageMessage(root, c)
			h.Root = &m
		}
	}
	latest, _ := slacktime.Parse(before)
	for _, m := range slices.Backward(store.MessagesBetween(list, 0, latest, false)) {
		if thread == "" && m.IsReply() && !m.Broadcast {
			continue
		}
		if len(h.Messages) == limit {
			h.More = true
			break
		}
		h.Messages = append(h.Messages, toPageMessage(m, c))
	}
	slices.Reverse(h.Messages)
	return h
}

func toPageMessage(m *store.Message, c *store.ChannelState) pageMessage {
	out := pageMessage{Message: m.Clone(), Channel: c.ID, Broadcast: m.Broadcast}
	out.Metadata = nil
	return out
}

package store

import (
	"slices"
	"time"

	"the-loop/bot/localslack/slackid"
)

// FindEphemeral is the ephemeral message of a member with a timestamp; nil when there is none any more. The caller holds Mu.
func (w *Store) FindEphemeral(user, ts string) *Ephemeral {
	list := w.EphemeralsByUser[user]
	for i := range list {
		if list[i].TS == ts && !list[i].Deleted {
			return &list[i]
		}
	}
	return nil
}

// ShowEphemeral shows a message to one member. The caller holds Mu.
func (w *Store) ShowEphemeral(e Ephemeral) (ts string) {
	e.TS = w.NewTS()
	w.EphemeralsByUser[e.User] = append(w.EphemeralsByUser[e.User], e)
	w.RecordChange(Change{Kind: EphemeralChanged, User: e.User, TS: e.TS})
	w.Notify()
	return e.TS
}

// statusTTL is when Slack takes a status away by itself.
const statusTTL = 2 * time.Minute

// ShowStatus changes the status of a thread; an empty one is none. The caller holds Mu.
func (w *Store) ShowStatus(ch *ChannelState, thread, text string) {
	key := ch.ID + "/" + thread
	if end := w.cancelStatusExpiry[key]; end != nil {
		end()
	}
	delete(w.cancelStatusExpiry, key)
	if text == "" && w.Statuses[key] == "" {
		return
	}
	delete(w.Statuses, key)
	if text != "" {
		w.Statuses[key] = text
		w.cancelStatusExpiry[key] = w.Sched.After(statusTTL, func() {
			w.Mu.Lock()
			defer w.Mu.Unlock()
			w.ShowStatus(ch, thread, "")
		})
	}
	w.RecordChange(Change{Kind: StatusChanged, Channel: ch.ID, TS: thread})
	w.Notify()
}

// ResponseURLTTL is how long a response URL takes answers.
const ResponseURLTTL = 30 * time.Minute

// ResponseURL answers a command or a click later: five times within half an hour.
type ResponseURL struct {
	Channel, User, TS  string
	Ephemeral, Replace bool
	Uses               int
	Expires            time.Time
}

// NewResponseURL registers a response URL. The caller holds Mu.
func (w *Store) NewResponseURL(r *ResponseURL) string {
	id := slackid.Hex(16)
	r.Expires = w.Clock.Now().Add(ResponseURLTTL)
	w.ResponseURLs[id] = r
	return w.BaseURL + "/response/" + id
}

// Ephemerals returns what only this member was shown, oldest first.
func (w *Store) Ephemerals(user string) []Ephemeral {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if p := w.FindMember(user); p != nil {
		user = p.ID
	}
	return slices.Clone(w.EphemeralsByUser[user])
}

// Status returns what assistant.threads.setStatus shows in a thread.
func (w *Store) Status(channel, threadTS string) string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Statuses[channel+"/"+threadTS]
}

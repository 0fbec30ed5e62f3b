package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/bot/render"
	"the-loop/sessions"
)

// homesMax is how many Home tabs are kept up to date; of more, the ones that are opened next are not.
const homesMax = 100

// home keeps the Home tabs of those who are let in up to date, from when they were opened.
type home struct {
	b *Bot

	mu    sync.Mutex // guards the field that follows
	shown map[authz.Actor]shownHome
}

// shownHome is what a Home tab shows.
type shownHome struct {
	sum    string
	notice string // what came of the last press
	until  time.Time
}

// noticeStays is how long the Home tab shows what came of the last press.
const noticeStays = time.Minute

func newHome(b *Bot) *home { return &home{b: b, shown: map[authz.Actor]shownHome{}} }

// What the Home tab says to others. It holds nothing of the sessions.
const (
	homeClosed  = "This app is for the people on its operator's list."
	homeWaiting = "There is nothing to be shown at the moment."
)

// opened shows the Home tab to who is let in.
func (h *home) opened(ctx context.Context, a Act) (string, error) {
	if a.Value != "" && a.Value != kindHome { // another tab of the app
		return "", nil
	}
	return "", h.show(ctx, a.Actor, "")
}

// closed says one sentence to a member of ours who is not let in, and nothing to anybody else.
func (h *home) closed(ctx context.Context, a Act) {
	self := h.b.o.Client.Self()
	if a.Actor.Bot || self.Team == "" || a.Actor.Team != self.Team || a.Value != "" && a.Value != kindHome {
		return
	}
	h.close(ctx, a.Actor)
}

func (h *home) close(ctx context.Context, actor authz.Actor) {
	text, policy := homeClosed, h.b.Policy()
	h.forget(actor)
	switch verdict, _ := policy.Authorize(actor); {
	case verdict == authz.Suspended:
		text = homeWaiting
	case verdict == authz.SuspendedUnlisted && len(policy.Users) == 0: // no valid list was ever read
		return
	}
	if err := h.b.o.Client.publishHome(ctx, actor.User, render.Sentence(text)); err != nil {
		h.b.o.Log.Info("cannot show the Home tab", "member", actor.User, "error", err)
	}
}

// show has the Home tab of a member show what is true now, and a notice over it.
func (h *home) show(ctx context.Context, actor authz.Actor, notice string) error {
	rows, err := h.b.o.Core.List(ctx)
	if err != nil {
		notice = failed(err)
	}
	view, sum, err := h.view(rows, notice)
	if err != nil {
		return err
	}
	h.remember(actor, shownHome{sum: sum, notice: notice, until: time.Now().Add(noticeStays)})
	return h.b.o.Client.publishHome(ctx, actor.User, view)
}

func (h *home) view(rows []sessions.Row, notice string) (slack.HomeTabViewRequest, string, error) {
	for i := range rows {
		rows[i].Description, rows[i].Detail = h.b.scrubbed(rows[i].Description), h.b.scrubbed(rows[i].Detail)
	}
	view, err := render.Home(rows, h.b.scrubbed(h.b.problem()), h.b.scrubbed(notice))
	if err != nil {
		return view, "", err
	}
	raw, err := json.Marshal(view)
	return view, fmt.Sprintf("%x", sha256.Sum256(raw)), err
}

// refresh brings the Home tabs up to date that were opened and show something else. Who is not let in any more is shown
// one sentence instead.
func (h *home) refresh(ctx context.Context, rows []sessions.Row) {
	policy := h.b.Policy()
	for actor, was := range h.open() {
		if verdict, _ := policy.Authorize(actor); verdict != authz.Allowed {
			h.close(ctx, actor)
			continue
		}
		if err := h.renew(ctx, actor, was, rows); err != nil {
			h.b.o.Log.Info("cannot bring a Home tab up to date", "member", actor.User, "error", err)
		}
	}
}

func (h *home) renew(ctx context.Context, actor authz.Actor, was shownHome, rows []sessions.Row) error {
	if time.Now().After(was.until) {
		was.notice = ""
	}
	view, sum, err := h.view(slices.Clone(rows), was.notice)
	if err != nil || sum == was.sum {
		return err
	}
	if err := h.b.o.Client.publishHome(ctx, actor.User, view); err != nil {
		return err
	}
	was.sum = sum
	h.remember(actor, was)
	return nil
}

func (h *home) open() map[authz.Actor]shownHome {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.shown)
}

func (h *home) remember(actor authz.Actor, s shownHome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.shown[actor]; known || len(h.shown) < homesMax {
		h.shown[actor] = s
	}
}

func (h *home) forget(actor authz.Actor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.shown, actor)
}

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

	slackgo "github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/bot/render"
	"the-loop/sessions"
)

// maxHomeTabs is how many Home tabs are kept up to date; of more, the ones that are opened next are not.
const maxHomeTabs = 100

// homeTabs keeps the Home tabs of those who are let in up to date, from when they were opened.
type homeTabs struct {
	b *Bot

	mu   sync.Mutex // guards the field that follows
	tabs map[authz.Actor]homeTabState
}

// homeTabState is what a Home tab shows.
type homeTabState struct {
	hash   string
	notice string // what came of the last press
	until  time.Time
}

// homeNoticeTTL is how long the Home tab shows what came of the last press.
const homeNoticeTTL = time.Minute

func newHomeTabs(b *Bot) *homeTabs { return &homeTabs{b: b, tabs: map[authz.Actor]homeTabState{}} }

// What the Home tab says to others. It holds nothing of the sessions.
const (
	homeDeniedText      = "This app is for the people on its operator's list."
	homeUnavailableText = "There is nothing to be shown at the moment."
)

// opened shows the Home tab to who is let in.
func (h *homeTabs) handleOpened(ctx context.Context, a Interaction) (string, error) {
	if a.Value != "" && a.Value != kindHome { // another tab of the app
		return "", nil
	}
	return "", h.publish(ctx, a.Actor, "")
}

// handleDenied says one sentence to a member of ours who is not let in, and nothing to anybody else.
func (h *homeTabs) handleDenied(ctx context.Context, a Interaction) {
	self := h.b.o.Client.Self()
	if a.Actor.Bot || self.Team == "" || a.Actor.Team != self.Team || a.Value != "" && a.Value != kindHome {
		return
	}
	h.publishDenied(ctx, a.Actor)
}

func (h *homeTabs) publishDenied(ctx context.Context, actor authz.Actor) {
	text, policy := homeDeniedText, h.b.Policy()
	h.forget(actor)
	switch verdict, _ := policy.Authorize(actor); {
	case verdict == authz.Suspended:
		text = homeUnavailableText
	case verdict == authz.SuspendedUnlisted && len(policy.Users) == 0: // no valid list was ever read
		return
	}
	if err := h.b.o.Client.PublishHome(ctx, actor.User, render.Sentence(text)); err != nil {
		h.b.o.Log.Info("cannot show the Home tab", "member", actor.User, "error", err)
	}
}

// publish has the Home tab of a member show what is true now, and a notice over it.
func (h *homeTabs) publish(ctx context.Context, actor authz.Actor, notice string) error {
	rows, err := h.b.o.Core.List(ctx)
	if err != nil {
		notice = failed(err)
	}
	view, sum, err := h.renderView(rows, notice)
	if err != nil {
		return err
	}
	h.remember(actor, homeTabState{hash: sum, notice: notice, until: time.Now().Add(homeNoticeTTL)})
	return h.b.o.Client.PublishHome(ctx, actor.User, view)
}

func (h *homeTabs) renderView(rows []sessions.Row, notice string) (slackgo.HomeTabViewRequest, string, error) {
	for i := range rows {
		rows[i].Description, rows[i].Detail = h.b.scrub(rows[i].Description), h.b.scrub(rows[i].Detail)
	}
	view, err := render.Home(rows, h.b.scrub(h.b.problem()), h.b.scrub(notice))
	if err != nil {
		return view, "", err
	}
	raw, err := json.Marshal(view)
	return view, fmt.Sprintf("%x", sha256.Sum256(raw)), err
}

// refresh brings the Home tabs up to date that were opened and show something else. Who is not let in any more is shown
// one sentence instead.
func (h *homeTabs) refresh(ctx context.Context, rows []sessions.Row) {
	policy := h.b.Policy()
	for actor, was := range h.openTabs() {
		if verdict, _ := policy.Authorize(actor); verdict != authz.Allowed {
			h.publishDenied(ctx, actor)
			continue
		}
		if err := h.updateTab(ctx, actor, was, rows); err != nil {
			h.b.o.Log.Info("cannot bring a Home tab up to date", "member", actor.User, "error", err)
		}
	}
}

func (h *homeTabs) updateTab(ctx context.Context, actor authz.Actor, was homeTabState, rows []sessions.Row) error {
	if time.Now().After(was.until) {
		was.notice = ""
	}
	view, sum, err := h.renderView(slices.Clone(rows), was.notice)
	if err != nil || sum == was.hash {
		return err
	}
	if err := h.b.o.Client.PublishHome(ctx, actor.User, view); err != nil {
		return err
	}
	was.hash = sum
	h.remember(actor, was)
	return nil
}

func (h *homeTabs) openTabs() map[authz.Actor]homeTabState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.tabs)
}

func (h *homeTabs) remember(actor authz.Actor, s homeTabState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.tabs[actor]; known || len(h.tabs) < maxHomeTabs {
		h.tabs[actor] = s
	}
}

func (h *homeTabs) forget(actor authz.Actor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tabs, actor)
}

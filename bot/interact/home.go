package interact

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

// maxHomeTabs is how many Home tabs are kept current; those that are opened after that are not.
const maxHomeTabs = 100

// HomeTabs keeps the Home tabs of authorized members current, once they were opened.
type HomeTabs struct {
	o Options

	mu   sync.Mutex // guards the field that follows
	tabs map[authz.Actor]homeTabState
}

// homeTabState is what a Home tab shows.
type homeTabState struct {
	hash   string
	notice string // the answer to the last interaction
	until  time.Time
}

// homeNoticeTTL is how long a Home tab shows the answer to the last interaction.
const homeNoticeTTL = time.Minute

// What the Home tab shows to others. It reveals nothing of the sessions.
const (
	homeDeniedText      = "This app is for the people on its operator's list."
	homeUnavailableText = "There is nothing to show at the moment."
)

// handleOpened shows the Home tab to an authorized member.
func (h *HomeTabs) handleOpened(ctx context.Context, a Interaction) (string, error) {
	if a.Value != "" && a.Value != kindHome { // another tab of the app
		return "", nil
	}
	return "", h.publish(ctx, a.Actor, "")
}

// handleDenied shows one sentence to an unauthorized member of our own team, and nothing to others.
func (h *HomeTabs) handleDenied(ctx context.Context, a Interaction) {
	self := h.o.Slack.Self()
	if a.Actor.Bot || self.Team == "" || a.Actor.Team != self.Team || a.Value != "" && a.Value != kindHome {
		return
	}
	h.publishDenied(ctx, a.Actor)
}

func (h *HomeTabs) publishDenied(ctx context.Context, actor authz.Actor) {
	text, policy := homeDeniedText, h.o.Policy()
	h.forget(actor)
	switch verdict, _ := policy.Authorize(actor); {
	case verdict == authz.Suspended:
		text = homeUnavailableText
	case verdict == authz.SuspendedUnlisted && len(policy.Users) == 0: // no valid list was ever read
		return
	}
	if err := h.o.Views.PublishHome(ctx, actor.User, render.HomeMessage(text)); err != nil {
		h.o.Log.Info("cannot show the Home tab", "member", actor.User, "error", err)
	}
}

// publish updates the Home tab of a member, with a notice on top.
func (h *HomeTabs) publish(ctx context.Context, actor authz.Actor, notice string) error {
	rows, err := h.o.Sessions.List(ctx)
	if err != nil {
		notice = failed(err)
	}
	view, sum, err := h.renderView(rows, notice)
	if err != nil {
		return err
	}
	h.remember(actor, homeTabState{hash: sum, notice: notice, until: time.Now().Add(homeNoticeTTL)})
	return h.o.Views.PublishHome(ctx, actor.User, view)
}

func (h *HomeTabs) renderView(rows []sessions.Row, notice string) (slackgo.HomeTabViewRequest, string, error) {
	for i := range rows {
		rows[i].Description, rows[i].Detail = h.o.Scrub(rows[i].Description), h.o.Scrub(rows[i].Detail)
	}
	view, err := render.Home(rows, h.o.Scrub(h.o.Problem()), h.o.Scrub(notice))
	if err != nil {
		return view, "", err
	}
	raw, err := json.Marshal(view)
	return view, fmt.Sprintf("%x", sha256.Sum256(raw)), err
}

// Refresh updates the opened Home tabs that show something else. Of a member who is no longer authorized the tab shows one sentence.
func (h *HomeTabs) Refresh(ctx context.Context, rows []sessions.Row) {
	policy := h.o.Policy()
	for actor, was := range h.openTabs() {
		if verdict, _ := policy.Authorize(actor); verdict != authz.Allowed {
			h.publishDenied(ctx, actor)
			continue
		}
		if err := h.updateTab(ctx, actor, was, rows); err != nil {
			h.o.Log.Info("cannot update a Home tab", "member", actor.User, "error", err)
		}
	}
}

func (h *HomeTabs) updateTab(ctx context.Context, actor authz.Actor, was homeTabState, rows []sessions.Row) error {
	if time.Now().After(was.until) {
		was.notice = ""
	}
	view, sum, err := h.renderView(slices.Clone(rows), was.notice)
	if err != nil || sum == was.hash {
		return err
	}
	if err := h.o.Views.PublishHome(ctx, actor.User, view); err != nil {
		return err
	}
	was.hash = sum
	h.remember(actor, was)
	return nil
}

func (h *HomeTabs) openTabs() map[authz.Actor]homeTabState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.tabs)
}

func (h *HomeTabs) remember(actor authz.Actor, s homeTabState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.tabs[actor]; known || len(h.tabs) < maxHomeTabs {
		h.tabs[actor] = s
	}
}

func (h *HomeTabs) forget(actor authz.Actor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tabs, actor)
}

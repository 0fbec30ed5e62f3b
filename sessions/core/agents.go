package core

import (
	"context"
	"fmt"
	"log/slog"

	"the-loop/sessions"
)

// agents reads what the sessions' agent programs tell of themselves.
type agents struct {
	harness func(name string) (sessions.Harness, error)
	panes   *panes
	log     *slog.Logger
}

// currentConversation returns the id of the conversation that the session is in now. It is the recorded one when the harness
// cannot tell or returns something that is no id.
func (as *agents) currentConversation(ctx context.Context, h sessions.Harness, rec sessions.Record) string {
	track := h.Capabilities().TrackConversation
	if track == nil {
		return rec.Conversation
	}
	id, err := track(ctx, rec.AgentConversation())
	switch {
	case err != nil:
		as.log.Warn("the current conversation of a session could not be read", "ref", rec.Ref, "err", err)
		return rec.Conversation
	case id != "" && !sessions.ValidConversation(id):
		as.log.Warn("the agent gave no valid id for its conversation", "ref", rec.Ref)
		return rec.Conversation
	case id == "":
		return rec.Conversation
	}
	return id
}

// checkAlive fails when the agent has ended: its last screen says nothing any more.
func (as *agents) checkAlive(ctx context.Context, rec sessions.Record) error {
	panes, err := as.panes.list(ctx, rec)
	if err != nil {
		return sessions.WrapTerminalError(rec, fmt.Errorf("check that the agent runs: %w", err))
	}
	if p, ok := sessions.FindPane(panes, rec.ID); ok && p.Dead {
		return sessions.WrapTerminalError(rec, sessions.ErrPaneDead)
	}
	return nil
}

// readScreen reads the screen of the session's pane; [sessions.ViewUnknown] when the harness has no screen parser.
func (as *agents) readScreen(ctx context.Context, h sessions.Harness, rec sessions.Record) (sessions.View, error) {
	parse := h.Capabilities().ParseScreen
	if parse == nil {
		return sessions.View{State: sessions.ViewUnknown}, nil
	}
	screen, err := as.panes.terminalOf(rec).Capture(ctx, rec.Target())
	if err != nil {
		return sessions.View{}, sessions.WrapTerminalError(rec, fmt.Errorf("read the pane: %w", err))
	}
	return parse(screen), nil
}

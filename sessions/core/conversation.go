package core

import (
	"context"

	"the-loop/sessions"
)

// currentConversation is the id of the conversation that the session is in now. It is the recorded one where the harness
// cannot tell, does not know yet, or says something that is no id.
func (c *Core) currentConversation(ctx context.Context, h sessions.Harness, rec sessions.Record) string {
	track := h.Capabilities().TrackConversation
	if track == nil {
		return rec.Conversation
	}
	id, err := track(ctx, rec.AgentConversation())
	switch {
	case err != nil:
		c.o.Log.Warn("it cannot be told which conversation a session is in", "ref", rec.Ref, "err", err)
		return rec.Conversation
	case id != "" && !sessions.ValidConversation(id):
		c.o.Log.Warn("the agent names a conversation by something that is no id", "ref", rec.Ref)
		return rec.Conversation
	case id == "":
		return rec.Conversation
	}
	return id
}

// updateConversation has the record keep the conversation that the session is in now. It is asked after each text, because any
// may have ended one conversation and begun another.
func (c *Core) updateConversation(ctx context.Context, h sessions.Harness, rec sessions.Record) {
	if c.currentConversation(ctx, h, rec) == rec.Conversation {
		return
	}
	release, err := c.lockID(ctx, rec.ID, "follow")
	if err != nil {
		return // whoever has the session now asks again
	}
	defer release()
	now, err := c.o.Store.Load(ctx, rec.Ref)
	if err != nil || now.ID != rec.ID || now.Status == sessions.StatusStopped {
		return
	}
	if id := c.currentConversation(ctx, h, now); id != now.Conversation {
		now.Conversation = id
		if err := c.o.Store.Save(ctx, now); err != nil {
			c.o.Log.Error("the conversation that a session is in could not be recorded", "ref", rec.Ref, "err", err)
		}
	}
}

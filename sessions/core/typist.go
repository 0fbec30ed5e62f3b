package core

import (
	"context"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// typist types texts into panes, see [submission].
type typist struct {
	records     *records
	panes       *panes
	agents      *agents
	store       sessions.Records
	permissions *openPermissions
	staleDrafts *staleDrafts
	now         func() time.Time
	log         *slog.Logger
}

// updateConversation records the conversation that the session is in now. It is called after each text, since any may have begun
// another conversation.
func (t *typist) updateConversation(ctx context.Context, h sessions.Harness, rec sessions.Record) {
	if t.agents.currentConversation(ctx, h, rec) == rec.Conversation {
		return
	}
	release, err := t.records.lockID(ctx, rec.ID, "update the conversation")
	if err != nil {
		return // the next text updates it
	}
	defer release()
	now, err := t.store.Load(ctx, rec.Ref)
	if err != nil || now.ID != rec.ID || now.Status == sessions.StatusStopped {
		return
	}
	if id := t.agents.currentConversation(ctx, h, now); id != now.Conversation {
		now.Conversation = id
		if err := t.store.Save(ctx, now); err != nil {
			t.log.Error("the conversation that a session is in could not be recorded", "ref", rec.Ref, "err", err)
		}
	}
}

package bot

import (
	"context"
	"fmt"

	"the-loop/authz"
	"the-loop/bot/reconcile"
	"the-loop/sessions"
	"the-loop/threads/relay"
)

// newReconcilers makes the parts that keep Slack in line with the sessions.
func (b *Bot) newReconcilers() {
	core, at := b.o.Core, channels{b}
	b.transcripts = reconcile.NewTranscriptWatcher(reconcile.TranscriptWatcherOptions{Relay: b.threads, Log: b.o.Log,
		Answers: func() relay.Answers { return b.o.Config().Settings.Answers }, OnActivity: func() { b.announcer.NoteActivity() }})
	b.screens = reconcile.NewScreenWatcher(core, b.threads, b.o.ScreenInterval)
	b.driftNotice = reconcile.NewDriftNotice(reconcile.DriftNoticeOptions{Root: b.o.Root, Restarter: core, Chat: b.o.Client, Clock: b.o.Client.Clock(),
		Channel: at, Authorize: b.authorizeMember, OnRestarted: func() { b.announcer.Wake() }, Log: b.o.Log})
	b.announcer = reconcile.NewAnnouncer(reconcile.AnnouncerOptions{Sessions: core, Bindings: b.threads, Announcements: b.threads, Notifier: b.threads,
		Channels: at, Sink: b.o.Sink, Changed: b.o.Changed, Complete: b.transcripts.AllWatched, OnRows: b.onRows, OnChange: b.driftNotice.Wake,
		OnProblem: b.StatusChanged, Scrub: b.scrub, Log: b.o.Log})
}

// onRows passes on how the sessions are.
func (b *Bot) onRows(ctx context.Context, rows []sessions.Row) {
	b.transcripts.SetRuns(rows)
	b.home.Refresh(ctx, rows)
}

// authorizeMember fails when a member may not give commands now.
func (b *Bot) authorizeMember(ctx context.Context, user string) error {
	actor, _, err := b.o.Client.People().ResolveActor(ctx, authz.Actor{User: user})
	if err != nil {
		return err
	}
	if decision, reason := b.Policy().Authorize(actor); decision != authz.Allowed {
		return fmt.Errorf("the member %s may not give commands: %s", user, reason)
	}
	return nil
}

package relay

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/outbox"
)

// BatchReader reads what agents report.
type BatchReader interface {
	ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error)
}

// reports posts files that the agent reported, and takes its permission requests.
func (rl *Relay) reports(ctx context.Context) (watch []string, err error) {
	if rl.o.Reports == nil {
		return nil, nil
	}
	q, ok := actor.Call(ctx, rl.Actor, func(context.Context) *sessions.ReportsRequest { return rl.reportsRequest() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	batch, err := rl.o.Reports.ReadReports(ctx, *q)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := rl.reportedFileMessages(batch)
	if err != nil {
		return nil, fmt.Errorf("copy what the agent wants to post: %w", err)
	}
	err, ok = actor.Call(ctx, rl.Actor, func(ctx context.Context) error { return rl.applyReports(ctx, q.Offset, batch, files) })
	if !ok {
		return nil, ctx.Err()
	}
	return batch.WatchFiles, err
}

// reportsRequest is what of the reports to read; nil: nothing, since there is no thread.
func (rl *Relay) reportsRequest() *sessions.ReportsRequest {
	if rl.Unbound || rl.B.Root == "" {
		return nil
	}
	return &sessions.ReportsRequest{Ref: rl.Ref, ID: rl.SessionID, Offset: rl.B.ReportOffset, Since: rl.B.ReportsSince}
}

// applyReports handles what was reported since an offset, and stores it with the new offset in one write. The files that are queued
// before that come again after a crash: they are looked for before they are posted.
func (rl *Relay) applyReports(ctx context.Context, since sessions.Offset, batch sessions.ReportBatch, files []*outbox.Message) error {
	if rl.Unbound || rl.B.Root == "" || rl.B.ReportOffset != since {
		return nil
	}
	if err := rl.queueReportedFiles(files); err != nil {
		return err
	}
	if rl.reportsSynced = batch.Next == since; rl.reportsSynced {
		return nil
	}
	fresh := rl.o.Permissions.Add(batch)
	rl.B.ReportOffset = batch.Next
	err := rl.Save()
	if rl.reportsSynced = err == nil; !rl.reportsSynced {
		rl.B.ReportOffset = since
		for _, name := range fresh {
			delete(rl.B.PermissionRequests, name)
		}
		return fmt.Errorf("store how far the agent's reports were read: %w", err)
	}
	for _, name := range fresh {
		rl.o.Permissions.Watch(name, false)
	}
	rl.o.Permissions.Reconcile(ctx, batch.Answered)
	return nil
}

package threads

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
	"the-loop/threads/outbox"
)

// Noter is what a thread asks of the core about what agents report.
type ReportReader interface {
	ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error)
	WaitResolved(ctx context.Context, q sessions.WaitResolvedRequest) error
	AnswerPermission(ctx context.Context, q sessions.AnswerPermissionRequest) error
}

// relayReports takes up what the agent of a thread reported since the last time.
func (m *Manager) relayReports(ctx context.Context, t *thread) (watch []string, err error) {
	if m.o.Reports == nil {
		return nil, nil
	}
	q, ok := call(ctx, t, func(context.Context) *sessions.ReportsRequest { return t.reportsRequest() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	noted, err := m.o.Reports.ReadReports(ctx, *q)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := t.reportedFileMessages(noted)
	if err != nil {
		return nil, fmt.Errorf("copy what the agent wants to post: %w", err)
	}
	err, ok = call(ctx, t, func(ctx context.Context) error { return t.applyReports(ctx, q.Offset, noted, files) })
	if !ok {
		return nil, ctx.Err()
	}
	return noted.WatchFiles, err
}

// reportsRequest is what to ask for; nil: nothing, since there is no thread.
func (t *thread) reportsRequest() *sessions.ReportsRequest {
	if t.unbound || t.b.Root == "" {
		return nil
	}
	return &sessions.ReportsRequest{Ref: t.ref, ID: t.sessionID, Offset: t.b.ReportOffset, Since: t.b.ReportsSince}
}

// applyReports takes up what was reported since an offset, and stores how far that is in the same write. What is put into the outbox
// here comes again after a crash: it is looked for before it is posted.
func (t *thread) applyReports(ctx context.Context, since sessions.Offset, noted sessions.ReportBatch, files []*outbox.Message) error {
	if t.unbound || t.b.Root == "" || t.b.ReportOffset != since {
		return nil
	}
	if err := t.queueReportedFiles(files); err != nil {
		return err
	}
	if t.reportsSynced = noted.Next == since; t.reportsSynced {
		return nil
	}
	fresh := t.addPermissions(noted)
	t.b.ReportOffset = noted.Next
	err := t.save()
	if t.reportsSynced = err == nil; !t.reportsSynced {
		t.b.ReportOffset = since
		for _, name := range fresh {
			delete(t.b.PermissionRequests, name)
		}
		return fmt.Errorf("store how far the agent's reports were read: %w", err)
	}
	for _, name := range fresh {
		t.watchPermission(name, false)
	}
	t.reconcilePermissions(ctx, noted.Answered)
	return nil
}

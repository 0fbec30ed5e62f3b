package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// Queries has the verbs that change nothing.
type Queries struct {
	records     *records
	panes       *panes
	agents      *agents
	store       sessions.Store
	reports     sessions.Reports // nil: there are none
	expectedEnv func(ctx context.Context, r sessions.Record, p sessions.Pane, env sessions.EnvFile) envstate.Expected
	config      func() Config
	now         func() time.Time

	envChanges envstate.Changes
}

// ReadActivity returns the activity of the panes on our server, by session id. [errors.ErrUnsupported] when the terminal cannot
// tell it.
func (qs *Queries) ReadActivity(ctx context.Context) (map[string]sessions.PaneActivity, error) {
	r, ok := qs.panes.own.(sessions.ActivityReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return r.ReadActivity(ctx)
}

// Folder returns the absolute folder that a running session was started in. A [*sessions.Refusal] when the session does not run,
// was replaced, or another folder now has that path.
func (qs *Queries) Folder(ctx context.Context, q sessions.FolderRequest) (string, error) {
	rec, err := qs.records.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return "", err
	}
	dir := rec.Definition.Cwd
	if info, err := os.Stat(dir); err == nil && rec.FolderID.Differs(info) {
		return "", &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("another folder than the one that %s was started in stands at %s", rec.Ref, dir),
			Remedy: "look at it, and restart the session"}
	}
	return dir, nil
}

// ReadReports reads what the agent of a session reported, also in runs that have ended. [errors.ErrUnsupported] when the core was
// made without [Options].Reports.
func (qs *Queries) ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error) {
	rec, err := qs.records.requireExact(ctx, q.Ref, q.ID)
	switch {
	case err != nil:
		return sessions.ReportBatch{}, err
	case qs.reports == nil:
		return sessions.ReportBatch{}, fmt.Errorf("the reports of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	batch, err := qs.reports.ReadReports(ctx, rec.ID, q.Offset, q.Since)
	if err != nil {
		return sessions.ReportBatch{}, fmt.Errorf("read what %s reported: %w", q.Ref, err)
	}
	batch.Cwd, batch.FolderID = rec.Definition.Cwd, rec.FolderID
	for i, a := range batch.PermissionRequests {
		batch.PermissionRequests[i] = a.ResolvePaths()
	}
	return batch, nil
}

// ReadTranscript reads what the agent of a session said, also in runs that have ended. [errors.ErrUnsupported] when its harness
// keeps no transcript that can be read.
func (qs *Queries) ReadTranscript(ctx context.Context, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error) {
	rec, err := qs.records.requireExact(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.TranscriptBatch{}, err
	}
	h, err := qs.agents.harness(rec.Definition.Harness)
	if err != nil {
		return sessions.TranscriptBatch{}, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	read := h.Capabilities().ReadTranscript
	if read == nil {
		return sessions.TranscriptBatch{}, fmt.Errorf("the answers of %s: %w", h.Name(), errors.ErrUnsupported)
	}
	conv := rec.AgentConversation()
	conv.IsIdle = func(ctx context.Context) (bool, error) { return qs.isIdle(ctx, rec) }
	if q.Offset == "" {
		conv.Started = q.Since
	}
	batch, err := read(ctx, conv, q.Offset)
	if err != nil {
		return sessions.TranscriptBatch{}, fmt.Errorf("read what %s said: %w", q.Ref, err)
	}
	return batch, nil
}

// isIdle reports whether the screen of a session waits for text, or its agent has ended.
func (qs *Queries) isIdle(ctx context.Context, rec sessions.Record) (bool, error) {
	view, err := qs.View(ctx, sessions.ViewRequest{Ref: rec.Ref, ID: rec.ID})
	if errors.Is(err, sessions.ErrNotRunning) {
		return true, nil
	}
	return view.State == sessions.ViewReady, err
}

// View reads the screen of a running session. Where its harness's screens cannot be read, its state is [sessions.ViewUnknown]. A
// [*sessions.Refusal] because of [sessions.ErrNotRunning] when the agent has ended.
func (qs *Queries) View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error) {
	rec, err := qs.records.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.View{}, err
	}
	h, err := qs.agents.harness(rec.Definition.Harness)
	if err != nil {
		return sessions.View{}, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	panes, err := qs.panes.list(ctx, rec)
	if err != nil {
		return sessions.View{}, sessions.WrapTerminalError(rec, fmt.Errorf("check that the agent runs: %w", err))
	}
	switch p, ok := sessions.FindPane(panes, rec.ID); {
	case !ok:
		return sessions.View{}, sessions.WrapTerminalError(rec, sessions.ErrPaneGone)
	case p.Dead:
		return sessions.View{}, sessions.WrapTerminalError(rec, sessions.ErrPaneDead)
	}
	return qs.agents.readScreen(ctx, h, rec)
}

// Survey is [Queries.List] and [Queries.Drift] of one moment: records and panes are read once for both.
func (qs *Queries) Survey(ctx context.Context) (sessions.Survey, error) {
	f, err := qs.inventory(ctx)
	if err != nil {
		return sessions.Survey{}, err
	}
	rows := qs.buildRows(ctx, f)
	return sessions.Survey{Rows: rows, Drift: qs.computeDrift(func(d *sessions.Drift, env sessions.EnvFile) error {
		return qs.compareSessions(ctx, d, f, env)
	})}, nil
}

// InspectLocked waits until no verb works on the session, and returns its row. An agent that it finds ended has therefore ended
// on its own; [Queries.List] may see one that is just being stopped or restarted. [*sessions.LockedError] when a verb takes
// longer than [sessions.LockWait].
func (qs *Queries) InspectLocked(ctx context.Context, q sessions.InspectRequest) (sessions.Row, error) {
	rec, err := qs.records.require(ctx, q.Ref)
	if err != nil {
		return sessions.Row{}, err
	}
	release, err := qs.records.lockID(ctx, rec.ID, "inspect")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	now, err := qs.records.reload(ctx, &rec)
	if err != nil {
		return sessions.Row{}, err
	}
	panes, err := qs.panes.list(ctx, *now)
	if err != nil && !errors.Is(err, sessions.ErrTerminalTimeout) {
		return sessions.Row{}, fmt.Errorf("find the session's pane: %w", err)
	}
	p, there := sessions.FindPane(panes, now.ID)
	row := sessions.RowOf(*now, sessions.StateOf(*now, p, there, err != nil))
	if row.State == sessions.StateEnded && there {
		row.Detail = "the agent ended, " + p.ExitDescription()
	}
	return row, nil
}

// Attach returns the argv that shows the session's pane, also a dead one that was kept.
func (qs *Queries) Attach(ctx context.Context, q sessions.AttachRequest) ([]string, error) {
	rec, p, err := qs.requirePane(ctx, q.Ref)
	if err != nil {
		return nil, err
	}
	return qs.panes.terminalOf(rec).AttachCommand(p, q.ReadOnly, q.InsideTmux), nil
}

// requirePane returns the session's pane, alive or dead.
func (qs *Queries) requirePane(ctx context.Context, ref sessions.Ref) (sessions.Record, sessions.Pane, error) {
	rec, err := qs.records.require(ctx, ref)
	if err != nil {
		return sessions.Record{}, sessions.Pane{}, err
	}
	panes, err := qs.panes.list(ctx, rec)
	if err != nil {
		return sessions.Record{}, sessions.Pane{}, fmt.Errorf("find the session's pane: %w", err)
	}
	p, ok := sessions.FindPane(panes, rec.ID)
	if !ok {
		return sessions.Record{}, sessions.Pane{}, sessions.NotRunning(ref)
	}
	return rec, p, nil
}

package core

import (
	"context"
	"errors"
	"fmt"
	"os"

	"the-loop/sessions"
)

// ReadActivity are those of the sessions on our server, by id, with one look at tmux. [errors.ErrUnsupported] when the terminal cannot
// tell.
func (c *Core) ReadActivity(ctx context.Context) (map[string]sessions.PaneActivity, error) {
	r, ok := c.o.Terminal.(sessions.ActivityReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return r.ReadActivity(ctx)
}

// Folder is the folder that a running session was started in, absolute. A [*Refusal] when it does not run, another session has
// its name, or another folder stands in the place of its own.
func (c *Core) Folder(ctx context.Context, q sessions.FolderRequest) (string, error) {
	rec, err := c.requireRunning(ctx, q.Ref, q.ID)
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

// updateLedger changes the ledger of a work item, with nobody else at it. When change fails nothing is written.
func (c *Core) updateLedger(ctx context.Context, ref sessions.Ref, change func(*sessions.Ledger) error) error {
	release, err := c.o.Store.Lock(ctx, sessions.LedgerLockKey(ref), "note a delivery")
	if err != nil {
		return err
	}
	defer release()
	l, err := c.o.Store.LoadLedger(ctx, ref)
	if err != nil {
		return fmt.Errorf("read the deliveries to %s: %w", ref, err)
	}
	if err := change(&l); err != nil {
		return err
	}
	if err := c.o.Store.SaveLedger(ctx, l); err != nil {
		return fmt.Errorf("note a delivery to %s: %w", ref, err)
	}
	return nil
}

// ReadReports reads what the agent of a session reported, also in a run that has ended. [errors.ErrUnsupported] when the core was
// made without [Options].Reports.
func (c *Core) ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	switch {
	case err != nil:
		return sessions.ReportBatch{}, err
	case q.ID != "" && rec.ID != q.ID:
		return sessions.ReportBatch{}, replacedError(q.Ref)
	case c.o.Reports == nil:
		return sessions.ReportBatch{}, fmt.Errorf("the reports of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	noted, err := c.o.Reports.ReadReports(ctx, rec.ID, q.Offset, q.Since)
	if err != nil {
		return sessions.ReportBatch{}, fmt.Errorf("read what %s reported: %w", q.Ref, err)
	}
	noted.Cwd, noted.FolderID = rec.Definition.Cwd, rec.FolderID
	for i, a := range noted.PermissionRequests {
		noted.PermissionRequests[i] = a.ResolvePaths()
	}
	return noted, nil
}

// ReadTranscript reads what the agent of a session said, also in a run that has ended. [errors.ErrUnsupported] when its harness
// does not keep a record that can be read.
func (c *Core) ReadTranscript(ctx context.Context, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	switch {
	case err != nil:
		return sessions.TranscriptBatch{}, err
	case q.ID != "" && rec.ID != q.ID:
		return sessions.TranscriptBatch{}, &sessions.Refusal{Cause: sessions.ErrReplaced, What: fmt.Sprintf("the %s that is meant was deleted, and another one has its name", q.Ref)}
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return sessions.TranscriptBatch{}, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	read := h.Capabilities().ReadTranscript
	if read == nil {
		return sessions.TranscriptBatch{}, fmt.Errorf("the answers of %s: %w", h.Name(), errors.ErrUnsupported)
	}
	conv := rec.AgentConversation()
	conv.IsIdle = func(ctx context.Context) (bool, error) { return c.isIdle(ctx, rec) }
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
func (c *Core) isIdle(ctx context.Context, rec sessions.Record) (bool, error) {
	view, err := c.View(ctx, sessions.ViewRequest{Ref: rec.Ref, ID: rec.ID})
	if errors.Is(err, sessions.ErrNotRunning) {
		return true, nil
	}
	return view.State == sessions.ViewReady, err
}

// View reads the screen of a running session. Where its harness's screens cannot be read, its state is [ViewUnknown]. A
// [*Refusal] because of [ErrNotRunning] when the agent has ended.
func (c *Core) View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error) {
	rec, err := c.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.View{}, err
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return sessions.View{}, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return sessions.View{}, c.typingError(rec, fmt.Errorf("look whether the agent lives: %w", err))
	}
	switch p, ok := paneOf(panes, rec.ID); {
	case !ok:
		return sessions.View{}, c.typingError(rec, sessions.ErrPaneGone)
	case p.Dead:
		return sessions.View{}, c.typingError(rec, sessions.ErrPaneDead)
	}
	return c.readScreen(ctx, h, rec)
}

// stateOf says how a recorded session is, from its pane.
func stateOf(r sessions.Record, p sessions.Pane, there, silent bool) sessions.State {
	switch {
	case silent:
		return sessions.StateUnknown
	case there && !p.Dead:
		return sessions.StateRunning
	case there, !r.IsDown():
		return sessions.StateEnded
	case r.Status == sessions.StatusNew:
		return sessions.StateNew
	}
	return sessions.StateStopped
}

func rowOf(r sessions.Record, s sessions.State) sessions.Row {
	row := declaredRow(r.Definition)
	row.Ref, row.ID, row.State, row.Running = r.Ref, r.ID, s, s == sessions.StateRunning
	row.Pane, row.Conversation, row.Changed = r.Pane, r.Conversation, r.Changed
	row.TmuxTarget = r.Ref.TmuxName()
	return row
}

func declaredRow(d sessions.Definition) sessions.Row {
	ref := d.Ref()
	return sessions.Row{Ref: ref, Kind: ref.Kind(), Name: d.Name, Description: d.Description, Source: d.Source, Harness: d.Harness, Cwd: d.Cwd,
		State: sessions.StateNew, AutoStart: d.AutoStart, TmuxTarget: ref.TmuxName(), Chat: d.Chat}
}

func brokenRow(u *sessions.UnreadableError) sessions.Row {
	row := sessions.Row{Ref: u.Ref, Kind: u.Ref.Kind(), Name: u.Ref.Name(), State: sessions.StateBroken, Detail: u.Error()}
	switch {
	case u.Ref != "":
		row.TmuxTarget = u.Ref.TmuxName()
	case u.Slug != "": // the file of a work item, whose ref cannot be told from it
		row.Kind, row.Name, row.TmuxTarget = sessions.KindWorkItem, u.Slug, sessions.TmuxName(u.Slug)
	default:
		row.Kind = sessions.KindStanding
	}
	return row
}

// folderID is that of the folder at a path, if it can be looked at.
func folderID(path string) sessions.FolderID {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return sessions.FolderIDOf(info)
}

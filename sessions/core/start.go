package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"the-loop/sessions"
)

// Start brings a session up. A live one is left untouched ([OutcomeAlreadyRunning]); a recorded conversation is
// resumed, and when the agent does not survive that, a fresh one is started.
func (c *Core) Start(ctx context.Context, q sessions.StartRequest) (sessions.Row, error) {
	release, err := c.lockName(ctx, q.Ref, "start")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	def, rec, err := c.findExact(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.Row{}, err
	}
	return c.startLocked(ctx, def, rec)
}

// bring starts the session under its lock. The caller has the lock of its name.
func (c *Core) startLocked(ctx context.Context, def sessions.Definition, known *sessions.Record) (sessions.Row, error) {
	rec := c.newRecord(def)
	if known != nil {
		rec = *known
	}
	release, err := c.lockID(ctx, rec.ID, "start")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if known, err = c.reload(ctx, known); err != nil {
		return sessions.Row{}, err
	}
	if known != nil {
		rec = *known
	}
	return c.startAndReport(ctx, rec, func() (sessions.Row, error) { return c.startOrAdopt(ctx, def, rec, known) })
}

// newRecord is the record of a session that has none yet.
func (c *Core) newRecord(def sessions.Definition) sessions.Record {
	return sessions.Record{Version: sessions.RecordVersion, ID: newID(), Ref: def.Ref(), Definition: def, Created: c.o.Now()}
}

// reload reads a record again under the session's lock: who had the lock before may have changed it.
func (c *Core) reload(ctx context.Context, known *sessions.Record) (*sessions.Record, error) {
	if known == nil {
		return nil, nil
	}
	rec, err := c.o.Store.Load(ctx, known.Ref)
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", known.Ref, err)
	}
	return &rec, nil
}

// startAndReport records in the event log what came of a start.
func (c *Core) startAndReport(ctx context.Context, rec sessions.Record, start func() (sessions.Row, error)) (sessions.Row, error) {
	row, err := start()
	if err != nil {
		c.emit(ctx, sessions.EventSpawnFailed, slog.LevelError, rec, map[string]any{"reason": err.Error()})
		return sessions.Row{}, fmt.Errorf("start %s: %w", rec.Ref, err)
	}
	fields := map[string]any{"pane": row.Pane, "conversation": row.Conversation, "harness": row.Harness}
	if row.Outcome != sessions.OutcomeStarted && row.Outcome != sessions.OutcomeResumed {
		if rec.Status != sessions.StatusStarting {
			return row, nil
		}
		fields["adopted"] = true // a start before died when it had made the pane and could not say so
	}
	c.emit(ctx, startEventName(rec, row, fields), slog.LevelInfo, rec, fields)
	return row, nil
}

// startEventName is the name of the event of an agent that came up; fields gets what belongs to it.
func startEventName(rec sessions.Record, row sessions.Row, fields map[string]any) string {
	resumed := row.Outcome == sessions.OutcomeResumed
	switch {
	case rec.Ref.Kind() == sessions.KindWorkItem && !rec.HasRun():
		return sessions.EventSpawned
	case rec.Ref.Kind() == sessions.KindWorkItem:
		fields["resumed"] = resumed
		return sessions.EventRespawned
	case resumed:
		return sessions.EventResumed
	}
	return sessions.EventStarted
}

// startOrAdopt does it. known is the record on disk; nil: there is none, and there will be none if it fails.
func (c *Core) startOrAdopt(ctx context.Context, def sessions.Definition, rec sessions.Record, known *sessions.Record) (sessions.Row, error) {
	if def.Source == sessions.SourceDeclared && known != nil && known.Definition.Source == sessions.SourceCreated {
		return sessions.Row{}, declaredConflict(rec.Ref)
	}
	found, err := c.findOccupancy(ctx, rec)
	own := found.own
	switch {
	case err != nil:
		return sessions.Row{}, err
	case own != nil && !own.Dead && !rec.IsRestartPending(*own):
		return c.adopt(ctx, rec, *own)
	}
	if own != nil && rec.ReplacesPID != 0 { // a restart was cut short
		r, err := c.newLauncher(def)
		if err != nil {
			return sessions.Row{}, err
		}
		return r.restartInPane(ctx, def, rec, *own)
	}
	rec.Definition = def
	row, err := c.launch(ctx, rec, known, found, nil)
	var runs *alreadyRunningError
	if errors.As(err, &runs) {
		return c.adopt(ctx, *known, runs.pane)
	}
	return row, err
}

// launch brings an agent up that does not run. found is what there is of the one before; ev is what it is told first, if
// anything happened.
func (c *Core) launch(ctx context.Context, rec sessions.Record, known *sessions.Record, found occupancy, ev *openingEvent) (sessions.Row, error) {
	r, err := c.newLauncher(rec.Definition)
	if err != nil {
		return sessions.Row{}, err
	}
	switch {
	case found.sharedSession != "":
		r.keptPane, r.sharedSession = found.own, found.sharedSession
	case found.own != nil:
		if err := c.endPane(ctx, rec, found.own.Target()); err != nil {
			return sessions.Row{}, fmt.Errorf("clear the ended agent's pane: %w", err)
		}
	}
	r.rec, r.prior, r.opening = rec, known, ev
	return r.launch(ctx)
}

func declaredConflict(ref sessions.Ref) error {
	return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("%s was created and is now declared in the config too", ref),
		Remedy: "give one of them another name, or take it out of the config and delete it"}
}

func (c *Core) occupiedError(ref sessions.Ref, p sessions.Pane) error {
	attach := strings.Join(c.o.Terminal.AttachCommand(p, false, false), " ")
	return &sessions.Refusal{Cause: sessions.ErrNameTaken,
		What:   fmt.Sprintf("a tmux session %q is there that does not belong to %s (pane %s)", p.SessionName, ref, p.ID),
		Remedy: fmt.Sprintf("look at it (%s), then rename it or end it, and start again", attach)}
}

// adopt records a live pane that carries our id: the bot or a start before may have died before it could say so.
func (c *Core) adopt(ctx context.Context, rec sessions.Record, p sessions.Pane) (sessions.Row, error) {
	if rec.Status != sessions.StatusRunning || rec.Pane != p.ID || rec.Server != p.Server {
		since := rec.Changed
		if rec.Status == sessions.StatusStopped { // nobody knows since when
			since = c.o.Now()
		}
		rec = rec.WithPane(p, sessions.StatusRunning, since)
		if err := c.o.Store.Save(ctx, rec); err != nil {
			return sessions.Row{}, fmt.Errorf("record the running session: %w", err)
		}
	}
	row := rowOf(rec, sessions.StateRunning)
	row.Outcome = sessions.OutcomeAlreadyRunning
	return row, nil
}

// ready checks everything that a start needs and that can be checked without changing anything.
func (c *Core) newLauncher(def sessions.Definition) (*launcher, error) {
	cfg := c.o.Config()
	env, err := cfg.readEnvFile()
	if err != nil {
		return nil, err
	}
	prompt, err := bootPrompt(def, cfg)
	if err != nil {
		return nil, err
	}
	return c.newLauncherWith(def, cfg, env.Values, prompt)
}

// newLauncherWith is ready with what the env file was found to declare.
func (c *Core) newLauncherWith(def sessions.Definition, cfg Config, declared map[string]string, prompt string) (*launcher, error) {
	h, err := c.o.Harnesses(def.Harness)
	if err != nil {
		return nil, err
	}
	if err := checkFolder(def.Cwd); err != nil {
		return nil, err
	}
	r := &launcher{c: c, cfg: cfg, harness: h, prompt: prompt, declared: declared}
	return r, r.checkProgram(def)
}

func checkFolder(dir string) error {
	if !filepath.IsAbs(dir) { // it starts at the current folder, which was removed
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("the folder %q starts at the current one, which is not there any more", dir),
			Remedy: "go to another folder, or name an absolute one (cwd, routing.spawnWorkdir)"}
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("the folder %s cannot be used: %v", dir, err),
			Remedy: "make it, or change cwd"}
	case !info.IsDir():
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: dir + " is not a folder", Remedy: "change cwd"}
	}
	return nil
}

// Restart ends a session's agent and starts it again under one lock, so that replies wait meanwhile. Where its conversation
// can be resumed that happens in its pane: the tmux session stays, and with it those who look at it. What a start would
// refuse is refused before the running agent is touched. One that does not run is started.
func (c *Core) Restart(ctx context.Context, q sessions.RestartRequest) (sessions.Row, error) {
	release, err := c.lockName(ctx, q.Ref, "restart")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	def, rec, err := c.findExact(ctx, q.Ref, q.ID)
	switch {
	case err != nil:
		return sessions.Row{}, err
	case rec == nil:
		return c.startLocked(ctx, def, nil)
	}
	release, err = c.lockID(ctx, rec.ID, "restart")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if rec, err = c.reload(ctx, rec); err != nil {
		return sessions.Row{}, err
	}
	return c.startAndReport(ctx, *rec, func() (sessions.Row, error) { return c.restart(ctx, def, *rec) })
}

func (c *Core) restart(ctx context.Context, def sessions.Definition, rec sessions.Record) (sessions.Row, error) {
	r, err := c.newLauncher(def)
	if err != nil {
		return sessions.Row{}, err
	}
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return sessions.Row{}, fmt.Errorf("look for the running session: %w", err)
	}
	own, there := paneOf(panes, rec.ID)
	if there && (!own.Dead || rec.ReplacesPID != 0) && c.terminal(rec) == c.o.Terminal {
		return r.restartInPane(ctx, def, rec, own)
	}
	rec, _, err = c.takeDown(ctx, rec, sessions.StatusStarting)
	if err != nil {
		return sessions.Row{}, err
	}
	row, err := c.startOrAdopt(ctx, def, rec, &rec)
	if err != nil {
		return sessions.Row{}, errors.Join(err, c.reconcileFailedRestart(context.WithoutCancel(ctx), rec.Ref))
	}
	return row, nil
}

// settle records a session as stopped that a restart took down and could not bring up again.
func (c *Core) reconcileFailedRestart(ctx context.Context, ref sessions.Ref) error {
	rec, err := c.o.Store.Load(ctx, ref)
	if err != nil || rec.Status != sessions.StatusStarting {
		return err
	}
	if panes, err := c.listPanes(ctx, rec); err != nil {
		return err
	} else if _, there := paneOf(panes, rec.ID); there {
		return nil
	}
	rec.Status, rec.Changed = sessions.StatusStopped, c.o.Now()
	return c.o.Store.Save(ctx, rec)
}

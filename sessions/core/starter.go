package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// starter starts agents, or adopts those that run. The caller holds the session's locks.
type starter struct {
	records *records
	panes   *panes
	agents  *agents
	events  *events
	store   sessions.Records
	reports sessions.Reports // nil: there are none
	config  func() Config
	now     func() time.Time
	log     *slog.Logger
}

// startAndReport calls start and writes the event of its outcome.
func (s *starter) startAndReport(ctx context.Context, rec sessions.Record, start func() (sessions.Row, error)) (sessions.Row, error) {
	row, err := start()
	if err != nil {
		s.events.emit(ctx, sessions.EventSpawnFailed, slog.LevelError, rec, map[string]any{"reason": err.Error()})
		return sessions.Row{}, fmt.Errorf("start %s: %w", rec.Ref, err)
	}
	fields := map[string]any{"pane": row.Pane, "conversation": row.Conversation, "harness": row.Harness}
	if row.Outcome != sessions.OutcomeStarted && row.Outcome != sessions.OutcomeResumed {
		if rec.Status != sessions.StatusStarting {
			return row, nil
		}
		fields["adopted"] = true // an interrupted start made the pane
	}
	s.events.emit(ctx, sessions.StartEventName(rec, row, fields), slog.LevelInfo, rec, fields)
	return row, nil
}

// startOrAdopt adopts the session's running pane, or starts an agent. known is the record on disk; nil: there is none, and a
// failure leaves none.
func (s *starter) startOrAdopt(ctx context.Context, def sessions.Definition, rec sessions.Record, known *sessions.Record) (sessions.Row, error) {
	if def.Source == sessions.SourceDeclared && known != nil && known.Definition.Source == sessions.SourceCreated {
		return sessions.Row{}, sessions.DeclaredConflict(rec.Ref)
	}
	found, err := s.panes.findOccupancy(ctx, rec)
	own := found.own
	switch {
	case err != nil:
		return sessions.Row{}, err
	case own != nil && !own.Dead && !rec.IsRestartPending(*own):
		return s.adopt(ctx, rec, *own)
	}
	if own != nil && rec.ReplacesPID != 0 { // a restart was interrupted
		r, err := s.newLauncher(def)
		if err != nil {
			return sessions.Row{}, err
		}
		return r.restartInPane(ctx, def, rec, *own)
	}
	rec.Definition = def
	row, err := s.launch(ctx, rec, known, found, nil)
	var runs *alreadyRunningError
	if errors.As(err, &runs) {
		return s.adopt(ctx, *known, runs.pane)
	}
	return row, err
}

// launch starts the agent of a session that does not run. found is what is left of the previous one; ev is the event that the
// agent is started with, nil for none.
func (s *starter) launch(ctx context.Context, rec sessions.Record, known *sessions.Record, found occupancy, ev *openingEvent) (sessions.Row, error) {
	r, err := s.newLauncher(rec.Definition)
	if err != nil {
		return sessions.Row{}, err
	}
	switch {
	case found.sharedSession != "":
		r.keptPane, r.sharedSession = found.own, found.sharedSession
	case found.own != nil:
		if err := s.endPane(ctx, rec, found.own.Target()); err != nil {
			return sessions.Row{}, fmt.Errorf("clear the ended agent's pane: %w", err)
		}
	}
	r.rec, r.prior, r.opening = rec, known, ev
	return r.launch(ctx)
}

// adopt records a running pane that carries the session's id, after a start that was interrupted before it could.
func (s *starter) adopt(ctx context.Context, rec sessions.Record, p sessions.Pane) (sessions.Row, error) {
	if rec.Status != sessions.StatusRunning || rec.Pane != p.ID || rec.Server != p.Server {
		since := rec.Changed
		if rec.Status == sessions.StatusStopped { // it is not known since when it runs
			since = s.now()
		}
		rec = rec.WithPane(p, sessions.StatusRunning, since)
		if err := s.store.Save(ctx, rec); err != nil {
			return sessions.Row{}, fmt.Errorf("record the running session: %w", err)
		}
	}
	row := sessions.RowOf(rec, sessions.StateRunning)
	row.Outcome = sessions.OutcomeAlreadyRunning
	return row, nil
}

// newLauncher checks everything that a start needs and that can be checked without changing anything.
func (s *starter) newLauncher(def sessions.Definition) (*launcher, error) {
	cfg := s.config()
	env, err := cfg.readEnvFile()
	if err != nil {
		return nil, err
	}
	if err := env.CheckComplete(); err != nil {
		return nil, err
	}
	prompt, err := sessions.BootPrompt(def, cfg.ChatService, cfg.Program)
	if err != nil {
		return nil, err
	}
	return s.newLauncherWith(def, cfg, env.Values, prompt)
}

// newLauncherWith is [starter.newLauncher] with the values of the env file and the first message given.
func (s *starter) newLauncherWith(def sessions.Definition, cfg Config, declared map[string]string, prompt string) (*launcher, error) {
	h, err := s.agents.harness(def.Harness)
	if err != nil {
		return nil, err
	}
	if err := sessions.CheckFolder(def.Cwd); err != nil {
		return nil, err
	}
	r := &launcher{starter: s, cfg: cfg, harness: h, prompt: prompt, declared: declared}
	return r, r.checkProgram(def)
}

func (s *starter) endPane(ctx context.Context, rec sessions.Record, t sessions.Target) error {
	return s.panes.terminalOf(rec).End(ctx, t, s.config().KillGrace)
}

// removeState removes the record and the reports of a session. Reports that cannot be removed only take room: without the record
// they are not reachable.
func (s *starter) removeState(ctx context.Context, rec sessions.Record) error {
	if err := s.store.Remove(ctx, rec.Ref); err != nil || s.reports == nil {
		return err
	}
	if err := s.reports.Remove(ctx, rec.ID); err != nil {
		s.log.Warn("the reports of a deleted session stay", "session", rec.Ref, "err", err)
	}
	return nil
}

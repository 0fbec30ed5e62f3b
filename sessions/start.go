package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// StartRequest asks for one session to run.
type StartRequest struct{ Ref Ref }

// Outcome says in one word what a verb did to one session.
type Outcome string

// The outcomes of start and stop.
const (
	OutcomeStarted        Outcome = "started"         // a new conversation
	OutcomeResumed        Outcome = "resumed"         // the recorded conversation goes on
	OutcomeAlreadyRunning Outcome = "already-running" // nothing was touched
	OutcomeStopped        Outcome = "stopped"
	OutcomeAlreadyStopped Outcome = "already-stopped"
)

// Row is what a verb did to one session, or what there is to know of it.
type Row struct {
	Ref          Ref     `json:"ref"`
	ID           string  `json:"id,omitempty"`
	Name         string  `json:"name"`
	Description  string  `json:"description,omitempty"`
	Source       Source  `json:"source"`
	Harness      string  `json:"harness"`
	Cwd          string  `json:"cwd"`
	State        State   `json:"state"`
	Running      bool    `json:"running"`
	AutoStart    bool    `json:"autoStart"`
	TmuxTarget   string  `json:"tmuxTarget"`
	Pane         string  `json:"pane,omitempty"`
	Conversation string  `json:"conversation,omitempty"`
	Outcome      Outcome `json:"outcome,omitempty"`
	Detail       string  `json:"detail,omitempty"`

	Changed time.Time `json:"changed,omitzero"` // when it was last started or stopped

	Slack SlackDefinition `json:"slack"`
}

// State is how a session is found to be.
type State string

// The states of a session, as the panes and the record together show it.
const (
	StateRunning State = "running"
	StateEnded   State = "ended"   // the agent has ended on its own; its last screen may still be there
	StateStopped State = "stopped" // taken down by us
	StateNew     State = "new"     // declared, never started
	StateUnknown State = "unknown" // tmux did not answer
	StateBroken  State = "broken"  // its record cannot be read
)

// Start brings a session up. A live one is left untouched ([OutcomeAlreadyRunning]); a recorded conversation is
// resumed, and when the agent does not survive that, a fresh one is started.
func (c *Core) Start(ctx context.Context, q StartRequest) (Row, error) {
	release, err := c.lockName(ctx, q.Ref, "start")
	if err != nil {
		return Row{}, err
	}
	defer release()
	def, rec, err := c.find(ctx, q.Ref)
	if err != nil {
		return Row{}, err
	}
	row, err := c.start(ctx, def, rec)
	if err != nil {
		r := Record{Ref: q.Ref}
		if rec != nil {
			r = *rec
		}
		c.emit(ctx, EventSpawnFailed, slog.LevelError, r, map[string]any{"reason": err.Error()})
		return Row{}, fmt.Errorf("start %s: %w", q.Ref, err)
	}
	return row, nil
}

func (c *Core) start(ctx context.Context, def Definition, rec *Record) (Row, error) {
	h, err := c.o.Harnesses(def.Harness)
	if err != nil {
		return Row{}, err
	}
	fresh := rec == nil
	if fresh {
		rec = &Record{Version: RecordVersion, ID: newID(), Ref: StandingRef(def.Name), Created: c.o.Now()}
	}
	release, err := c.lockID(ctx, rec.ID, "start")
	if err != nil {
		return Row{}, err
	}
	defer release()
	live, err := c.clearWay(ctx, *rec)
	switch {
	case err != nil:
		return Row{}, err
	case live != nil:
		return c.adopt(ctx, *rec, *live)
	}
	if err := checkFolder(def.Cwd); err != nil {
		return Row{}, err
	}
	rec.Definition = def
	return c.launch(ctx, h, *rec, fresh)
}

// clearWay looks at what holds the session's place in tmux: its own live pane is returned, its own dead one is cleared
// away, and anything else that lives there is never killed but refused.
func (c *Core) clearWay(ctx context.Context, rec Record) (*Pane, error) {
	panes, err := c.o.Terminal.Panes(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a running session: %w", err)
	}
	if p, ok := paneOf(panes, rec.ID); ok {
		if !p.Dead {
			return &p, nil
		}
		if err := c.end(ctx, p.Target()); err != nil {
			return nil, fmt.Errorf("clear the ended agent's pane: %w", err)
		}
	}
	for _, p := range panes {
		if p.SessionName == rec.Ref.TmuxName() && p.Mark != rec.ID {
			return nil, c.occupied(rec.Ref, p)
		}
	}
	return nil, nil
}

func (c *Core) occupied(ref Ref, p Pane) error {
	attach := strings.Join(c.o.Terminal.AttachCommand(p, false, false), " ")
	return &Refusal{Cause: ErrNameTaken,
		What:   fmt.Sprintf("a tmux session %q is there that does not belong to %s (pane %s)", p.SessionName, ref, p.ID),
		Remedy: fmt.Sprintf("look at it (%s), then rename it or end it, and start again", attach)}
}

// adopt records a live pane that carries our id: the bot or a start before may have died before it could say so.
func (c *Core) adopt(ctx context.Context, rec Record, p Pane) (Row, error) {
	if rec.Status != StatusRunning || rec.Pane != p.ID || rec.Server != p.Server {
		rec = rec.at(p, StatusRunning, c.o.Now())
		if err := c.o.Store.Save(ctx, rec); err != nil {
			return Row{}, fmt.Errorf("record the running session: %w", err)
		}
	}
	row := rowOf(rec, StateRunning)
	row.Outcome = OutcomeAlreadyRunning
	return row, nil
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("the folder %s cannot be used: %v", dir, err),
			Remedy: "make it, or change cwd"}
	case !info.IsDir():
		return &Refusal{Cause: ErrRefused, What: dir + " is not a folder", Remedy: "change cwd"}
	}
	return nil
}

// launch resumes the recorded conversation, or starts a fresh one. A session that never ran leaves no record when its
// start fails.
func (c *Core) launch(ctx context.Context, h Harness, rec Record, fresh bool) (Row, error) {
	if !fresh {
		row, err := c.resume(ctx, h, rec)
		if err == nil {
			return row, nil
		}
		if !errors.Is(err, errResumeAbandoned) {
			return Row{}, err
		}
		c.emit(ctx, EventResumeFailed, slog.LevelWarn, rec, map[string]any{"reason": err.Error(), "conversation": rec.Conversation})
	}
	row, err := c.begin(ctx, h, rec)
	if err != nil && fresh && !errors.Is(err, ErrInDoubt) {
		if rerr := c.o.Store.Remove(ctx, rec.Ref); rerr != nil {
			return Row{}, errors.Join(err, rerr)
		}
	}
	return row, err
}

// begin starts a new conversation.
func (c *Core) begin(ctx context.Context, h Harness, rec Record) (Row, error) {
	prompt, err := bootPrompt(rec.Definition)
	if err != nil {
		return Row{}, err
	}
	rec.Conversation = newID()
	rec, err = c.spawn(ctx, h, rec, Launch{Prompt: prompt})
	if err != nil {
		return Row{}, err
	}
	c.emit(ctx, EventStarted, slog.LevelInfo, rec, map[string]any{"pane": rec.Pane, "conversation": rec.Conversation, "harness": h.Name()})
	row := rowOf(rec, StateRunning)
	row.Outcome = OutcomeStarted
	return row, nil
}

// errResumeAbandoned marks what makes a fresh conversation the right thing, as against what makes a start fail.
var errResumeAbandoned = errors.New("the conversation cannot be resumed")

// resume continues the recorded conversation and looks after the probe time whether the agent lived through it. An
// agent that is slower to fail than the probe counts as resumed here; that it ended is seen by whoever looks next.
func (c *Core) resume(ctx context.Context, h Harness, rec Record) (Row, error) {
	cfg := c.o.Config()
	switch {
	case !cfg.Resume:
		return Row{}, fmt.Errorf("%w: routing.tmux.resumeOnRespawn is off", errResumeAbandoned)
	case !ValidConversation(rec.Conversation):
		return Row{}, fmt.Errorf("%w: the recorded id does not have the shape of one", errResumeAbandoned)
	case !h.Traits().Resumes:
		return Row{}, fmt.Errorf("%w: %s has no way to resume", errResumeAbandoned, h.Name())
	}
	rec, err := c.spawn(ctx, h, rec, Launch{Resume: true})
	if err != nil {
		return Row{}, err
	}
	if err := c.survived(ctx, rec, cfg.Probe); err != nil {
		return Row{}, err
	}
	c.emit(ctx, EventResumed, slog.LevelInfo, rec, map[string]any{"pane": rec.Pane, "conversation": rec.Conversation, "harness": h.Name()})
	row := rowOf(rec, StateRunning)
	row.Outcome = OutcomeResumed
	return row, nil
}

// survived waits out the probe and then clears a dead agent away. That tmux does not answer is no death.
func (c *Core) survived(ctx context.Context, rec Record, probe time.Duration) error {
	if probe > 0 {
		timer := time.NewTimer(probe)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	panes, err := c.o.Terminal.Panes(ctx)
	if err != nil {
		return fmt.Errorf("look whether the resumed agent lives: %w", err)
	}
	p, ok := paneOf(panes, rec.ID)
	switch {
	case !ok:
		return fmt.Errorf("%w: the agent ended within %s", errResumeAbandoned, probe)
	case p.Dead:
		why := fmt.Errorf("%w: the agent ended within %s with status %d", errResumeAbandoned, probe, p.ExitStatus)
		if err := c.end(ctx, p.Target()); err != nil {
			return fmt.Errorf("clear the pane of an agent that did not resume: %w", err)
		}
		return why
	}
	return nil
}

// spawn writes the record as starting, makes the pane, and writes the record as running.
func (c *Core) spawn(ctx context.Context, h Harness, rec Record, l Launch) (Record, error) {
	cfg := c.o.Config()
	l.Session, l.Conversation, l.Args, l.Cwd = rec.ID, rec.Conversation, rec.Definition.HarnessArgs, rec.Definition.Cwd
	cmd, err := h.Command(l)
	if err != nil {
		return Record{}, err
	}
	env, err := c.environment(cfg, rec, cmd.Env)
	if err != nil {
		return Record{}, err
	}
	rec.Status, rec.Changed = StatusStarting, c.o.Now()
	if err := c.o.Store.Save(ctx, rec); err != nil {
		return Record{}, fmt.Errorf("record the start: %w", err)
	}
	pane, err := c.o.Terminal.Spawn(ctx, Spawn{Name: rec.Ref.TmuxName(), Mark: rec.ID, Argv: cmd.Argv,
		Cwd: rec.Definition.Cwd, Env: env, RemainOnExit: cfg.RemainOnExit})
	if err != nil {
		return c.spawnFailed(ctx, rec, err)
	}
	rec = rec.at(pane, StatusRunning, c.o.Now())
	if err := c.o.Store.Save(ctx, rec); err != nil {
		return Record{}, fmt.Errorf("record the running session: %w", err)
	}
	return rec, nil
}

// spawnFailed keeps a known conversation as stopped. Where a pane may be there after all, the record stays as starting:
// the next start finds the pane by the id that it carries.
func (c *Core) spawnFailed(ctx context.Context, rec Record, cause error) (Record, error) {
	if errors.Is(cause, ErrInDoubt) {
		return Record{}, cause
	}
	rec.Status, rec.Changed = StatusStopped, c.o.Now()
	if err := c.o.Store.Save(context.WithoutCancel(ctx), rec); err != nil {
		return Record{}, errors.Join(cause, err)
	}
	return Record{}, cause
}

// bootPrompt is the first message of a new conversation: what the session must know of itself, then the operator's
// brief, appended and never in its place.
func bootPrompt(d Definition) (string, error) {
	brief := d.Prompt
	if d.PromptFile != "" {
		data, err := os.ReadFile(d.PromptFile)
		if err != nil {
			return "", &Refusal{Cause: ErrRefused, What: fmt.Sprintf("the promptFile %s cannot be read: %v", d.PromptFile, err),
				Remedy: "mend the file or change promptFile"}
		}
		brief = string(data)
	}
	directive := fmt.Sprintf("You are the standing session %q of the-loop. You own no work item. Never answer a "+
		"phase-selection gate and never post a control keyword on any ticket. Your operator speaks to you in this "+
		"terminal", d.Name)
	if d.Slack.Enabled {
		directive += ", in your Slack thread"
	}
	directive += " and through the-loop's own commands; what arrives here as a message comes from them."
	if brief = strings.TrimSpace(brief); brief == "" {
		return directive, nil
	}
	return directive + "\n\n" + brief, nil
}

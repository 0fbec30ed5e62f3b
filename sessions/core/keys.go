package core

import (
	"context"
	"log/slog"
	"strings"

	"the-loop/sessions"
)

// Keys presses keys and returns their effect. While the agent shows a dialog or a menu, only keys that are known not to accept
// anything are pressed, see [sessions.Capabilities]. Keys that decline or switch a mode require the name of the person.
func (in *Input) Keys(ctx context.Context, q sessions.KeysRequest) (sessions.KeysEffect, error) {
	rec, err := in.records.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.KeysNone, err
	}
	h, err := in.agents.harness(rec.Definition.Harness)
	if err != nil {
		return sessions.KeysNone, &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	names, bytes, err := sessions.KeySequence(q, h.Capabilities())
	if err != nil {
		return sessions.KeysNone, err
	}
	release, err := in.records.lockID(ctx, rec.ID, "keys")
	if err != nil {
		return sessions.KeysNone, err
	}
	defer release()
	effect, err := in.checkKeys(ctx, h, rec, names)
	switch {
	case err != nil:
		return sessions.KeysNone, err
	case effect != sessions.KeysNone && q.Actor == "":
		return sessions.KeysNone, &sessions.Refusal{Cause: sessions.ErrRefused, What: "these keys answer the agent, and nobody is named who presses them"}
	}
	return effect, in.press(ctx, rec, q, names, bytes, effect)
}

// checkKeys returns the effect that keys would have now, and refuses those that might accept something.
func (in *Input) checkKeys(ctx context.Context, h sessions.Harness, rec sessions.Record, names []string) (sessions.KeysEffect, error) {
	state, err := in.stateForKeys(ctx, h, rec)
	if err != nil {
		return sessions.KeysNone, err
	}
	effect, refused := sessions.ClassifyKeys(names, h.Capabilities(), state)
	if refused == nil {
		return effect, nil
	}
	if err := in.agents.checkAlive(ctx, rec); err != nil {
		return sessions.KeysNone, err
	}
	return sessions.KeysNone, refused
}

// press presses the keys, and writes an event with the person who did.
func (in *Input) press(ctx context.Context, rec sessions.Record, q sessions.KeysRequest, names []string, bytes string, effect sessions.KeysEffect) error {
	err := in.panes.terminalOf(rec).Press(ctx, rec.Target(), bytes)
	fields := map[string]any{"keys": strings.Join(names, " "), "actor": q.Actor}
	if effect != sessions.KeysNone {
		fields["answer"] = string(effect)
	}
	if err != nil {
		err = sessions.WrapTerminalError(rec, err)
		fields["error"] = err.Error() // they may have been pressed all the same
	}
	in.events.emit(ctx, sessions.EventKeys, slog.LevelInfo, rec, fields)
	return err
}

// stateForKeys returns the state of the screen on which keys would act. A dialog that the agent's hook has reported and that the
// screen may not show yet counts as open, see [openPermissions.hasPendingDialog].
func (in *Input) stateForKeys(ctx context.Context, h sessions.Harness, rec sessions.Record) (sessions.ViewState, error) {
	if in.permissions.hasPendingDialog(rec.ID) {
		return sessions.ViewDialog, nil
	}
	view, err := in.agents.readScreen(ctx, h, rec)
	if err != nil {
		return "", err
	}
	if in.permissions.hasPendingDialog(rec.ID) { // reported while the screen was read
		return sessions.ViewDialog, nil
	}
	return view.State, nil
}

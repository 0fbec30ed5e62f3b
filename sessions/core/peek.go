package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"the-loop/sessions"
)

// Peek reads the visible screen of a session, or the last screen of an agent that ended and whose pane was kept.
func (qs *Queries) Peek(ctx context.Context, q sessions.PeekRequest) (sessions.PeekResult, error) {
	rec, p, err := qs.requirePane(ctx, q.Ref)
	if err != nil {
		return sessions.PeekResult{}, err
	}
	screen, err := qs.panes.terminalOf(rec).Capture(ctx, p.Target())
	if err != nil {
		return sessions.PeekResult{}, sessions.WrapTerminalError(rec, fmt.Errorf("read the pane: %w", err))
	}
	row := sessions.RowOf(rec, sessions.StateOf(rec, p, true, false))
	if p.Dead {
		row.Detail = "the agent ended, " + p.ExitDescription()
	}
	return sessions.PeekResult{Row: row, Text: strings.TrimRight(screen.Text, " \n")}, nil
}

// PeekANSI is [Queries.Peek] with the escape sequences of the colours. [errors.ErrUnsupported] when the terminal cannot tell
// them.
func (qs *Queries) PeekANSI(ctx context.Context, q sessions.PeekRequest) (string, error) {
	rec, p, err := qs.requirePane(ctx, q.Ref)
	if err != nil {
		return "", err
	}
	capturer, ok := qs.panes.terminalOf(rec).(sessions.ANSICapturer)
	if !ok {
		return "", fmt.Errorf("the colours of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	ansi, err := capturer.CaptureANSI(ctx, p.Target())
	if err != nil {
		return "", sessions.WrapTerminalError(rec, fmt.Errorf("read the pane: %w", err))
	}
	return ansi, nil
}

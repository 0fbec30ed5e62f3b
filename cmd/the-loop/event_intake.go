package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"the-loop/sessions"
)

// intakeResult is what is printed of one event.
type intakeResult struct {
	Ref        sessions.Ref     `json:"ref"`
	DeliveryID string           `json:"delivery"`
	Outcome    sessions.Outcome `json:"outcome"`
	Receipt    sessions.Receipt `json:"receipt,omitempty"`
	Detail     string           `json:"detail,omitempty"`
}

func sessionsFeedCommand(c *cli) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{Use: "feed", Short: "Deliver events from standard input", Args: cobra.NoArgs,
		Long: `Deliver events from standard input, one JSON object per line, each like deliver does:

  {"ref": "github:acme/shop#7", "id": "72d3162e", "text": "ann commented: …"}

The result of each is printed, one JSON object per line, in the same order. The exit code is 1 if one was not delivered.`}
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait until an agent can take text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withApp(cmd.Context(), c.openApp, func(a *app) error {
			failed, out := 0, json.NewEncoder(cmd.OutOrStdout())
			err := a.core.Intake(cmd.Context(), sessions.IntakeRequest{Source: newJSONLineSource(cmd.InOrStdin()), Wait: wait,
				OnResult: func(e sessions.WorkItemEvent, d sessions.DeliveryResult, err error) error {
					if err != nil {
						failed++
					}
					return out.Encode(newIntakeResult(e, d, err))
				}})
			if err == nil && failed > 0 {
				err = &exitError{code: exitFailed}
			}
			return err
		})
	}
	return cmd
}

func newIntakeResult(e sessions.WorkItemEvent, d sessions.DeliveryResult, err error) intakeResult {
	if err != nil {
		return intakeResult{Ref: e.Ref, DeliveryID: e.ID, Outcome: sessions.OutcomeFailed, Detail: err.Error()}
	}
	return intakeResult{Ref: d.Row.Ref, DeliveryID: d.DeliveryID, Outcome: d.Row.Outcome, Receipt: d.Receipt, Detail: d.Row.Detail}
}

// jsonLineSource reads events, a JSON object a line.
type jsonLineSource struct {
	lines      *bufio.Scanner
	lineNumber int
}

func newJSONLineSource(r io.Reader) *jsonLineSource {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*maxTextBytes)
	return &jsonLineSource{lines: lines}
}

// NextEvent implements [sessions.EventSource].
func (s *jsonLineSource) NextEvent(ctx context.Context) (e sessions.WorkItemEvent, err error) {
	for ctx.Err() == nil && s.lines.Scan() {
		s.lineNumber++
		line := bytes.TrimSpace(s.lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return e, fmt.Errorf("line %d is not an event: %w", s.lineNumber, err)
		}
		return e, nil
	}
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case s.lines.Err() != nil:
		return e, s.lines.Err()
	}
	return e, io.EOF
}

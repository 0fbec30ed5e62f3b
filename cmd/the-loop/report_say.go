package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// maxReportBytes bounds a text that is reported, in bytes: a thread shows the beginning of one that is much shorter.
const maxReportBytes = 1 << 20

func reportSayCommand(c *cli) *cobra.Command {
	var step, final bool
	cmd := &cobra.Command{Use: "say [TEXT... | -]", Short: "Post a message to the session's thread",
		Long: `Post a message to the thread of the session in whose terminal it runs. It is for a harness of your own that the configuration describes
with "reports: program": your program calls it with each message of its agent. Without TEXT, or with -, the text is read from standard
input. The bot need not run: the message is kept, and posted when it does.

With --final (the default), the message ends a turn; with --step, the turn continues. channels.slack.replies selects which are posted.`}
	cmd.Flags().BoolVar(&step, "step", false, "the turn continues after it")
	cmd.Flags().BoolVar(&final, "final", false, "it ends the turn")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if step && final {
			return usageError(errors.New("use --step or --final, not both"))
		}
		text, err := c.readReportText(args)
		if err != nil {
			return err
		}
		return c.reportText(cmd, report.AgentMessagePayload{Text: text, Final: !step})
	}
	return cmd
}

// readReportText is the text that is to be said.
func (c *cli) readReportText(args []string) (string, error) {
	text := ""
	if len(args) > 0 && !(len(args) == 1 && args[0] == "-") {
		text = strings.Join(args, " ")
	} else {
		data, err := io.ReadAll(io.LimitReader(c.env.in, maxReportBytes+1))
		if err != nil {
			return "", fmt.Errorf("read the text: %w", err)
		}
		text = string(data)
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	switch {
	case text == "":
		return "", usageError(errors.New("the text is empty: give it as an argument or on standard input"))
	case len(text) > maxReportBytes:
		return "", usageError(fmt.Errorf("the text is longer than %d bytes: shorten it, or post it as a file with the-loop report file", maxReportBytes))
	}
	return text, nil
}

// reportText reports a text, when it is read by anybody. While the configuration cannot be read, the text is kept.
func (c *cli) reportText(cmd *cobra.Command, note report.AgentMessagePayload) error {
	s, err := c.findReportingSession(cmd.Context())
	if err != nil {
		return err
	}
	if name := s.record.Definition.Harness; s.cfg != nil && !s.cfg.Harnesses[name].UsesReports {
		return fmt.Errorf("messages of %s are not read from reports: for a harness of your own, set harnesses.%s.reports to program", name, name)
	}
	return s.appendReport(report.EventAgentMessage, note)
}

// paneSession is the session in whose terminal this runs, by its id, and the folder of the state that has it. Every pane is given
// them; where the pane can be told, it is the one that counts.
func (c *cli) paneSession(ctx context.Context) (id, root string, err error) {
	id, root = c.env.getenv(sessionVariable), c.env.getenv(instanceVariable)
	if id == "" || root == "" {
		return "", "", usageError(errors.New("THE_LOOP_SESSION or THE_LOOP_INSTANCE is not set: run this in a session's terminal"))
	}
	who, err := c.findCaller(ctx)
	switch {
	case err != nil:
		return "", "", err
	case who.sessionID != "" && who.sessionID != id:
		return "", "", &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("this terminal belongs to the session %s, but THE_LOOP_SESSION is %s", who.sessionID, id),
			Remedy: "do not change THE_LOOP_SESSION: an agent can report only for its own session"}
	}
	return id, root, nil
}

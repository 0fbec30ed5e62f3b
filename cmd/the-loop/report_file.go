package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness"
	"the-loop/sessions/registry"
	"the-loop/threads"
)

func (c *cli) reportFile() *cobra.Command {
	var comment string
	cmd := &cobra.Command{Use: "file PATH", Short: "Post a file of the session's folder in its Slack thread", Args: cobra.ExactArgs(1),
		Long: `Post a file of the session's folder in its Slack thread. It is for agents: it works in a session's terminal, and only for files within
the session's folder. The bot takes a copy when it reads the report, which may be a moment later, or when it is back.`}
	cmd.Flags().StringVar(&comment, "comment", "", "a sentence that goes with it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := c.reporter(cmd.Context())
		if err == nil {
			err = s.inSlack()
		}
		if err != nil {
			return err
		}
		path, err := s.below(c.env.workdir, args[0])
		if err != nil {
			return err
		}
		if err := s.append(harness.EventFile, harness.FilePayload{Path: path, Comment: comment}); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s goes into the thread of %s\n", path, s.rec.Ref)
		return nil
	}
	return cmd
}

// reporter is the session in whose terminal this runs.
type reporter struct {
	root string // of the state
	rec  sessions.Record
	cfg  *config.Config // nil: it cannot be read at the moment
}

// reporter finds the session by what its pane was given.
func (c *cli) reporter(ctx context.Context) (*reporter, error) {
	id, root, err := c.pane(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := registry.New(root).List(ctx)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if rec.ID == id {
			r := &reporter{root: root, rec: rec}
			r.cfg, _, _ = c.load() // the bot goes by its last valid one
			return r, nil
		}
	}
	return nil, fmt.Errorf("no session with the id %s is recorded below %s: it was deleted", id, root)
}

func (r *reporter) inSlack() error {
	if !r.rec.Definition.Slack.Enabled || r.cfg != nil && !r.cfg.Slack.Enabled {
		return fmt.Errorf("%s has no thread in Slack", r.rec.Ref)
	}
	return nil
}

// below is the path of a file from the session's folder on, when the file may be posted.
func (r *reporter) below(workdir, given string) (string, error) {
	path := given
	if !filepath.IsAbs(path) {
		path = filepath.Join(workdir, path)
	}
	// The folder of the file as it is, and the session's: either may be reached through links. What the last part of the path
	// is, is looked at from within.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", given, unwrapped(err))
	}
	cwd, err := filepath.EvalSymlinks(r.rec.Definition.Cwd)
	if err != nil {
		return "", fmt.Errorf("the session's folder: %w", err)
	}
	rel, err := filepath.Rel(cwd, filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return "", fmt.Errorf("%s: %w", given, err)
	}
	if err := threads.CheckPostable(threads.Folder{Path: cwd, ID: r.rec.FolderID}, rel, r.most()); err != nil {
		return "", fmt.Errorf("%s is not posted: %w", given, err)
	}
	return rel, nil
}

// most is how large a file may be.
func (r *reporter) most() int64 {
	if r.cfg == nil {
		return 1 << 40 // the bot knows
	}
	return r.cfg.Slack.FileMaxBytes
}

func (r *reporter) append(event string, note any) error {
	path, err := harness.ReportPath(filepath.Join(r.root, "reports"), r.rec.ID)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return harness.AppendReport(path, harness.Report{At: time.Now(), Event: event, Payload: payload})
}

// unwrapped is an error without the path, which stands before it already.
func unwrapped(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

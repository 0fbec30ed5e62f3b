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
	"the-loop/sessions/harness/report"
	"the-loop/sessions/registry"
	"the-loop/threads/attachments"
)

func reportFileCommand(c *cli) *cobra.Command {
	var comment string
	cmd := &cobra.Command{Use: "file PATH", Short: "Post a file from the session's folder to its Slack thread", Args: cobra.ExactArgs(1),
		Long: `Post a file from the session's folder to its Slack thread. For agents: it works only in a session's terminal and for files within the
session's folder. The bot copies the file when it reads the report: a moment later, or when it runs again.`}
	cmd.Flags().StringVar(&comment, "comment", "", "a comment to post with the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := c.findReportingSession(cmd.Context())
		if err == nil {
			err = s.checkInSlack()
		}
		if err != nil {
			return err
		}
		path, err := s.postablePath(c.env.workdir, args[0])
		if err != nil {
			return err
		}
		if err := s.appendReport(report.EventFile, report.FilePayload{Path: path, Comment: comment}); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s will be posted in the thread of %s\n", path, s.record.Ref)
		return nil
	}
	return cmd
}

// reportingSession is the session in whose terminal this runs.
type reportingSession struct {
	root   string // of the state
	record sessions.Record
	cfg    *config.Config // nil: it cannot be read at the moment
}

// findReportingSession finds the session by what its pane was given.
func (c *cli) findReportingSession(ctx context.Context) (*reportingSession, error) {
	id, root, err := c.paneSession(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := registry.New(root).List(ctx)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if rec.ID == id {
			r := &reportingSession{root: root, record: rec}
			r.cfg, _, _ = c.loadConfig() // the bot goes by its last valid one
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no session with the id %s in %s: it was deleted", id, root)
}

func (r *reportingSession) checkInSlack() error {
	if !r.record.Definition.Chat.Enabled || r.cfg != nil && !r.cfg.Slack.Enabled {
		return fmt.Errorf("%s has no thread: Slack is disabled for it", r.record.Ref)
	}
	return nil
}

// postablePath is the path of a file from the session's folder on, when the file may be posted.
func (r *reportingSession) postablePath(workdir, given string) (string, error) {
	path := given
	if !filepath.IsAbs(path) {
		path = filepath.Join(workdir, path)
	}
	// The folder of the file as it is, and the session's: either may be reached through links. What the last part of the path
	// is, is looked at from within.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", given, withoutPath(err))
	}
	cwd, err := filepath.EvalSymlinks(r.record.Definition.Cwd)
	if err != nil {
		return "", fmt.Errorf("the session's folder: %w", err)
	}
	rel, err := filepath.Rel(cwd, filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return "", fmt.Errorf("%s: %w", given, err)
	}
	if err := attachments.CheckPostable(attachments.Folder{Path: cwd, ID: r.record.FolderID}, rel, r.maxFileBytes()); err != nil {
		return "", fmt.Errorf("%s cannot be posted: %w", given, err)
	}
	return rel, nil
}

// maxFileBytes is how large a file may be.
func (r *reportingSession) maxFileBytes() int64 {
	if r.cfg == nil {
		return 1 << 40 // the bot knows
	}
	return r.cfg.Slack.FileMaxBytes
}

func (r *reportingSession) appendReport(event string, note any) error {
	path, err := report.Path(filepath.Join(r.root, "reports"), r.record.ID)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return report.Append(path, report.Report{At: time.Now(), Event: event, Payload: payload})
}

// withoutPath is an error without the path, which stands before it already.
func withoutPath(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

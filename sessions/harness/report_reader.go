package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"the-loop/sessions"
)

// Reports reads the sessions' report files, and talks to the hooks that wait for an answer. Which harness wrote a report does
// not matter.
type Reports struct {
	Dir           string // absolute; the folder of the report files
	PermissionDir string // absolute; the folder of the sockets of hooks that wait

	Index *ReportIndex // lets go of what is removed; may be nil
}

var _ sessions.Reports = Reports{}

// EventFile is our own report: the agent would have a file posted in its thread.
const EventFile = "the-loop:file"

// FilePayload is the payload of [EventFile].
type FilePayload struct {
	Path    string `json:"path"` // below the session's folder
	Comment string `json:"comment,omitempty"`
}

// ReadReports reads the reports of a session from a place on: an offset in its file. Those with a token wait for an answer.
func (r Reports) ReadReports(_ context.Context, session string, after sessions.Offset, since time.Time) (sessions.ReportBatch, error) {
	path, err := ReportPath(r.Dir, session)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	from, err := parseReportOffset(after)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	reports, end, err := ReadReports(path, from)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	noted := sessions.ReportBatch{Next: reportOffset(end), WatchFiles: []string{path}}
	for _, report := range reports {
		if after == "" && report.Token == "" && report.At.Before(since) {
			continue
		}
		addReport(&noted, report)
	}
	return noted, nil
}

// Remove removes the reports of a session that was deleted.
func (r Reports) Remove(_ context.Context, session string) error {
	path, err := ReportPath(r.Dir, session)
	if err != nil {
		return err
	}
	r.Index.forget(path)
	if err := removeReportLog(path); err != nil {
		return fmt.Errorf("remove the agent's reports: %w", err)
	}
	return nil
}

// reportOffset is an offset in a session's reports, as others keep it.
func reportOffset(n int64) sessions.Offset { return sessions.Offset(strconv.FormatInt(n, 10)) }

func parseReportOffset(o sessions.Offset) (int64, error) {
	if o == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(string(o), 10, 64)
	if err != nil || from < 0 {
		return 0, fmt.Errorf("%q is no offset in a session's reports", o)
	}
	return from, nil
}

// addReport adds what a report says. What does not parse says nothing.
func addReport(n *sessions.ReportBatch, r Report) {
	switch r.Event {
	case EventPermissionRequest:
		if a, ok := parsePermissionRequest(r); ok {
			n.PermissionRequests = append(n.PermissionRequests, a)
		}
	case EventFile:
		var f FilePayload
		if json.Unmarshal(r.Payload, &f) == nil && f.Path != "" {
			n.Files = append(n.Files, sessions.ReportedFile{Path: f.Path, Comment: f.Comment, At: r.At})
		}
	case EventPermissionAnswered:
		var a answeredPayload
		if json.Unmarshal(r.Payload, &a) == nil && r.Token != "" {
			n.Answered = append(n.Answered, sessions.AnsweredPermission{Token: r.Token, Allow: a.Allow, At: r.At})
		}
	}
}

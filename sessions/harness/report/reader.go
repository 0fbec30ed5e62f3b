package report

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/permission"
)

// Reader reads the sessions' report files, and reaches the hooks that wait for a decision. It does not matter which agent wrote a
// report.
type Reader struct {
	Dir           string // absolute; the folder of the report files
	PermissionDir string // absolute; the folder of the sockets of hooks that wait

	Index *Index // forgets what is removed; may be nil
}

var _ sessions.Reports = Reader{}

// ReadReports reads the reports of a session after an offset in its file.
func (r Reader) ReadReports(_ context.Context, session string, after sessions.Offset, since time.Time) (sessions.ReportBatch, error) {
	path, err := Path(r.Dir, session)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	from, err := ParseOffset(after)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	reports, end, err := Read(path, from)
	if err != nil {
		return sessions.ReportBatch{}, err
	}
	batch := sessions.ReportBatch{Next: EncodeOffset(end), WatchFiles: []string{path}}
	for _, report := range reports {
		if after == "" && report.Token == "" && report.At.Before(since) {
			continue
		}
		addTo(&batch, report)
	}
	return batch, nil
}

// WaitResolved waits until a permission request is resolved.
func (r Reader) WaitResolved(ctx context.Context, _, token string, open func()) error {
	return permission.Client{Dir: r.PermissionDir}.WaitResolved(ctx, token, open)
}

// AnswerPermission gives a permission request its one decision.
func (r Reader) AnswerPermission(ctx context.Context, _ string, d sessions.PermissionDecision) error {
	return permission.Client{Dir: r.PermissionDir}.Decide(ctx, d)
}

// Remove removes the reports of a session that was deleted.
func (r Reader) Remove(_ context.Context, session string) error {
	path, err := Path(r.Dir, session)
	if err != nil {
		return err
	}
	r.Index.forget(path)
	if err := removeLog(path); err != nil {
		return fmt.Errorf("remove the agent's reports: %w", err)
	}
	return nil
}

// EncodeOffset returns an offset in a session's report file as others keep it.
func EncodeOffset(n int64) sessions.Offset { return sessions.Offset(strconv.FormatInt(n, 10)) }

// ParseOffset parses what [EncodeOffset] made. The empty offset is the beginning.
func ParseOffset(o sessions.Offset) (int64, error) {
	if o == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(string(o), 10, 64)
	if err != nil || from < 0 {
		return 0, fmt.Errorf("%q is no offset in a session's reports", o)
	}
	return from, nil
}

// addTo adds a report to a batch. A report that does not parse is skipped.
func addTo(n *sessions.ReportBatch, r Report) {
	switch r.Event {
	case EventPermissionRequest:
		if p, ok := permission.ParseRequest(r.Payload); ok && r.Token != "" { // without a token it cannot be decided
			p.Token, p.At = r.Token, r.At
			n.PermissionRequests = append(n.PermissionRequests, p)
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

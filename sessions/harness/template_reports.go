package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"the-loop/sessions"
)

// EventSaid is the report of a text that a program of the operator's said, with "the-loop report say".
const EventSaid = "the-loop:said"

// SaidNote is its payload.
type SaidNote struct {
	Text  string `json:"text"`
	Final bool   `json:"final"` // it ends a turn
}

// Reporting is a [Template] whose program itself reports what its agent says.
type Reporting struct {
	Template
	Reports string // absolute; the folder of the report files
}

var _ sessions.Teller = Reporting{}

// Told reads the reports of the session from a place on, an offset in their file.
func (t Reporting) Told(_ context.Context, c sessions.Conversation, place string) (sessions.Told, error) {
	path, err := ReportPath(t.Reports, c.Session)
	if err != nil {
		return sessions.Told{}, err
	}
	from, since := int64(0), c.Started
	if place != "" {
		since = time.Time{}
		if from, err = strconv.ParseInt(place, 10, 64); err != nil || from < 0 {
			return sessions.Told{}, fmt.Errorf("%q is no place in a session's reports", place)
		}
	}
	reports, next, err := ReadReports(path, from)
	if err != nil {
		return sessions.Told{}, err
	}
	told := sessions.Told{Next: strconv.FormatInt(next, 10), Watch: []string{path}}
	for _, r := range reports {
		if said, ok := saidIn(r); ok && !r.At.Before(since) {
			told.Said = append(told.Said, said)
		}
	}
	return told, nil
}

func saidIn(r Report) (sessions.Said, bool) {
	var note SaidNote
	if r.Event != EventSaid || json.Unmarshal(r.Payload, &note) != nil || note.Text == "" {
		return sessions.Said{}, false
	}
	sum := sha256.Sum256([]byte(note.Text))
	return sessions.Said{Text: note.Text, Final: note.Final, At: r.At, Key: strconv.FormatInt(r.At.UnixNano(), 36) + "." + hex.EncodeToString(sum[:6])}, true
}

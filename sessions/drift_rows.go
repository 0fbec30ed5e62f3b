package sessions

import "fmt"

// DriftState says whether a running session holds what the env file declares.
type DriftState string

// Drift is how the environments of the running sessions compare with the env file. It holds names and no value.
type Drift struct {
	Configured bool       `json:"configured"` // env.file or env.pass is set; else nothing is compared
	Running    int        `json:"running"`
	Stale      int        `json:"stale"`
	Unknown    int        `json:"unknown"`
	Rows       []DriftRow `json:"sessions"`
	Problem    string     `json:"problem,omitempty"` // why nothing could be compared
	Malformed  []int      `json:"malformedLines,omitempty"`
	Refused    []string   `json:"refused,omitempty"` // names that the env file declares and that no pane gets
	Warning    string     `json:"warning,omitempty"` // of who may read the file
	Unset      []string   `json:"unset,omitempty"`   // names in env.pass that are not set in our environment: they are not compared

	Starting int `json:"-"` // sessions that are on their way up, or down and up again: they may count nowhere else
	// ChangeCount counts how often the file was found to declare something else than before, by this core.
	ChangeCount int `json:"-"`
}

// DriftRow is one running session.
type DriftRow struct {
	Ref        Ref        `json:"ref"`
	ID         string     `json:"id"`
	TmuxTarget string     `json:"tmuxTarget"`
	State      DriftState `json:"state"`
	Stale      []string   `json:"stale"` // names, in name order
}

// StatusLine is the one line that status has of it, and empty while nothing is stale.
func (d Drift) StatusLine() string {
	if d.Stale == 0 {
		return ""
	}
	return fmt.Sprintf("sessions %d of %d running with a stale environment — `the-loop sessions restart --all`", d.Stale, d.Running)
}

// The states of a running session's environment.
const (
	DriftCurrent DriftState = "current"
	DriftStale   DriftState = "stale"
	DriftUnknown DriftState = "unknown" // what its process holds cannot be read
)

// Add adds the row of a running session, and counts it.
func (d *Drift) Add(r DriftRow) {
	d.Rows = append(d.Rows, r)
	d.Running++
	switch r.State {
	case DriftStale:
		d.Stale++
	case DriftUnknown:
		d.Unknown++
	}
}
